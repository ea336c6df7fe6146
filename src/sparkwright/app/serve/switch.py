"""The console's switch: a deployment that rests on the head, started in place of one that serves.

It is the swap of `up` and `switch`: the old supervisor leaves the nodes and waits. If the process that switches ends,
that supervisor looks whether the new deployment serves, and starts the old one again if it does not.
"""

from contextlib import suppress

from sparkwright.app import ranks as rank_work
from sparkwright.app.lease import taking_over
from sparkwright.app.serve.restart import halt_deployment, restart
from sparkwright.app.serve.running import Old, answers_clients, find_running, missing, require_its_nodes
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
    old, new = await find_running(here, name), await find_running(there, other)
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
            await finished(_roll_back(swap, there, error))
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


async def _roll_back(swap: Swap, there: Services, error: Exception) -> None:
    with suppress(SparkwrightError):
        await halt_deployment(there, swap.launch_request.deployment)
    await swap.hand_back(error)
