"""An engine's /metrics page as the figures that supervision uses."""

import math
import re
from collections.abc import Iterable, Mapping

from sparkwright.domain.live import LiveEngine

# Field of LiveEngine -> word of the vocabulary (engines/data/engines).
FIELDS: Mapping[str, str] = {
    "running": "requests_running",
    "waiting": "requests_waiting",
    "kv_usage": "kv_cache_usage",
    "prompt_tokens": "prompt_tokens_total",
    "generation_tokens": "generation_tokens_total",
    "prefix_queries": "prefix_cache_queries_total",
    "prefix_hits": "prefix_cache_hits_total",
    "draft_tokens": "draft_tokens_total",
    "accepted_tokens": "accepted_tokens_total",
    "drafts": "drafts_total",
    "preemptions": "preemptions_total",
    "finished": "requests_finished_total",
    "deferred": "requests_deferred",
    "repeating": "requests_repeating_total",
    "refused": "requests_refused_total",
    "iterations": "engine_steps_total",
}
# `name{labels} value [time]`: a label's value may hold any character, `}` and escaped quotes among them.
_LINE = re.compile(
    r'([A-Za-z_:][A-Za-z0-9_:]*)(?:\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?\s+(\S+)(?:\s+-?[0-9]+)?\s*', re.ASCII
)

_VAIN = re.compile(r'finished_reason="(?:abort|error)"')


def read(text: str, names: Mapping[str, str], at: float) -> LiveEngine | None:
    """names: vocabulary -> name on the page. Sums over labels; usage is the largest. None: it has none of them."""
    values = _values(text, names.values())
    found = {field: _of(values, names.get(word, "")) for field, word in FIELDS.items()}
    return LiveEngine(at=at, **found) if any(value is not None for value in found.values()) else None


def figures(text: str, names: Mapping[str, str]) -> dict[str, float]:
    """Word of the vocabulary -> figure, as `read` sums them; only those that the page has."""
    values = _values(text, names.values())
    found = ((word, _of(values, name)) for word, name in names.items())
    return {word: value for word, value in found if value is not None}


def _values(text: str, wanted: Iterable[str]) -> dict[str, list[float]]:
    """The values of all label sets of each of these names; requests that were given up or failed prove no life.

    A name with labels, as in `name{reason="deferred"}`, means the sets that have them.
    """
    names: dict[str, list[tuple[str, str]]] = {}
    for name in frozenset(wanted):
        plain, _, labels = name.partition("{")
        names.setdefault(plain, []).append((name, labels.removesuffix("}")))
    found: dict[str, list[float]] = {}
    for line in text.splitlines():
        if line.startswith("#") or not (match := _LINE.fullmatch(line)) or match[1] not in names:
            continue
        value = None if _VAIN.search(line) else _float(match[2])
        if value is None:
            continue
        for name, label in names[match[1]]:
            if not label or re.search(rf"[{{,]{re.escape(label)}[,}}]", line):
                found.setdefault(name, []).append(value)
    return found


def _of(values: Mapping[str, list[float]], name: str) -> float | None:
    given = values.get(name)
    if not given:
        return None
    # Shares of several engines do not add up.
    return max(given) if name.endswith(("usage_perc", "token_usage", "utilization")) else sum(given)


def _float(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
