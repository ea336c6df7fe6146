"""A planned restart: by the supervisor where there is one, else from here."""

from sparkwright.app import ranks as rank_work
from sparkwright.app.disarm import taking_over
from sparkwright.app.launch import again
from sparkwright.app.plan import api_key
from sparkwright.app.standing import Old, find, missing, until_serving
from sparkwright.app.world import Wish, World
from sparkwright.domain.codec import to_json
from sparkwright.domain.errors import CommandFailed, NotReady, UsageError
from sparkwright.domain.live import Ask, Request, Supervised
from sparkwright.domain.progress import StepDone, StepStarted
from sparkwright.remote import request, service

_GRACE = 30.0


async def restart(world: World, name: str) -> float:
    """Seconds until it served again. Raises UsageError, NotReady, Busy, NodeError."""
    old = await find(world, name)
    if old is None:
        raise await missing(world, name)
    began = world.clock.monotonic()
    world.sink.tell(StepStarted("restart", name))
    await (_asked(world, old.supervised) if old.supervised else _from_here(world, old))
    world.sink.tell(StepDone("restart", world.clock.monotonic() - began))
    return world.clock.monotonic() - began


async def _asked(world: World, supervised: Supervised) -> None:
    """Cancelled it only stops watching."""
    node, name = supervised.node, supervised.deployment
    state = world.cluster.node(node).paths.state
    asked = to_json(Request(Ask.RESTART, world.who, "a planned restart", world.nonce))
    done = await world.hosts[node].run(request.ask(state, name, asked, "restart"))
    if not done.ok:
        raise CommandFailed(node, f"the supervisor of {name} could not be asked: {done.stderr.strip()[:200]}")
    await world.hosts[node].run(service.resume(state, name))
    if why := await until_serving(world, node, name, world.nonce):
        raise NotReady(f"{name} does not serve after the restart: {why}", f"`sparkwright incidents list {name}`")


async def _from_here(world: World, old: Old) -> None:
    if old.desired is None:
        said = f"what {old.name} was started from is not recorded, and no supervisor knows it"
        raise UsageError(said, f"`sparkwright down {old.name}`, then `sparkwright up` with its recipe")
    recipe = old.desired.recipe
    wish = Wish(recipe, old.name, old.desired.force, api_key(world, recipe))
    nodes = list(dict.fromkeys(rank.node for rank in old.ranks))
    async with taking_over(world, nodes, old.name, f"restart {old.name}", False):
        await rank_work.stop_all(world, old.ranks, _GRACE, remove=True)
    await again(world, wish, True)
