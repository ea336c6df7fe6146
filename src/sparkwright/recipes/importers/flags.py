"""An engine's command line as recipe keys: what we have a key for goes there, the rest under `flags`."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from sparkwright.domain.engine import CUSTOM, EngineDefinition
from sparkwright.engines.definitions import shipped_definitions
from sparkwright.engines.options import is_fitting
from sparkwright.engines.options import option_text as as_word
from sparkwright.engines.sglang import CHAINS
from sparkwright.engines.written import Written, read_words, whole_number
from sparkwright.recipes.importers.any_server import put_any_server
from sparkwright.recipes.importers.commands import KNOWN
from sparkwright.recipes.importers.described import LAUNCHER, known_name, own_size, put_ranks, split_options
from sparkwright.recipes.importers.draft import Draft, hole_hint, note_powers
from sparkwright.recipes.importers.shell import unresolved
from sparkwright.recipes.values import is_secret_name, looks_secret
from sparkwright.recipes.vocabulary import ALIASES, flag_word

_MORE: Mapping[str, str] = KNOWN["keys"]
_ONLY: Mapping[str, Mapping[str, str]] = KNOWN["keys_of"]
_SPARKRUN: Mapping[str, str] = KNOWN["keys_of_sparkrun"]
_LAUNCHER = frozenset(KNOWN["launcher"]["words"])
_INTS = "parallelism.tp parallelism.pp parallelism.dp speculation.tokens serving.port serving.master_port "
_INTS += "serving.context serving.sequences serving.batched_tokens serving.kv_cache_bytes"
_SECTIONS = ("model", "serving", "parallelism", "parsers", "speculation")
_MODEL = ("model", "model_path", "hf_repo", "hf_file")
_GGUF_NOTE = "model.path:"
_USUAL_QUANT = "Q4_K_M"  # of llama-server's -hf without a tag
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
Words = Sequence[str]


def put_command(draft: Draft, engine: str, words: Words, model: str = "") -> None:
    """All of a command line behind the engine's program. model: known already, so that the command's is not taken."""
    if engine == CUSTOM:
        put_any_server(draft, words)
        return
    if engine in shipped_definitions():
        put_described(draft, shipped_definitions()[engine], words, bool(model))
        return
    positional, options = read_words(engine, words)
    if positional and not model:
        put_model(draft, positional[0])
    for word in positional[1:]:
        hole = unresolved(word)
        why = (
            f"has no value in the source; if it stands for options, they are missing{hole_hint(hole)}"
            if hole
            else "belongs to no option"
        )
        draft.note(f"{hole or repr(word)}: left out, it {why}")
    for one in options:
        word = flag_word(one.name)
        if one.option is None and ALIASES.get(word, "").partition(".")[0] in ("serving", "parsers", "speculation"):
            draft.note(f"{one.name}: {engine} has no option of that name; it is written as {ALIASES[word]}")
    put_options(draft, engine, options, bool(model))


def put_described(draft: Draft, definition: EngineDefinition, words: Words, model: bool) -> None:
    """The words behind the program of an engine that a file describes."""
    bare, options = split_options(words)
    if bare and not model:
        put_model(draft, bare[0])
    for word in bare[1:]:
        draft.note(f"{word!r}: left out, it belongs to no option")
    for option, values in options:
        hole = next((h for word in values if (h := unresolved(word) or template_hole(word))), "")
        if not hole:
            _put_own(draft, definition, option, [scalar(word) for word in values])
        elif known_name(definition, option) not in LAUNCHER:
            draft.note(f"{option}: left out, {hole} has no value in the source; write --{option} under `flags`")
    put_ranks(draft, definition, 1)
    note_powers(draft)


def _put_own(draft: Draft, definition: EngineDefinition, option: str, values: list[Any]) -> None:
    """One option of a described engine to its key, or under `flags` as it is."""
    name, option = known_name(definition, option), own_size(definition, option)
    word = flag_word(option)
    value = True if not values else values[0] if len(values) == 1 else values
    if name in LAUNCHER:
        draft.note(f"{word}: left out, the launcher fills it in for each rank")
    elif word == "model_from_path":
        put_model(draft, str(value))
    elif name:
        _put_one(draft, definition.name, name, value, None)
    elif is_secret_name(word) or (isinstance(value, str) and looks_secret(value)):
        draft.note(f"{option}: left out, secrets are not imported; name a variable in serving.api_key_env")
    elif value != 1 or value is True or not ALIASES.get(word, "").startswith("parallelism."):  # 1: it is one anyway
        _flag(draft, option.replace("_", "-"), value)


def scalar(word: str) -> Any:
    """`8` is 8, `{"a":1}` a mapping, everything else text: `on` and `yes` stay words, as the engine gets them.

    What would be written in another way than it came (`1e-5`, `0.80`) stays text, too.
    """
    if word[:1] == "{":
        try:
            found = json.loads(word, object_pairs_hook=_once)
        except (ValueError, RecursionError):
            return word
        return found
    if re.fullmatch(r"-?\d{1,18}(\.\d{1,17})?", word):
        number = yaml.safe_load(word)
        return number if isinstance(number, int | float) and as_word(number) == word else word
    return word


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A mapping whose keys have one value each: which of two values wins is for the engine to say."""
    found = dict(pairs)
    if any(found[name] != value for name, value in pairs):
        raise ValueError("a key is there twice, with two values")
    return found


def put_options(draft: Draft, engine: str, options: Iterable[Written], known_model: bool = False) -> None:
    """Every option to its key, to `flags`, or into the notes."""
    given, seen = dict[str, Any](), dict[str, Written]()
    for one in options:
        name, value = _name_and_value(one)
        if hole := next((h for word in one.values if (h := unresolved(word) or template_hole(word))), ""):
            if flag_word(name) not in _LAUNCHER:
                more = hole_hint(hole)
                draft.note(f"{name}: left out, {hole} has no value in the source; write --{name} under `flags`{more}")
            continue
        if one.option and one.option.kind == "append" and name in given:
            given[name] = [*(given[name] if isinstance(given[name], list) else [given[name]]), value]
            draft.note(f"{name}: given several times; a recipe writes it once, with all its values")
        else:
            given[name] = value
        seen[name] = one
    if engine == "sglang":
        given = _sglang(draft, given)
    for name, value in given.items():
        if not (known_model and flag_word(name) in _MODEL):
            _put_one(draft, engine, name, value, seen.get(name))
    if engine == "llama-cpp" and any(flag_word(name) == "ctx_size" for name in given):
        _share_context(draft)
    _whole_speculation(draft)
    if any(flag_word(name) == "enable_auto_tool_choice" for name in given) and not draft.get("parsers.tool"):
        draft.note("enable_auto_tool_choice: left out; it needs a tool-call parser, which goes into parsers.tool")
    note_powers(draft)


def _share_context(draft: Draft) -> None:
    """llama-server's --ctx-size is for all of its slots together, ours for one sequence."""
    context, slots = draft.get("serving.context", 0), draft.get("serving.sequences", 1)
    if slots > 1 and context and context % slots == 0:
        draft.put("serving.context", context // slots)
        draft.note(f"serving.context: {context // slots}, the share of each of {slots} slots in --ctx-size {context}")


def template_hole(word: str) -> str:
    """`{name}` of a template that was not filled; '' if there is none. JSON has quotes behind its braces."""
    found = re.search(r"(?<![{$\w])\{[A-Za-z_][\w.-]*\}", word)
    return found[0] if found else ""


def _name_and_value(one: Written) -> tuple[str, Any]:
    kind = one.option.kind if one.option else ""
    if one.negated:
        plain = one.option is not None and one.name == f"no-{one.option.name}"
        return (one.option.name, False) if plain and one.option else (one.name, True)
    if not one.values:
        bare = one.name.removeprefix("no-")
        return (bare, False) if not one.option and one.name.startswith("no-") else (one.name, True)
    if len(one.values) == 1 and kind != "list":
        return one.name, scalar(one.values[0])
    found = [scalar(word) for word in one.values]
    return one.name, found[0] if len(found) == 1 else found


def _put_one(draft: Draft, engine: str, name: str, value: Any, one: Written | None) -> None:
    word = flag_word(name.partition(".")[0])
    special = _SPECIAL.get(word)
    if word in _MODEL:
        put_model(draft, str(value))
    elif engine == "trtllm" and word == "config":
        _options_file(draft, "", value)
    elif word in _LAUNCHER:
        draft.note(f"{word}: left out, the launcher fills it in for each rank")
    elif is_secret_name(word) or (isinstance(value, str) and looks_secret(value)):
        draft.note(f"{word}: left out, secrets are not imported; name a variable in serving.api_key_env")
    elif special:
        special(draft, name.partition(".")[2], value)
    elif "." in name:
        _flag(draft, one.long if one else name, value)
    else:
        _put(draft, engine, name, value, one)


def _put(draft: Draft, engine: str, name: str, value: Any, one: Written | None) -> None:
    word = flag_word(name)
    path = _ONLY.get(engine, {}).get(word, _SPARKRUN.get(word) or _MORE.get(word) or ALIASES.get(word, ""))
    if path.startswith("serving.gateway."):
        draft.note(
            f"{word}: left out, the gateway on the head node encrypts; `serving.gateway.tls` chooses its certificate"
        )
    elif path.partition(".")[0] not in _SECTIONS or "." not in path:
        own = one.long if one and name == one.name and not one.negated else name
        _flag(draft, path.replace("_", "-") if word in _SPARKRUN and path else own, value)
    elif path in _INTS.split():
        _put_number(draft, path, word, value, one)
    elif isinstance(value, list) and path == "model.served_name" and engine.startswith("vllm"):
        draft.put(path, str(value[0]))
        draft.put("model.aliases", [str(name) for name in value[1:]])
    elif path == "model.served_name" and len(str(value).split()) > 1:
        draft.put(path, "-".join(str(value).split()))
        draft.note(f"{word}: {value!r} is written without spaces; clients ask for {draft.get(path)}")
    elif isinstance(value, list):
        draft.put(path, value[0])
        draft.note(f"{word}: only {value[0]!r} of {len(value)} values has a key")
    elif path == "serving.memory_fraction":
        try:
            draft.put("serving.memory_fraction", float(value))
        except (TypeError, ValueError):
            draft.note(f"{word}: {value!r} is no number and is left out")
    else:
        draft.put(path, value)


def _put_number(draft: Draft, path: str, word: str, value: Any, one: Written | None) -> None:
    if path == "serving.context" and str(draft.get("engine.name")).startswith("vllm") and is_fitting(value):
        _flag(draft, "max-model-len", value)
        return
    number = value if isinstance(value, int) else whole_number(one.option if one else None, str(value))
    if isinstance(number, bool) or number is None:
        more = "; `sparkwright plan` tells which context fits, for serving.context" * (path == "serving.context")
        draft.note(f"{word}: {value!r} is no whole number and is left out{more}")
    else:
        draft.put(path, number)


def _flag(draft: Draft, name: str, value: Any) -> None:
    draft.put("flags", draft.get("flags", {}) | {name: value})


def put_model(draft: Draft, model: str) -> None:
    """A hub id or a path; `org/name:QUANT` names single GGUF files of a repository."""
    bare, _, quant = model.partition(":")
    if unresolved(model) or template_hole(model):
        hole = unresolved(model) or template_hole(model)
        draft.note(f"model: {hole} has no value in the source; write model.id{hole_hint(hole)}")
    elif _HUB_ID.fullmatch(bare):
        draft.put("model.id", bare)
        if draft.get("engine.name") == "llama-cpp":
            _put_gguf(draft, bare, quant)
        elif quant:
            draft.note(f"model: of {bare} only the {quant} files are meant; put that GGUF's place into model.path")
    else:
        draft.put("model.path", model)
        draft.notes[:] = [note for note in draft.notes if not note.startswith(_GGUF_NOTE)]


def _put_gguf(draft: Draft, repository: str, quant: str) -> None:
    """The usual name of one quantization's file: llama-server picks it by its listing of the hub, which is not asked
    here."""
    if draft.get("model.path"):
        return
    stem = re.sub(r"[-_.]gguf$", "", repository.rpartition("/")[2], flags=re.IGNORECASE)
    file = f"{stem}-{quant or _USUAL_QUANT}.gguf"
    meant = quant or f"{_USUAL_QUANT}, which llama-server takes where none is named,"
    draft.put("model.path", file)
    draft.note(
        f"{_GGUF_NOTE} {file} is the usual name of the {meant} file of {repository}, which llama-server would fetch "
        "itself; put the file into the folder of models and correct its name (of a model in parts, the first)"
    )


def _host(draft: Draft, key: str, value: Any) -> None:
    if value not in ("127.0.0.1", "localhost"):
        draft.note(f"host {value}: not taken over; the endpoint stays on loopback until serving.expose opens it")


def _expert(draft: Draft, key: str, value: Any) -> None:
    if value is True or (isinstance(value, int) and value > 1):
        draft.put("parallelism.ep", True)


def _speculation(draft: Draft, key: str, value: Any) -> None:
    """JSON, or one key of it behind a dot."""
    config = {key: scalar(value) if isinstance(value, str) else value} if key else value
    config = scalar(config) if isinstance(config, str) else config
    if not isinstance(config, Mapping):
        draft.note(f"speculative_config: {value!r} is no JSON mapping and is left out")
        return
    names = {"method": "speculation.method", "num_speculative_tokens": "speculation.tokens"}
    for name, one in config.items():
        if name in names:
            draft.put(names[name], one)
        else:
            draft.put("speculation.options", draft.get("speculation.options", {}) | {name: one})


def _whole_speculation(draft: Draft) -> None:
    """Method and tokens belong together; what has one of them only is passed on key by key and not planned with."""
    given = draft.get("speculation")
    if not given or ({"method", "tokens"} <= set(given) and isinstance(given["tokens"], int)):
        return
    del draft.tree["speculation"]
    keys = {"method": given.get("method"), "num_speculative_tokens": given.get("tokens"), **given.get("options", {})}
    for name, value in keys.items():
        if value is not None:
            word = json.dumps(value, separators=(",", ":")) if not isinstance(value, str | int | float) else value
            _flag(draft, f"speculative-config.{name}", str(value).lower() if isinstance(value, bool) else word)
    draft.note(
        "speculation: the source names no method or no number of drafted tokens; its options are under `flags` as "
        "they are, and the plan counts no drafts"
    )


def _sglang(draft: Draft, given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that SGLang spreads over several options: speculation, and data parallelism inside tensor
    parallelism."""
    words = {flag_word(name): name for name in given}
    rest = dict(given)
    if "speculative_algorithm" in words:
        _sglang_speculation(draft, {word: given[name] for word, name in words.items()})
        rest = {name: value for name, value in given.items() if not flag_word(name).startswith("speculative_")}
    whole = next((words[w] for w in ("tp_size", "tensor_parallel_size", "tensor_parallel") if w in words), "")
    inner = next((words[w] for w in ("attn_dp_size", "dp_size", "data_parallel_size") if w in words), "")
    inside = bool(rest.pop(words.get("enable_dp_attention", ""), False)) or flag_word(inner) == "attn_dp_size"
    if inside and whole and inner and isinstance(rest[whole], int) and isinstance(rest[inner], int):
        rest[whole] //= max(rest[inner], 1)
    return rest


def _sglang_speculation(draft: Draft, words: Mapping[str, Any]) -> None:
    """Drafts a step: DSpark's block size, a chain's steps, else the drafted tokens."""
    given = {k.removeprefix("speculative_"): v for k, v in words.items() if k.startswith("speculative_")}
    method, steps, drafted = given.pop("algorithm"), given.get("num_steps"), given.get("num_draft_tokens")
    block = given.pop("dspark_block_size", None) if str(method).upper() == "DSPARK" else None
    usual = {"num_steps": steps, "num_draft_tokens": steps + 1 if steps else drafted, "eagle_topk": 1}
    given = {key: value for key, value in given.items() if key not in usual or value != usual[key]}
    options = {("model" if k == "draft_model_path" else k.replace("_", "-")): v for k, v in given.items()}
    draft.put("speculation", {"method": str(method).lower()})
    if not (block or steps) and str(method).upper() in CHAINS and isinstance(drafted, int) and drafted > 1:
        draft.note(
            f"speculative_num_draft_tokens: {drafted} is written as {drafted - 1} drafts and the token before them"
        )
        drafted -= 1
    draft.put("speculation.tokens", block or steps or drafted or "")
    if options:
        draft.put("speculation.options", options)


def _options_file(draft: Draft, key: str, value: Any) -> None:
    draft.note(f"extra_llm_api_options: {value} was not read; its content goes under `flags` or into our keys")


_SPECIAL: Mapping[str, Callable[[Draft, str, Any], None]] = {
    "host": _host,
    "enable_expert_parallel": _expert,
    "expert_parallel": _expert,
    "ep_size": _expert,
    "expert_parallel_size": _expert,
    "moe_expert_parallel_size": _expert,
    "speculative_config": _speculation,
    "enable_auto_tool_choice": lambda draft, key, value: None,  # it comes with parsers.tool
    "extra_llm_api_options": _options_file,
}


def as_words(flags: Mapping[str, Any]) -> Iterator[str]:
    """Flags given as a mapping as a command line; null, '' and what is switched off are not given."""
    for name, value in flags.items():
        if value is None or value == "":
            continue
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            yield from [option] if value else []
        elif isinstance(value, Mapping | list):
            yield from (option, json.dumps(value, separators=(",", ":")))
        else:
            yield from (option, str(value))


def has_key(name: str) -> bool:
    """True if a name that no engine has is one of sparkrun's or ours for a key of a recipe."""
    word = flag_word(name)
    return word in _SPECIAL or word in _SPARKRUN or word in ALIASES
