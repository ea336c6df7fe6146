"""The report of `plan` on ranks that run already: its words are what `up` then does."""

from dataclasses import replace

import pytest

from fakes.rank_node import STATE
from sparkwright.app.lease import taken_down
from sparkwright.app.plan.planning import make_plan
from sparkwright.app.serve.launch import Options, up
from sparkwright.app.serve.prepare import prepare
from sparkwright.app.serve.running import Old, describe_running, differences, replaced_text
from sparkwright.domain.facts import RankStatus
from sparkwright.domain.live import Desired
from sparkwright.domain.recipe import Recipe
from sparkwright.remote import service
from unit.app.plan.test_plan import state_of_nodes
from unit.app.scene import ClusterScene, make_scene, recipe, request


async def reported(here: ClusterScene, of: Recipe) -> str:
    outcome = await prepare(here.services, request(recipe=of))
    return describe_running(outcome.plan, outcome.cluster_state)


async def test_nothing_runs_and_nothing_is_reported() -> None:
    """Guards the common case, and ranks that have ended: they are only removed."""
    here = make_scene()
    assert await reported(here, recipe()) == ""
    await up(here.services, request(), Options())
    for node in here.nodes:
        for rank in node.ranks.values():
            rank.state = "exited"
    assert await reported(here, recipe()) == ""


async def test_the_address_for_clients_is_the_one_that_ssh_connects_to() -> None:
    """Guards an engine's URL with an alias of ssh's configuration, which no client can resolve."""
    here = make_scene()
    here.nodes[0].called = "spark-7.example.org"
    assert (await prepare(here.services, request())).called == "spark-7.example.org"


async def test_a_running_deployment_is_reported_before_it_is_stopped() -> None:
    """Guards half an hour of loading: a changed recipe of the same name ends what serves now."""
    here = make_scene()
    await up(here.services, request(), Options())
    name = request().deployment
    assert await reported(here, recipe()) == f"{name} runs already, as planned here: `up` would start nothing"
    changed = await reported(here, recipe(port=8001))
    assert changed == f"{name} runs, but not as planned here: `up` would stop its 2 rank(s) and start it again"


def test_what_differs_is_named_key_by_key() -> None:
    """Guards an operator who replaces more than was meant: the old value and the new one, and no prose of the file."""
    old = recipe()
    new = replace(recipe(port=8001), env={**old.env, "A": "1"}, title="another", hash="f" * 12, source="./x.yaml")
    assert differences(old, new) == ("env.A: none -> 1", "serving.port: 8000 -> 8001")
    text = replaced_text(Old("chat", (), desired=Desired("chat", make_scene().services.cluster, old)), new)
    assert text.startswith("chat serves (recipe twin ") and "serving.port: 8000 -> 8001" in text


def neighbour(name: str, forced: bool = False, running: bool = True) -> tuple[RankStatus, ...]:
    made = RankStatus(name, 0, "spark-1", "process", "running" if running else "exited", "/x", port=8000, forced=forced)
    return made, replace(made, rank=1, node="spark-2")


def finding_codes(ranks: tuple[RankStatus, ...], **asked: str) -> set[str]:
    here = make_scene()
    cluster_state = state_of_nodes("spark-1", "spark-2")
    facts = {n: replace(f, ranks=tuple(r for r in ranks if r.node == n)) for n, f in cluster_state.facts.items()}
    plan = make_plan(here.services, replace(request(), **asked), replace(cluster_state, facts=facts))
    return {finding.code for finding in plan.findings}


def test_what_is_replaced_is_nobody_in_the_way() -> None:
    """Its ranks are stopped before the first new one starts."""
    assert "RANK001" in finding_codes(neighbour("chat"))
    assert "RANK001" not in finding_codes(neighbour("chat"), replaces="chat")
    assert "RANK001" in finding_codes((*neighbour("chat"), *neighbour("third")), replaces="chat")


@pytest.mark.parametrize(("known", "forced"), [(True, True), (True, False), (False, True)])
def test_who_was_there_first_is_not_refused_for_a_newcomer(known: bool, forced: bool) -> None:
    """Guards a deployment that failed: its own `up` needs no --force because somebody has forced another one in."""
    own = neighbour(request().deployment, running=False) if known else ()
    assert ("RANK001" in finding_codes((*own, *neighbour("newcomer", forced)))) is not (known and forced)


AUDIT = "2026-11-22T14:23:01Z bob@desk disarm chat: down\nnow 2026-11-22T14:23:{}Z\n"


@pytest.mark.parametrize(
    ("reported", "who"),
    [
        (AUDIT.format("09"), "bob@desk at 14:23:01 UTC"),
        (AUDIT.format("59"), ""),
        ("now 2026-11-22T14:23:09Z\n", ""),
        ("9999-99-99T99:99:99Z bob disarm chat: down\nnow 2026-11-22T14:23:09Z\n", ""),
        ("2026-11-22T14:23:01Z \x1b[2Jbob disarm chat: down\nnow 2026-11-22T14:23:09Z\n", "[2Jbob at 14:23:01 UTC"),
    ],
)
async def test_who_has_taken_it_down_is_named(reported: str, who: str) -> None:
    """The name comes from the node's audit log, whose lines are not trusted, and only while it is news."""
    here = make_scene()
    here.nodes[0].on(lambda command: command == service.taken_down(STATE, "chat"), reported)
    assert await taken_down(here.services, "spark-1", "chat", 20.0) == who


def test_a_recipe_is_named_as_it_is_found_again() -> None:
    """Guards a hint that names a file's stem: no recipe has that name."""
    mine = replace(recipe(), source="./broken.yaml")
    assert (mine.asked, replace(mine, profile="256k").asked) == ("./broken.yaml", "./broken.yaml@256k")
    assert replace(recipe(), source="shipped/twin.yaml").asked == "twin"
    assert replace(recipe(), source="~/.config/sparkwright/recipes/twin.yaml").asked == "twin"
