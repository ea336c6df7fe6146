"""`down`: what is left afterwards, whatever there was before."""

import asyncio

import pytest

from fakes.endpoint import FakeEndpoint
from fakes.rank_node import STATE, Exit
from sparkwright.app.serve.launch import Options, up
from sparkwright.app.serve.stop import Removed, down
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.errors import Busy, CommandFailed, NotReady, Unreachable, UsageError
from sparkwright.domain.progress import Notice
from sparkwright.facts.ranks import ranks_fact
from sparkwright.remote import service
from unit.app.scene import JOINS, ClusterScene, make_scene, request


async def serving() -> ClusterScene:
    here = make_scene()
    await up(here.services, request(), Options())
    here.journal.clear()
    return here


async def test_nothing_is_left() -> None:
    """Ranks, folders, desired state, leases: on every node."""
    here = await serving()
    removed = await down(here.services, "twin")
    assert here.clean, here.journal
    assert [rank.rank for rank in removed.ranks] == [0, 1]
    assert here.journal[:2] == [("spark-1", "take"), ("spark-2", "take")]


async def test_nothing_is_left_of_what_failed() -> None:
    """A start that failed keeps its evidence on the nodes until then."""
    here = make_scene(endpoint=FakeEndpoint(NotReady("no")))
    here.nodes[1].script = (JOINS, Exit(1))
    with pytest.raises(NotReady):
        await up(here.services, request(), Options())
    assert not here.clean
    await down(here.services, "twin")
    assert here.clean


async def test_a_folder_without_a_rank_goes_too() -> None:
    """A start that died between its folder and its pid leaves files that no listing shows."""
    here = make_scene()
    await here.nodes[1].put(b"x", "/home/ai/.local/state/sparkwright/deployments/twin/rank1/secrets.env")
    here.nodes[1].on("$s/supervision/$2", "was\n")
    await down(here.services, "twin")
    assert here.clean


async def test_a_recipe_that_was_never_started_is_down() -> None:
    """Guards Ctrl-C in the first second of `up`: nothing was put on the nodes, and `down` is no error."""
    here = make_scene()
    assert (await down(here.services, "twin", recipes=("twin", "chat"))).ranks == ()
    assert here.clean
    with pytest.raises(UsageError):
        await down(here.services, "twn", recipes=("twin", "chat"))


async def test_down_twice_is_down_once() -> None:
    """Guards scripts that clean up: a name that a `down` has ended is known for a day."""
    here = make_scene()
    told = "2026-11-22T09:00:00Z anna@laptop disarm twin: down\nnow 2026-11-22T09:30:00Z\n"
    here.nodes[0].on(lambda command: command == service.taken_down(STATE, "twin"), told)
    assert (await down(here.services, "twin")).ranks == ()
    assert here.clean and not here.did("remove", "forget")


async def test_a_name_that_no_node_knows_is_an_error_also_where_nothing_runs() -> None:
    """Guards the exit code of a typing error: the same whatever else runs."""
    here = make_scene()
    with pytest.raises(UsageError) as caught:
        await down(here.services, "twn")
    assert caught.value.hint == "there are: none" and here.clean
    here.nodes[0].holder = '{"holder": "bob@desk", "why": "up twn", "since": 0, "nonce": "f"}'
    with pytest.raises(Busy):  # an `up` that has put nothing there yet
        await down(here.services, "twn")
    assert (await down(here.services, "twn", seize=True)).ranks == (), "a lease that is left can be broken"


async def test_another_name_is_an_error_that_lists_what_there_is() -> None:
    """A typing error must not look like success, and must not touch what runs."""
    here = await serving()
    with pytest.raises(UsageError) as caught:
        await down(here.services, "twn")
    assert (caught.value.message, caught.value.hint) == ("no deployment twn on spark-1, spark-2", "there are: twin")
    assert [node.running for node in here.nodes] == [[0], [1]]
    assert [node.holder for node in here.nodes] == [None, None]


async def test_a_node_out_of_reach_is_reported_after_the_others_are_clean() -> None:
    """Everything reachable is freed; the message names the rest."""
    here = await serving()
    here.nodes[1].on(lambda command: True, Unreachable("spark-2", "no route to host", "is it on?"))
    with pytest.raises(Unreachable) as caught:
        await down(here.services, "twin")
    assert caught.value.message.startswith("spark-2: no route to host")
    assert "down twin" in caught.value.hint
    assert (here.nodes[0].ranks, here.nodes[0].holder) == ({}, None)


async def test_interrupted_it_states_how_to_go_on() -> None:
    """Half of it may be gone by then: a deployment that merely looks stopped keeps its containers and files."""
    here = await serving()

    def interrupt(_: Command) -> list[str]:
        raise asyncio.CancelledError

    here.nodes[1].on(lambda command: command.changes.startswith(("stop ", "remove ")), interrupt)
    with pytest.raises(asyncio.CancelledError):
        await down(here.services, "twin")
    assert ["`sparkwright down twin` again" in notice.text for notice in here.sink.of(Notice)] == [True]
    assert [node.holder for node in here.nodes] == [None, None]


async def test_who_holds_a_node_is_respected() -> None:
    """Nothing stops while somebody else works there, unless the user asks for it."""
    here = await serving()
    here.nodes[0].holder = '{"holder": "bob@desk", "why": "up twin", "since": 0, "nonce": "f"}'
    with pytest.raises(Busy):
        await down(here.services, "twin")
    assert [node.running for node in here.nodes] == [[0], [1]]
    assert isinstance(await down(here.services, "twin", seize=True), Removed)
    assert here.clean


async def test_what_survives_sigkill_is_an_error() -> None:
    """A process in an uninterruptible wait: reported, not passed over, and the lease is back."""
    here = await serving()
    here.nodes[1].on(lambda command: command.changes.startswith("stop "), Completed(1, "rank1: 4711"))
    with pytest.raises(CommandFailed) as caught:
        await down(here.services, "twin")
    assert "4711" in caught.value.message
    assert here.nodes[0].ranks == {}
    assert [node.holder for node in here.nodes] == [None, None]


async def test_containers_that_cannot_be_seen_may_be_left() -> None:
    """A node whose Docker does not answer: "nothing was left" would be a guess. With all ranks found it is none."""
    here = make_scene()
    blind = ranks_fact(here.services.cluster.node("spark-2")).command
    here.nodes[1].on(lambda command: command == blind, Completed(0, "blind\n"))
    with pytest.raises(CommandFailed) as caught:
        await down(here.services, "twin")
    assert "spark-2: Docker could not be asked" in caught.value.message
    assert "twin may be left there" in caught.value.message and "down twin" in caught.value.hint
    assert here.sink.of(Notice) == [], "once is enough"
    await up(here.services, request(), Options())
    here.nodes[1].ranks.clear()
    (left,) = here.nodes[0].ranks.values()
    left.labels["world"] = "1"
    assert [rank.rank for rank in (await down(here.services, "twin")).ranks] == [0]
