"""`plan A B ...`: recipes or profiles side by side."""

from collections.abc import Callable, Sequence
from typing import Any

from sparkwright.app.plan import stopping
from sparkwright.app.prepare import Planned
from sparkwright.cli.columns import aligned
from sparkwright.cli.text import mark
from sparkwright.domain.ledger import KV_POOL, WEIGHTS
from sparkwright.domain.plan import Plan
from sparkwright.domain.units import duration, gib
from sparkwright.domain.verdict import Estimate

_DECODE = "decode"


def comparison_text(planned: Sequence[Planned]) -> str:
    """One column a recipe; what cannot be planned is listed below."""
    head = ("", *(one.recipe.label for one in planned))
    rows = [(name, *(read(one.outcome.plan) if one.outcome else "-" for one in planned)) for name, read in _ROWS]
    notes = [f"{one.recipe.label}: {one.trouble}" for one in planned if one.trouble]
    return "\n".join([aligned([head, *(row for row in rows if any(row[1:]))]), *(["", *notes] if notes else [])])


def comparison_json(planned: Sequence[Planned], told: Callable[[Plan], dict[str, Any]]) -> dict[str, Any]:
    """`plans`: each as of `plan --json`, or {recipe, error}."""
    return {
        "plans": [
            told(one.outcome.plan) if one.outcome else {"recipe": one.recipe.label, "error": one.trouble}
            for one in planned
        ]
    }


def _fits(plan: Plan) -> str:
    if plan.verdict is None or not plan.verdict.known:
        return "not known"
    made_up = mark(plan.recipe.model.simulated or plan.cluster.simulated)
    return f"{made_up}yes" if plan.verdict.fits else f"no: {gib(plan.verdict.short)} short on {plan.verdict.node}"


def _up(plan: Plan) -> str:
    stops = stopping(plan, "")
    return f"refuses: {', '.join(dict.fromkeys(finding.code for finding in stops))}" if stops else "would start it"


def _line(name: str) -> Callable[[Plan], str]:
    """A line of the ledger on the node that has most of it."""

    def read(plan: Plan) -> str:
        lines = [line for ledger in plan.ledgers if (line := ledger.line(name))]
        return gib(max(line.bytes for line in lines)) if lines and all(line.known for line in lines) else "not known"

    return read


def _kv(read: Callable[[Any], str]) -> Callable[[Plan], str]:
    return lambda plan: read(plan.verdict.kv) if plan.verdict and plan.verdict.kv else "not known"


def _context(plan: Plan) -> str:
    return f"{plan.recipe.serving.context:,} tokens" if plan.recipe.serving.context else "the model's"


def _alone(plan: Plan) -> str:
    return _rate(plan.speeds[0].decode) if plan.speeds else ""


def _deep(plan: Plan) -> str:
    deep = next((one for one in plan.speeds if one.load.depth and one.load.concurrency == 1), None)
    return f"{_rate(deep.decode)} at {deep.load.depth:,}" if deep and deep.decode.known else ""


def _together(plan: Plan) -> str:
    many = next((one for one in plan.speeds if one.load.concurrency > 1), None)
    return f"{_rate(many.decode_all)}, {many.load.concurrency} streams" if many and many.decode_all.known else ""


def _prefill(plan: Plan) -> str:
    return _rate(plan.speeds[0].prefill) if plan.speeds else ""


def _first(plan: Plan) -> str:
    one = plan.speeds[0] if plan.speeds else None
    return f"{duration(one.ttft.value)} for {one.load.prompt:,}" if one and one.ttft.known else ""


def _loading(plan: Plan) -> str:
    return duration(plan.speeds[0].loading.value) if plan.speeds and plan.speeds[0].loading.known else ""


def _published(plan: Plan) -> str:
    figure = next((f for f in plan.recipe.published if f.what.startswith(_DECODE)), None)
    return f"{figure.value:g} {figure.unit}" if figure else ""


def _rate(one: Estimate) -> str:
    return f"{one.value:,.0f} tok/s ({one.low:,.0f}-{one.high:,.0f})" if one.known else ""


_ROWS: tuple[tuple[str, Callable[[Plan], str]], ...] = (
    ("engine", lambda plan: f"{plan.recipe.engine.name} {plan.recipe.engine.version}"),
    ("nodes", lambda plan: str(plan.recipe.nodes)),
    ("fits", _fits),
    ("`up`", _up),
    ("weights a node", _line(WEIGHTS)),
    ("KV pool a node", _line(KV_POOL)),
    ("KV tokens, reported", _kv(lambda kv: f"{kv.reported:,}")),
    ("KV tokens, true", _kv(lambda kv: f"{kv.tokens:,}")),
    ("context", _context),
    ("sequences of it", _kv(lambda kv: f"{kv.sequences:.2f}")),
    ("left on the fullest", lambda plan: gib(plan.verdict.room) if plan.verdict and plan.verdict.known else ""),
    ("decode, 1 stream", _alone),
    ("decode, at depth", _deep),
    ("decode, together", _together),
    ("prefill", _prefill),
    ("first token", _first),
    ("loading", _loading),
    ("published decode", _published),
)
