"""`plan A B C --nodes 1,2,4`: recipes and models on stock nodes, one row for each with each count of nodes."""

from collections.abc import Sequence
from typing import Any

from sparkwright.app.plan.estimate import ComparisonRow
from sparkwright.cli.columns import aligned, fold_line
from sparkwright.cli.plan_result import plan_json
from sparkwright.domain.ledger import Fit
from sparkwright.domain.plan import Plan, stopping
from sparkwright.domain.units import gib
from sparkwright.domain.verdict import Estimate
from sparkwright.planner.stock import node_types

_HEAD = ("", "nodes", "verdict", "KV tokens", "users at context", "tok/s, one", "tok/s, together", "short")
_MEMORY = ("MEM001", "MEM002", "MEM003")
_LONG = 60  # characters of a reason in the table


def rows_text(found: Sequence[ComparisonRow], kind: str) -> str:
    """The table; what each row stands on and what cannot be planned is below it."""
    type_ = node_types()[kind]
    assumed = f"assumed: {type_.title}: {type_.total:.1f} GiB, {type_.free:.1f} GiB free; no node was asked"
    table = aligned([_HEAD, *map(_row, found)])
    notes = dict.fromkeys(f"{one.name}: {one.trouble}" for one in found if one.trouble)
    more = "more of one of them: sparkwright plan NAME --nodes N"
    if several := next((one for one in found if one.replicas > 1 and one.plan), None):
        size = several.plan.recipe.nodes if several.plan else 1
        label = f"{several.nodes}: {several.replicas} x {size}"
        more = f"{label} are {several.replicas} replicas of {size} behind one address; `one` is one user\n{more}"
    return "\n\n".join(
        filter(None, (fold_line(assumed, 2), table, "\n".join(fold_line(note, 2) for note in notes), more))
    )


def rows_json(found: Sequence[ComparisonRow]) -> dict[str, Any]:
    """`plans`: each as of `plan --json` with its name and nodes, or {name, nodes, error}.

    With more than one replica the plan is that of one of them.
    """
    rows = []
    for one in found:
        told: dict[str, Any] = plan_json(one.plan, ()) if one.plan else {"error": one.trouble}
        rows.append({"name": one.name, "nodes": one.nodes, "replicas": one.replicas} | told)
    return {"plans": rows}


def _row(one: ComparisonRow) -> tuple[str, ...]:
    if one.plan is None or one.plan.verdict is None:
        return (one.name, str(one.nodes), "no plan", "", "", "", "", "see below")
    plan, found = one.plan, one.plan.verdict
    kv = found.kv if found.known and found.fit is not Fit.NOT and found.kv and found.kv.tokens else None
    context = plan.recipe.serving.context or (kv.context if kv else 0)
    many = one.replicas
    users = f"{found.sequences * many:.{int(many == 1)}f} x {context:,}" if kv and context else ""
    alone, busy = _speeds(plan, many) if found.known and found.fit is not Fit.NOT else ("", "")
    tokens = f"{found.tokens * many:,}" if kv else ""
    nodes = f"{one.nodes}: {many} x {plan.recipe.nodes}" if many > 1 else str(one.nodes)
    verdict = "refused" if _is_refused(plan) else str(found.fit)
    return (one.name, nodes, verdict, tokens, users, alone, busy, _short(plan))


def _speeds(plan: Plan, replicas: int) -> tuple[str, str]:
    alone = next((one.decode for one in plan.speeds if one.load.concurrency == 1 and one.decode.known), None)
    busy = next((one for one in plan.speeds if one.load.concurrency > 1 and one.decode_all.known), None)
    together = f"{_rate(busy.decode_all, replicas)}, {busy.load.concurrency * replicas:,} streams" if busy else ""
    return _rate(alone) if alone else "", together


def _rate(one: Estimate, times: int = 1) -> str:
    value, low, high = (figure * times for figure in (one.value, one.low, one.high))
    digits = 1 if value < 100 else 0
    return f"{value:,.{digits}f} ({low:,.{digits}f}-{high:,.{digits}f})"


def _short(plan: Plan) -> str:
    """The missing memory in GiB, a figure that nobody gives, or the checks that refuse it."""
    found = plan.verdict
    if found is None:
        return ""
    if not found.known and not found.short:
        return next(iter(found.missing), "")[:_LONG]
    other = ", ".join(_refusals(plan))
    if _is_refused(plan):
        return f"{other}; otherwise {found.fit}"
    return "; ".join(
        [
            *([f"{gib(found.short)} on a node"] if found.short else []),
            *([f"refused: {other}"] if other else []),
        ]
    )


def _refusals(plan: Plan) -> dict[str, None]:
    """Codes of the checks that stop it for another reason than memory."""
    return dict.fromkeys(one.code for one in stopping(plan, "") if one.code not in _MEMORY)


def _is_refused(plan: Plan) -> bool:
    """True if memory alone would let it start, and something else does not."""
    found = plan.verdict
    return found is not None and found.known and found.fit is not Fit.NOT and bool(_refusals(plan))
