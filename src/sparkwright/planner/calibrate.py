"""Calibration: figures that an engine printed at a start, as certain values for the next plan.

Weights hold wherever model, engine, split and settings are the same; the KV pool and the graphs also need the same
limits. Another node's figures, or those of another driver or image, are used too, with a wider range and a note.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime

from sparkwright.domain.calibration import Calibration, Conditions
from sparkwright.domain.deployment import Phase
from sparkwright.domain.recipe import Parallelism, Recipe
from sparkwright.domain.units import GIB, MIB
from sparkwright.domain.verdict import Estimate
from sparkwright.engines.catalog import traits
from sparkwright.engines.traits import Claim
from sparkwright.planner.ledger import memory_fraction

_SAME_POOL = 0.01  # MemAvailable is never twice the same
# A relaunch finds files and kernels cached or not: 114 s of weights after 230 s at first, starts of 80 s to 12 minutes
# of one model. Another node's disk may be anything.
_AGAIN, _AGAIN_ELSEWHERE = (0.4, 1.5), (1 / 3, 3.0)
_LIMITS = ("context", "sequences", "batched_tokens", "kv_dtype", "memory_fraction", "kv_cache_bytes")


def conditions(recipe: Recipe, simulated: bool, **where: str | int) -> Conditions:
    """The conditions a rank of the recipe is measured under. where: rank, node, image, driver, as far as known."""
    model, engine, serving = recipe.model, recipe.engine, asdict(recipe.serving)
    drafts = asdict(replace(recipe.speculation, draft=None))  # its dimensions are read where a node has them
    settings = {"flags": recipe.flags, "env": recipe.env, "speculation": drafts}
    return Conditions(
        recipe=recipe.label,
        model=f"{model.label} {model.revision}".strip(),
        engine=f"{engine.name} {engine.version}",
        split=_split(recipe.parallelism),
        settings=_digest(settings),
        limits=_digest({name: serving[name] for name in _LIMITS}),
        recipe_hash=recipe.hash,
        simulated=simulated,
        **where,  # type: ignore[arg-type]
    )


def measured(facts: Mapping[str, str], under: Conditions, **more: object) -> Calibration:
    """The figures of one rank's log (facts.engine_log) as bytes and tokens; a figure that is no number is left out."""
    value = _number(facts.get("kv_tokens", ""))
    return Calibration(
        under,
        weights=_bytes(facts, "weights"),
        kv=_bytes(facts, "kv"),
        kv_tokens=None if value is None else int(value),
        graphs=_bytes(facts, "graphs") or _bytes(facts, "graphs_estimate"),
        activations=_bytes(facts, "activations"),
        other=_bytes(facts, "other"),
        whole=_bytes(facts, "whole"),
        **({"pool": _bytes(facts, "total") or 0} | more),  # type: ignore[arg-type]
    )


def choose(known: Iterable[Calibration], wanted: Conditions, alike: bool = True) -> Calibration | None:
    """The figures that fit best these conditions, `differs` set; None when nothing known holds for them.

    The same limits count more than the same rank, node, driver and image; of equals the newest is taken. alike: every
    rank holds as much as any other, as those of tp do: then one speaks for all.
    """
    fit = [one for one in known if one.conditions.family == wanted.family and not one.is_empty]
    fit = [one for one in fit if alike or one.conditions.rank == wanted.rank]

    def likeness(one: Calibration) -> tuple[object, ...]:
        of = one.conditions
        return of.limits == wanted.limits, of.rank == wanted.rank, *_places(of, wanted), one.at

    best = max(fit, key=likeness, default=None)
    return replace(best, differs=(*best.differs, *_differences(best.conditions, wanted))) if best else None


def holding(calibration: Calibration | None, recipe: Recipe) -> Calibration | None:
    """The calibration with only the figures that hold for this recipe; None when none does.

    The simulator's figures count in no ledger: it allocates nothing.
    """
    if calibration is None or calibration.conditions.simulated:
        return None
    wanted, under = conditions(recipe, calibration.conditions.simulated), calibration.conditions
    if under.family != wanted.family:
        return None
    if under.limits == wanted.limits:
        return calibration
    alone = replace(
        calibration, kv=None, kv_tokens=None, graphs=None, activations=None, other=None, whole=None, kept=None
    )
    return None if calibration.weights is None else alone


def calibrate_for_pool(calibration: Calibration, recipe: Recipe, pool: int) -> Calibration:
    """The same where the fraction is of another pool (bytes): the KV pool takes its share of the difference.

    A log from anywhere does not show its pool: what it took may be more than the fraction is here.
    """
    if not pool or calibration.kv is None or recipe.serving.kv_cache_bytes or traits(recipe).claim is Claim.NONE:
        return calibration
    fraction, more = memory_fraction(recipe), pool - calibration.pool
    if not calibration.pool:
        taken = (calibration.weights or 0) + calibration.kv
        return without_pool(calibration, "a larger pool") if taken > fraction * pool else calibration
    if abs(more) < _SAME_POOL * pool:
        return calibration
    kv = max(0, calibration.kv + round(fraction * more))
    return replace(calibration, kv=kv, kv_tokens=None, pool=pool, differs=(*calibration.differs, "another pool"))


def without_pool(calibration: Calibration, why: str) -> Calibration:
    """Its KV pool does not hold here."""
    return replace(calibration, kv=None, kv_tokens=None, differs=(*calibration.differs, why))


def loading(calibration: Calibration | None) -> Estimate | None:
    """Seconds from the start to a server that is up; None where nobody watched from the beginning."""
    phases = dict(calibration.phases) if calibration else {}
    seconds = phases.get("answer") or phases.get("server") or 0.0
    if calibration is None or not seconds:
        return None
    fast, slow = _AGAIN_ELSEWHERE if calibration.differs else _AGAIN
    return Estimate(seconds, seconds * fast, seconds * slow, (source_of(calibration),))


def load_seconds(calibration: Calibration) -> float | None:
    """Seconds in which weights were read; None where nobody watched from the beginning."""
    marks = sorted((at, name) for name, at in calibration.phases)
    began = next((at for at, name in marks if name == Phase.LOAD), None)
    ended = next((at for at, _ in marks if began is not None and at > began), None)
    return None if began is None or ended is None else ended - began


def source_of(calibration: Calibration) -> str:
    """`measured at the start of 2026-11-21 by v4 on spark-1`, with what was different then."""
    node, source = calibration.conditions.node, calibration.source
    when = f" at the start of {datetime.fromtimestamp(calibration.at, UTC):%Y-%m-%d}" if calibration.at else ""
    where = f" by {source} on {node}" if node else f", as in {source}"
    made_up = "simulated: " if calibration.conditions.simulated else ""
    differs = f"; not the same: {', '.join(calibration.differs)}" if calibration.differs else ""
    return f"{made_up}measured{when}{where}{differs}"


def _places(of: Conditions, wanted: Conditions) -> tuple[bool, bool, bool]:
    return of.node == wanted.node, of.driver == wanted.driver, of.image == wanted.image


def _differences(of: Conditions, wanted: Conditions) -> tuple[str, ...]:
    """The known differences; a log from anywhere does not show its node, driver and image."""
    node, driver, image = _places(of, wanted)
    found = {
        "another node": of.node and not node,
        f"driver {of.driver} then": of.driver and not driver,
        "another image": of.image and not image,
        f"rank {of.rank} spoke": of.rank != wanted.rank,
    }
    return tuple(text for text, different in found.items() if different)


def _split(split: Parallelism) -> str:
    sizes = {"tp": split.tp, "pp": split.pp, "dp": split.dp}
    words = [f"{name} {size}" for name, size in sizes.items() if size > 1 or name == "tp"]
    return ", ".join([*words, "ep"] if split.ep else words)


def _digest(settings: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()[:12]


def _bytes(facts: Mapping[str, str], figure: str) -> int | None:
    for unit, size in (("gib", GIB), ("mib", MIB)):
        value = _number(facts.get(f"{figure}_{unit}", ""))
        if value is not None:
            return round(value * size)
    return None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < 1e15 else None
