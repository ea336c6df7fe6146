"""The memory a start would take on the nodes now: its supervisor makes the same plan before it."""

import asyncio
from collections.abc import Iterator

from sparkwright.app.serve.prepare import prepare
from sparkwright.app.services import LaunchRequest
from sparkwright.console.board import DeploymentWatch
from sparkwright.console.head import services
from sparkwright.domain.errors import SparkwrightError
from sparkwright.domain.plan import Plan, stopping
from sparkwright.domain.units import duration, gib

_PATIENCE = 15.0
Row = tuple[str, str]


async def outlook(watch: DeploymentWatch, who: str, replaces: str = "") -> tuple[Row, ...]:
    """replaces: another deployment, whose memory is free by then. Changes nothing."""
    desired = watch.desired
    if desired is None:
        return ()
    request = LaunchRequest(desired.recipe, watch.name, desired.force, supervised=True, replaces=replaces)
    try:
        async with asyncio.timeout(_PATIENCE), services(watch, who) as made:
            plan = (await prepare(made, request)).plan
    except TimeoutError:
        return (("memory", f"unknown: the nodes did not answer within {duration(_PATIENCE)}"),)
    except SparkwrightError as error:
        return (("memory", f"unknown: {error.message}"),)
    return tuple(rows(plan, desired.force))


def rows(plan: Plan, force: str) -> Iterator[Row]:
    for ledger in plan.ledgers:
        if ledger.pool.bytes:
            left = f"{gib(ledger.left)} are left" if ledger.left >= 0 else f"{gib(-ledger.left)} are missing"
            takes = f"takes {gib(ledger.free - ledger.left)} of {gib(ledger.free)} that it can have"
            yield f"memory on {ledger.node}", f"{takes}: {left}"
    if stops := stopping(plan, force):
        yield "would be refused now", "; ".join(f"{one.code} {one.subject}: {one.title}" for one in stops)
