"""`plan A B` side by side, and `plan --optimize GOAL`: what was found, what else could be had, the keys to paste."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from sparkwright.app.serve.prepare import Planned
from sparkwright.cli.columns import aligned, fold_line, simulated_mark
from sparkwright.domain.ledger import KV_POOL, WEIGHTS, Fit
from sparkwright.domain.plan import Plan, stopping
from sparkwright.domain.units import duration, gib
from sparkwright.domain.verdict import Choice, Estimate, Optimum, Speed
from sparkwright.planner import limits
from sparkwright.planner.remedies import yaml_lines


def optimum_text(found: Optimum) -> str:
    """The present and the best setting side by side, other settings, and YAML for the recipe."""
    parts = [fold_line(f"optimized for {found.goal}: {found.why} ({found.judged} settings judged)", 2)]
    if found.best.variant == found.before.variant:
        parts.append("no setting that fits reaches more than the recipe's own" if found.table else _nothing(found))
        parts.append(aligned([(name, tell(found.before)) for name, tell in _FIGURES]))
    else:
        rows = [("", "now", "best"), *((name, tell(found.before), tell(found.best)) for name, tell in _FIGURES)]
        parts += [aligned(rows), "in the recipe\n" + "\n".join(f"  {line}" for line in yaml_lines(found.best.variant))]
    if len(found.table) > 1:
        parts.append("other settings that fit\n" + aligned([_HEAD, *(_row(choice) for choice in found.table)]))
    return "\n\n".join(parts)


def optimum_json(found: Optimum) -> dict[str, Any]:
    """goal, why, judged, before, best, table; each setting with its keys, figures and speeds."""
    return {
        "goal": found.goal,
        "why": found.why,
        "judged": found.judged,
        "before": _choice(found.before),
        "best": _choice(found.best),
        "table": [_choice(choice) for choice in found.table],
    }


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


def _row(choice: Choice) -> tuple[str, ...]:
    keys = ", ".join(f"{key.removeprefix('serving.')} {value}" for key, value in choice.variant.keys.items())
    return (keys or "as it is", *(tell(choice) for _, tell in _FIGURES))


def _rate(of: Callable[[Speed], Estimate], speed: Speed | None) -> str:
    found = of(speed) if speed else None
    return f"{found.value:,.0f}" if found and found.known else "-"


_FIGURES: tuple[tuple[str, Callable[[Choice], str]], ...] = (
    ("fits", lambda one: "yes" if one.verdict.fits else f"no, {gib(one.verdict.short)} short"),
    ("context", lambda one: f"{one.recipe.serving.context:,}" if one.recipe.serving.context else "the model's"),
    ("fit at once", lambda one: f"{one.verdict.sequences:.2f}" if one.verdict.kv else "not known"),
    ("tok/s, one", lambda choice: _rate(lambda speed: speed.decode, choice.alone)),
    ("tok/s, all", lambda choice: _rate(lambda speed: speed.decode_all, choice.together)),
    ("prefill tok/s", lambda choice: _rate(lambda speed: speed.prefill, choice.alone)),
    ("left", lambda choice: gib(choice.verdict.room)),
)
_HEAD = ("change", *(name for name, _ in _FIGURES))
_DECODE = "decode"


def comparison_text(planned: Sequence[Planned]) -> str:
    """One column a recipe; what cannot be planned is listed below."""
    head = ("", *(one.recipe.label for one in planned))
    rows = [(name, *(read(one.outcome.plan) if one.outcome else "-" for one in planned)) for name, read in _ROWS]
    notes = [f"{one.recipe.label}: {one.trouble}" for one in planned if one.trouble]
    return "\n".join([aligned([head, *(row for row in rows if any(row[1:]))]), *(["", *notes] if notes else [])])


def comparison_json(planned: Sequence[Planned], told: Callable[[Plan], dict[str, Any]]) -> dict[str, Any]:
    """`plans`: each as of `plan --json`, or {recipe, error}."""
    rows = []
    for one in planned:
        failed = {"recipe": one.recipe.label, "error": one.trouble}
        rows.append(told(one.outcome.plan) if one.outcome else failed)
    return {"plans": rows}


def _fits_text(plan: Plan) -> str:
    if plan.verdict is None or plan.verdict.fit is Fit.UNKNOWN:
        return "not known"
    made_up = simulated_mark(plan.recipe.model.simulated or plan.cluster.simulated)
    if plan.verdict.fit is Fit.MAY:
        return f"{made_up}may not"
    return f"{made_up}yes" if plan.verdict.fits else f"no: {gib(plan.verdict.short)} short on {plan.verdict.node}"


def _up(plan: Plan) -> str:
    stops = dict.fromkeys(finding.code for finding in stopping(plan, ""))
    return f"refuses: {', '.join(stops)}" if stops else "would start it"


def _line(name: str) -> Callable[[Plan], str]:
    """A line of the ledger on the node that has most of it."""

    def read(plan: Plan) -> str:
        lines = [line for ledger in plan.ledgers if (line := ledger.line(name))]
        return gib(max(line.bytes for line in lines)) if lines and all(line.known for line in lines) else "not known"

    return read


def _kv(read: Callable[[Any], str]) -> Callable[[Plan], str]:
    return lambda plan: read(plan.verdict.kv) if plan.verdict and plan.verdict.kv else "not known"


def _deep(plan: Plan) -> str:
    deep = next((one for one in plan.speeds if one.load.depth and one.load.concurrency == 1), None)
    return f"{_rates(deep.decode)} at {deep.load.depth:,}" if deep and deep.decode.known else ""


def _together(plan: Plan) -> str:
    many = next((one for one in plan.speeds if one.load.concurrency > 1), None)
    return f"{_rates(many.decode_all)}, {many.load.concurrency} streams" if many and many.decode_all.known else ""


def _published(plan: Plan) -> str:
    figure = next((f for f in plan.recipe.published if f.what.startswith(_DECODE)), None)
    return f"{figure.value:g} {figure.unit}" if figure else ""


def _of_first(read: Callable[[Speed], str]) -> Callable[[Plan], str]:
    return lambda plan: read(plan.speeds[0]) if plan.speeds else ""


def _first(one: Speed) -> str:
    return f"{duration(one.ttft.value)} for {one.load.prompt:,}" if one.ttft.known else ""


def _rates(one: Estimate) -> str:
    return f"{one.value:,.0f} tok/s ({one.low:,.0f}-{one.high:,.0f})" if one.known else ""


_ROWS: tuple[tuple[str, Callable[[Plan], str]], ...] = (
    ("engine", lambda plan: plan.recipe.engine.label),
    ("nodes", lambda plan: str(plan.recipe.nodes)),
    ("fits", _fits_text),
    ("`up`", _up),
    ("weights a node", _line(WEIGHTS)),
    ("KV pool a node", _line(KV_POOL)),
    ("KV tokens, reported", _kv(lambda kv: f"{kv.reported:,}")),
    ("KV tokens, true", _kv(lambda kv: f"{kv.tokens:,}")),
    ("context", lambda plan: f"{n:,} tokens" if (n := plan.recipe.serving.context) else "the model's"),
    ("sequences of it", _kv(lambda kv: f"{kv.sequences:.2f}")),
    ("left on the fullest", lambda plan: gib(plan.verdict.room) if plan.verdict and plan.verdict.known else ""),
    ("decode, 1 stream", _of_first(lambda one: _rates(one.decode))),
    ("decode, at depth", _deep),
    ("decode, together", _together),
    ("prefill", _of_first(lambda one: _rates(one.prefill))),
    ("first token", _of_first(_first)),
    ("loading", _of_first(lambda one: duration(one.loading.value) if one.loading.known else "")),
    ("published decode", _published),
)
