"""`plan --optimize GOAL`: what was found, what else could be had, and the keys to paste."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from sparkwright.cli.columns import aligned, fold
from sparkwright.domain.units import gib
from sparkwright.domain.verdict import Choice, Estimate, Optimum, Speed
from sparkwright.planner import limits
from sparkwright.planner.search import yaml_lines


def optimum_text(found: Optimum) -> str:
    """Before and best side by side, the other settings, and YAML for the recipe."""
    parts = [fold(f"optimized for {found.goal}: {found.why} ({found.judged} settings judged)", 2)]
    if found.best.variant == found.before.variant:
        parts.append("no setting that fits reaches more than the recipe's own" if found.table else _nothing(found))
        parts.append(aligned(list(_sides(found.before))))
    else:
        rows = [("", "now", "best"), *((name, old, new) for (name, old), (_, new) in _both(found))]
        parts += [aligned(rows), "in the recipe\n" + "\n".join(f"  {line}" for line in yaml_lines(found.best.variant))]
    if len(found.table) > 1:
        parts.append("other settings that fit\n" + aligned([_HEAD, *(_row(choice) for choice in found.table)]))
    return "\n\n".join(parts)


def optimum_json(found: Optimum) -> dict[str, Any]:
    """goal, why, judged, before, best, table; each setting with its keys, figures and speeds."""
    told = {name: _choice(getattr(found, name)) for name in ("before", "best")}
    table = [_choice(choice) for choice in found.table]
    return {"goal": found.goal, "why": found.why, "judged": found.judged, **told, "table": table}


def _nothing(found: Optimum) -> str:
    if not found.before.verdict.known:
        return "nothing was found: what a node has, or what a line of its ledger takes, is not known (see --why)"
    if not found.before.verdict.kv:
        return "nothing was found: how many tokens a KV pool holds is not known for this model and engine"
    other = "other setting" if found.before.verdict.fits else "setting"
    return f"no {other} was found that fits with something to spare"


def _choice(choice: Choice) -> dict[str, Any]:
    return {
        "keys": choice.variant.keys,
        "fits": choice.verdict.fits,
        "context": choice.recipe.serving.context,
        "sequences": limits.sequences(choice.recipe),
        "batched_tokens": limits.batched_tokens(choice.recipe),
        "room": choice.verdict.room,
        "kv": asdict(choice.verdict.kv) if choice.verdict.kv else None,
        "alone": asdict(choice.alone) if choice.alone else None,
        "together": asdict(choice.together) if choice.together else None,
        "score": choice.score,
    }


def _both(found: Optimum) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    yield from zip(_sides(found.before), _sides(found.best), strict=True)


def _sides(choice: Choice) -> Iterator[tuple[str, str]]:
    for name, tell in _FIGURES:
        yield name, tell(choice)


def _row(choice: Choice) -> tuple[str, ...]:
    keys = ", ".join(f"{key.removeprefix('serving.')} {value}" for key, value in choice.variant.keys.items())
    return (keys or "as it is", *(tell(choice) for _, tell in _FIGURES))


def _fits(choice: Choice) -> str:
    return "yes" if choice.verdict.fits else f"no, {gib(choice.verdict.short)} short"


def _held(choice: Choice) -> str:
    return f"{choice.verdict.sequences:.2f}" if choice.verdict.kv else "not known"


def _rate(of: Callable[[Speed], Estimate], speed: Speed | None) -> str:
    found = of(speed) if speed else None
    return f"{found.value:,.0f}" if found and found.known else "-"


_FIGURES: tuple[tuple[str, Callable[[Choice], str]], ...] = (
    ("fits", _fits),
    (
        "context",
        lambda choice: f"{choice.recipe.serving.context:,}" if choice.recipe.serving.context else "the model's",
    ),
    ("fit at once", _held),
    ("tok/s, one", lambda choice: _rate(lambda speed: speed.decode, choice.alone)),
    ("tok/s, all", lambda choice: _rate(lambda speed: speed.decode_all, choice.together)),
    ("prefill tok/s", lambda choice: _rate(lambda speed: speed.prefill, choice.alone)),
    ("left", lambda choice: gib(choice.verdict.room)),
)
_HEAD = ("change", *(name for name, _ in _FIGURES))
