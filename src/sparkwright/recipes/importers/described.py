"""An engine that a file describes: the words of its command line back to the keys of a recipe."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from sparkwright.domain.engine import EngineDefinition
from sparkwright.recipes.importers.draft import Draft
from sparkwright.recipes.vocabulary import ALIASES, flag_word

# Placeholder -> a name that the importer has for the same key.
_NAMES = {
    "context": "max_model_len", "sequences": "max_num_seqs", "batched_tokens": "max_num_batched_tokens",
    "kv_dtype": "kv_cache_dtype", "memory_fraction": "gpu_memory_utilization", "tool_parser": "tool_call_parser",
    "reasoning_parser": "reasoning_parser", "chat_template": "chat_template", "tp": "tensor_parallel_size",
    "pp": "pipeline_parallel_size", "dp": "data_parallel_size", "served_name": "served_model_name", "port": "port",
    "host": "host", "model": "model", "model_id": "model",
}  # fmt: skip
LAUNCHER = frozenset(("rank", "world", "head", "address", "interface", "master_port", "key_file"))
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_LESS_NEGATIVE = re.compile(r"-{1,2}[A-Za-z]")


def split_options(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[tuple[str, tuple[str, ...]], ...]]:
    """Bare words before the first option, and each option with the words up to the next one."""
    found, bare = list[tuple[str, list[str]]](), list[str]()
    for word in words:
        if _LESS_NEGATIVE.match(word):
            name, equals, value = word.partition("=")
            found.append((name.lstrip("-"), [value] if equals else []))
        elif found:
            found[-1][1].append(word)
        else:
            bare.append(word)
    return tuple(bare), tuple((name, tuple(values)) for name, values in found)


def option_names(definition: EngineDefinition) -> Mapping[str, str]:
    """Option of the engine -> its placeholder, as the definition's own words have it."""
    lists = (definition.command, definition.worker, definition.several, definition.key_words)
    return dict(pair for words in (*lists, *definition.options.values()) for pair in _pairs(words))


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    for option, value in pairwise(words):
        if option.startswith("-") and (match := _PLACEHOLDER.fullmatch(value)):
            yield option.lstrip("-"), match[1]


def known_name(definition: EngineDefinition, name: str) -> str:
    """The importer's name of an option; LAUNCHER's placeholders as they are, '' for one of the engine's own.

    An engine's own options come first, then names that other engines have for a key that the definition fills in.
    """
    bare = name.replace("_", "-")
    placeholder = option_names(definition).get(bare, "")
    if placeholder:
        return placeholder if placeholder in LAUNCHER else _NAMES.get(placeholder, "")
    if bare in definition.flags:
        return ""
    path = ALIASES.get(flag_word(name), "")
    filled = {*option_names(definition).values(), *definition.options}
    ours = {ALIASES.get(_NAMES[one], one): _NAMES[one] for one in filled if one in _NAMES}
    return ours.get(path, "port" if flag_word(name) == "port" else "")


def own_size(definition: EngineDefinition, name: str) -> str:
    """The engine's own option for a size that another name was given for: `tp-size` of tensor_parallel."""
    section, _, key = ALIASES.get(flag_word(name), "").partition(".")
    own = f"{key}-size"
    return own if section == "parallelism" and own in definition.flags else name


def put_ranks(draft: Draft, definition: EngineDefinition, nodes: int) -> None:
    """Nodes of a described engine, whose own options say how it splits the model; the plan counts them as TP."""
    flags: Mapping[str, object] = draft.get("flags") or {}
    sizes = [value for key in ("tp-size", "ep-size", "tp", "ep") if isinstance(value := flags.get(key), int)]
    ranks = max([1, nodes, draft.get("parallelism.tp", 1), *sizes])
    draft.tree["parallelism"] = {"tp": ranks} if ranks > 1 else {}
    draft.put("nodes", ranks)
    if ranks > 1:
        draft.note(
            f"parallelism.tp: {ranks}, so that the plan divides the model; {definition.name} splits as its options say"
        )
