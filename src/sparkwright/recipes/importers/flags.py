"""An engine's command line as recipe keys: what we have a key for goes there, the rest under `flags`."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from sparkwright.recipes.importers.draft import Draft, note_powers
from sparkwright.recipes.values import is_secret_name, looks_secret
from sparkwright.recipes.vocabulary import ALIASES, flag_word

_VLLM_SHORT = {
    "tp": "tensor_parallel_size",
    "pp": "pipeline_parallel_size",
    "dp": "data_parallel_size",
    "q": "quantization",
}
_SHORT = {
    "vllm": _VLLM_SHORT,
    "vllm-ray": _VLLM_SHORT,
    "sglang": {"tp": "tp_size", "pp": "pp_size", "dp": "dp_size", "ep": "ep_size"},
    "llama-cpp": {
        "m": "model", "c": "ctx_size", "ngl": "n_gpu_layers", "np": "parallel", "a": "alias", "fa": "flash_attn",
        "b": "batch_size", "ub": "ubatch_size", "t": "threads", "ctk": "cache_type_k", "ctv": "cache_type_v",
        "hf": "hf_repo",
    },
    "trtllm": {},
}  # fmt: skip
_MORE = {
    "revision": "model.revision", "port": "serving.port", "master_port": "serving.master_port",
    "tokenizer_mode": "parsers.tokenizer_mode", "chat_template": "parsers.chat_template",
}  # fmt: skip
_ONLY = {
    # trtllm-serve's max_batch_size and llama-server's parallel are sequences there, and something else elsewhere.
    "llama-cpp": {"parallel": "serving.sequences"},
}
_LAUNCHER = "nnodes node_rank master_addr headless distributed_executor_backend dist_init_addr rpc uds"
# Of sparkrun's names, those that are no engine's own.
_SPARKRUN = {"chunked_prefill": "serving.batched_tokens"}
_NUMBER = re.compile(r"-\d")
_INTS = "parallelism.tp parallelism.pp parallelism.dp speculation.tokens serving.port serving.master_port "
_INTS += "serving.context serving.sequences serving.batched_tokens serving.kv_cache_bytes"


def parse(words: Sequence[str], engine: str) -> tuple[str, dict[str, Any]]:
    """The model (the word before the first flag, if any) and the flags, with values as YAML reads them."""
    model, flags, current = "", dict[str, list[str]](), ""
    for word in words:
        if word.startswith("-") and not _NUMBER.match(word):
            name, equals, value = word.partition("=")
            bare = name.lstrip("-")
            current = _SHORT[engine].get(bare, bare)
            flags[current] = [value] if equals else []
        elif current:
            flags[current].append(word)
        else:
            model = model or word
    values = {name: [scalar(word) for word in given] for name, given in flags.items()}
    return model, {name: found if len(found) > 1 else found[0] if found else True for name, found in values.items()}


def scalar(word: str) -> Any:
    """`8` is 8, `{"a":1}` a mapping, everything else text: `on` and `yes` stay words, as the engine gets them."""
    if word[:1] in "{[":
        try:
            return json.loads(word)
        except ValueError:
            return word
    if re.fullmatch(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", word):
        return yaml.safe_load(word)
    return word


def put_flags(draft: Draft, engine: str, flags: Mapping[str, Any]) -> None:
    """Every flag to its key, to `flags`, or into the notes."""
    words = {flag_word(name): value for name, value in flags.items()}
    if engine == "sglang" and "speculative_algorithm" in words:
        words = _sglang_speculation(draft, words)
    for word, value in words.items():
        special = _SPECIAL.get(word)
        if special:
            special(draft, value)
        elif word in _LAUNCHER.split():
            draft.note(f"{word}: left out, the launcher fills it in for each rank")
        elif is_secret_name(word) or (isinstance(value, str) and looks_secret(value)):
            draft.note(f"{word}: left out, secrets are not imported; name a variable in serving.api_key_env")
        else:
            _put(draft, engine, word, value)
    # Method and tokens belong together: one without the other is no speculation that could be checked
    given = draft.get("speculation")
    if given and not {"method", "tokens"} <= set(given):
        del draft.tree["speculation"]
        draft.note(f"speculation: {given} lacks the method or the number of drafted tokens and is left out")
    note_powers(draft)


def _put(draft: Draft, engine: str, word: str, value: Any) -> None:
    path = _ONLY.get(engine, {}).get(word) or _SPARKRUN.get(word) or _MORE.get(word) or ALIASES.get(word, "")
    section = path.partition(".")[0]
    if section in ("model", "serving", "parallelism", "parsers", "speculation") and "." in path:
        if path in _INTS.split() and not isinstance(value, int):
            draft.note(f"{word}: {value!r} is no whole number and is left out")
        elif isinstance(value, list):
            draft.put(path, value[0])
            draft.note(f"{word}: only {value[0]!r} of {len(value)} values has a key")
        else:
            draft.put(path, value)
        return
    bare, off = (word[3:], True) if word.startswith("no_") and value is True else (word, False)
    draft.put("flags", draft.get("flags", {}) | {bare.replace("_", "-"): False if off else value})


def _host(draft: Draft, value: Any) -> None:
    if value not in ("127.0.0.1", "localhost"):
        draft.note(f"host {value}: not taken over; the endpoint stays on loopback until serving.expose opens it")


def _expert(draft: Draft, value: Any) -> None:
    if value is True or (isinstance(value, int) and value > 1):
        draft.put("parallelism.ep", True)


def _speculation(draft: Draft, value: Any) -> None:
    config = scalar(value) if isinstance(value, str) else value
    if not isinstance(config, Mapping):
        draft.note(f"speculative_config: {value!r} is no JSON mapping and is left out")
        return
    rest = {k: v for k, v in config.items() if k not in ("method", "num_speculative_tokens")}
    draft.put("speculation.method", config.get("method", ""))
    draft.put("speculation.tokens", config.get("num_speculative_tokens", ""))
    if rest:
        draft.put("speculation.options", rest)


def _sglang_speculation(draft: Draft, words: Mapping[str, Any]) -> dict[str, Any]:
    """SGLang spreads it over flags. Drafts a step: DSpark's block size, a chain's steps, else the drafted tokens."""
    given = {k.removeprefix("speculative_"): v for k, v in words.items() if k.startswith("speculative_")}
    method, steps, drafted = given.pop("algorithm"), given.get("num_steps"), given.get("num_draft_tokens")
    block = given.pop("dspark_block_size", None)
    usual = {"num_steps": steps, "num_draft_tokens": steps + 1 if steps else drafted, "eagle_topk": 1}
    given = {key: value for key, value in given.items() if key not in usual or value != usual[key]}
    options = {("model" if k == "draft_model_path" else k.replace("_", "-")): v for k, v in given.items()}
    draft.put("speculation", {"method": str(method).lower()})
    draft.put("speculation.tokens", block or steps or drafted or "")
    if options:
        draft.put("speculation.options", options)
    return {k: v for k, v in words.items() if not k.startswith("speculative_")}


def _options_file(draft: Draft, value: Any) -> None:
    draft.note(f"extra_llm_api_options: {value} was not read; its content goes under `flags` or into our keys")


_SPECIAL: Mapping[str, Callable[[Draft, Any], None]] = {
    "host": _host,
    "enable_expert_parallel": _expert,
    "expert_parallel": _expert,
    "ep_size": _expert,
    "speculative_config": _speculation,
    "enable_auto_tool_choice": lambda draft, value: None,  # it comes with parsers.tool
    "extra_llm_api_options": _options_file,
}


def with_negatives(flags: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Flags given as a mapping (no command line): null and '' are not given, JSON in a text is read."""
    for name, value in flags.items():
        if value is not None and value != "":
            yield name, scalar(value) if isinstance(value, str) else value
