"""What `plan` says of ranks that run already: the words are what `up` then does."""

from sparkwright.app.launch import Options, prepare, up
from sparkwright.app.standing import standing
from sparkwright.domain.recipe import Recipe
from unit.app.scene import Scene, recipe, scene, wish


async def told(here: Scene, of: Recipe) -> str:
    outcome = await prepare(here.world, wish(recipe=of))
    return standing(outcome.plan, outcome.survey)


async def test_nothing_runs_and_nothing_is_said() -> None:
    """Guards the common case, and ranks that have ended: they are only removed."""
    here = scene()
    assert await told(here, recipe()) == ""
    await up(here.world, wish(), Options())
    for node in here.nodes:
        for rank in node.ranks.values():
            rank.state = "exited"
    assert await told(here, recipe()) == ""


async def test_a_running_deployment_is_told_before_it_is_stopped() -> None:
    """Guards half an hour of loading: a changed recipe of the same name ends what serves now."""
    here = scene()
    await up(here.world, wish(), Options())
    name = wish().deployment
    assert await told(here, recipe()) == f"{name} runs already, as planned here: `up` would start nothing"
    changed = await told(here, recipe(port=8001))
    assert changed == f"{name} runs, but not as planned here: `up` would stop its 2 rank(s) and start it anew"
