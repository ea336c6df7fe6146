"""The console's switch: a deployment that rests on the head, started in place of one that serves.

It is the swap of `up` and `switch`: the old supervisor leaves the nodes and waits. If the process that switches ends,
that supervisor looks whether the new deployment serves, and starts the old one again if it does not.
"""

from contextlib import suppress

from sparkwright.app import ranks as rank_work
from sparkwright.app.lease import taking_over
from sparkwright.app.serve.restart import halt, restart
from sparkwright.app.serve.running import Old, answers_clients, find, missing, require_its_nodes, until_serving
from sparkwright.app.serve.swap import Swap
from sparkwright.app.services import LaunchRequest, Services, finished
from sparkwright.domain.errors import SparkwrightError
from sparkwright.domain.live import Ask

_GRACE = 30.0


async def switch_to_resting(here: Services, there: Services, name: str, other: str) -> None:
    """Start `other` in place of `name`, which rests then; if `other` does not become ready, `name` serves again.

    here, there: services with the cluster of `name` and of `other`. Cancellation leaves the end to the supervisor of
    `name`. Raises UsageError, NotReady, Busy, NodeError.
    """
    old, new = await find(here, name), await find(there, other)
    if old is None:
        raise await missing(here, name)
    if new is None or new.desired is None:
        raise await missing(there, other)
    if not answers_clients(old) or old.supervised is None:
        await restart(there, other)
        return
    await require_its_nodes(here, old)
    swap = Swap(here, LaunchRequest(new.desired.recipe, other, replaces=name), old, successor=other)
    swap.check_way_back()
    try:
        await finished(swap.begin())
        await finished(_stop(here, old, other))
        await restart(there, other)
    except Exception as error:
        if swap.stands_by:
            await finished(_return(swap, old, there, error))
        raise
    else:
        await finished(swap.answer(Ask.HALT, f"{other} serves in its place"))
    finally:
        swap.end_renewing()


async def _stop(services: Services, old: Old, other: str) -> None:
    nodes = list(dict.fromkeys(rank.node for rank in old.ranks))
    async with taking_over(services, nodes, old.name, f"switch to {other}", False):
        mine = [rank for rank in await rank_work.all_ranks(services, nodes) if rank.deployment == old.name]
        await rank_work.stop_all(services, mine, _GRACE, remove=False)


async def _return(swap: Swap, old: Old, there: Services, error: Exception) -> None:
    """The old one again, in place of what failed; the error gets to know what serves."""
    assert old.supervised
    why = error.message if isinstance(error, SparkwrightError) else repr(error)
    with suppress(SparkwrightError):
        await halt(there, swap.launch_request.deployment)
    await swap.answer(Ask.RETURN, f"its replacement failed: {why.partition(chr(10))[0][:200]}")
    said = await until_serving(swap.services, old.supervised.node, old.name)
    if isinstance(error, SparkwrightError):
        told = f"rolled back, and {old.name} does not serve either: {said}" if said else f"{old.name} serves again"
        error.message += f"; {told}" if said else f"; rolled back: {told}"
