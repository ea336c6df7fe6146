"""Traits as an engine's file writes them: plain values; what depends on a recipe is Python's."""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from sparkwright.domain.engine import EngineDefinition
from sparkwright.domain.ledger import (
    ACTIVATIONS,
    COMMUNICATION,
    CONTEXT,
    GRAPHS,
    KV_POOL,
    OVERHEAD,
    PROCESSES,
)
from sparkwright.domain.units import GIB
from sparkwright.engines.traits import Cache, Claim, Range

_LINES = (PROCESSES, COMMUNICATION, CONTEXT, ACTIVATIONS, GRAPHS, OVERHEAD, KV_POOL)


def plain_traits(written: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of Traits. Raises ValueError: an unknown key, a value of another kind."""
    made: dict[str, Any] = {}
    for key, value in written.items():
        if key not in _READERS:
            near = get_close_matches(key, _READERS, 1)
            raise ValueError(f"unknown key {key!r}; {f'did you mean {near[0]}?' if near else 'known: ' + _KNOWN}")
        name, read = _READERS[key]
        try:
            made[name] = read(value)
        except (TypeError, ValueError, KeyError) as error:
            raise ValueError(f"{key}: {value!r} does not fit: {error}") from None
    return made


def told_traits(definition: EngineDefinition) -> dict[str, Any]:
    """Arguments of Traits: all that a definition gives. Raises ValueError as plain_traits."""
    return {
        "owned_by": definition.owned_by,
        "start_order": definition.start_order,
        **plain_traits(definition.traits),
    }


def _is(kind: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise ValueError(f"expected {kind.__name__}")
        return value

    return read


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value < 1e9:
        raise ValueError("expected a number")
    return float(value)


def _count(value: Any) -> int:
    if type(value) is not int or not 0 < value < 1e9:
        raise ValueError("expected a whole number above 0")
    return value


def _numbers(count: int) -> Callable[[Any], tuple[float, ...]]:
    def read(value: Sequence[Any]) -> tuple[float, ...]:
        if len(value) != count:
            raise ValueError(f"expected {count} numbers")
        return tuple(map(_number, value))

    return read


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError("expected a list of texts")
    return tuple(map(_is(str), value))


def _range(name: str) -> Callable[[Mapping[str, Any]], Range]:
    def read(value: Mapping[str, Any]) -> Range:
        if set(value) != {"gib", "low", "high", "why"}:
            raise ValueError("expected gib, low, high and why")
        size, low, high = (_number(value[key]) for key in ("gib", "low", "high"))
        return Range(name, size, low, high, _is(str)(value["why"]))

    return read


def _outside(value: Any) -> Callable[[Any], tuple[str, ...]]:
    names = _texts(value)
    if unknown := set(names) - set(_LINES):
        raise ValueError(f"no lines of the ledger: {', '.join(sorted(unknown))}; known: {', '.join(_LINES)}")
    return lambda recipe: names


def _limits(value: Sequence[Any]) -> Callable[[Any, bool], tuple[int, int]]:
    batched, sequences = map(_count, value)
    return lambda recipe, unified: (batched, sequences)


def _options(value: Sequence[Sequence[Any]]) -> tuple[tuple[str, Any], ...]:
    return tuple((_is(str)(name), given) for name, given in value)


def _timeout(value: Sequence[Any]) -> tuple[str, int]:
    option, seconds = value
    return _is(str)(option), _count(seconds)


def _paces(value: Mapping[str, Any]) -> tuple[tuple[str, tuple[float, ...]], ...]:
    return tuple((name, _numbers(3)(row)) for name, row in value.items())


_YES = (
    *("checks_context", "queue", "host_cache", "blocks", "eagle_inside", "convolutions", "exact_states"),
    *("rows_for_all", "by_layer"),
    *("even_experts", "compiles", "batches", "gguf", "kills_itself", "slots"),
)
_TEXT = ("eager_flag", "kv_option", "media", "tool_option", "one_stage", "plays", "property", "leaves")
_READERS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    **{name: (name, _is(bool)) for name in _YES},
    **{name: (name, _is(str)) for name in _TEXT},
    **{name: (name, _number) for name in ("fraction", "positions", "prefill")},
    **{name: (name, _numbers(3)) for name in ("hop", "rows", "rows_read", "around")},
    **{name: (name, lambda value: frozenset(_texts(value))) for name in ("faults", "helpers")},
    "claim": ("claim", Claim),
    "cache": ("cache", Cache),
    "block": ("block", _count),
    "proven": ("proven", _numbers(2)),
    "fa3": ("fa3", _texts),
    "loaded_gib": ("loaded", lambda value: _number(value) * GIB),
    "limits": ("limits", _limits),
    "outside": ("outside", _outside),
    "timeout": ("timeout", _timeout),
    "computed": ("computed", _timeout),
    "tables_off": ("tables_off", _options),
    "weights_alone": ("weights_alone", _options),
    "converts": ("converts", _options),
    "rest_as_written": ("rest_as_written", _texts),
    "paces": ("paces", _paces),
    "overhead": ("whole", _range(OVERHEAD)),
    "processes": ("processes", _range(PROCESSES)),
    "context": ("context", _range(CONTEXT)),
    "graphs": ("graphs", _range(GRAPHS)),
}
_KNOWN = ", ".join(sorted(_READERS))
