"""A restart or a stop that a person asks for: refused while it serves and cannot work, and ended with a sentence."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from sparkwright.app.serve.restart import halt_deployment, restart
from sparkwright.app.serve.running import until_serving
from sparkwright.domain.codec import to_json
from sparkwright.domain.command import Completed
from sparkwright.domain.errors import Busy, NotReady, Unreachable
from sparkwright.domain.live import Ask, DeploymentState, Live, Request, RequestAnswer
from sparkwright.domain.progress import Notice
from sparkwright.remote import service
from unit.app.scene import ClusterScene
from unit.app.test_status import running

READY = Live(1000.0, "twin", DeploymentState.READY, 990.0)
LOST = Unreachable("spark-2", "the host key of spark-2 has CHANGED", "ssh-keygen -R spark-2", "ssh-keygen -R")


def show_lives(here: ClusterScene, *lives: Live | None) -> ClusterScene:
    """Shows a supervisor's reports, one a look, the last one for ever; None: it is gone."""
    told = {"deployment": "twin", "running": True, "by": "", "unit": "", "endpoint": ""}
    rows = [[{**told, "live": json.loads(to_json(live)), "now": live.at}] if live else [] for live in lives]
    here.nodes[0].on("python3 -I -", *(json.dumps(row) for row in rows))
    here.nodes[0].default = Completed(0, "")
    return here


def answered(live: Live, **answer: str) -> Live:
    return replace(live, answers=(RequestAnswer("0123456789abcdef", **answer),))


def supervisor_requests(here: ClusterScene) -> list[str]:
    """Requests that reached the supervisor."""
    return [change for change in here.nodes[0].changes if change in ("restart twin", "halt twin")]


@pytest.mark.parametrize("verb", [restart, halt_deployment])
async def test_what_serves_is_left_alone_while_a_node_cannot_be_asked(verb: Any) -> None:
    """Exit 3 with the cure, and the supervisor hears nothing."""
    here = show_lives(running(), READY)
    here.nodes[1].on("", LOST)
    with pytest.raises(Unreachable) as caught:
        await verb(here.services, "twin")
    assert caught.value.exit_code == 3 and "twin serves and was left as it is" in caught.value.message
    assert caught.value.hint == "ssh-keygen -R spark-2" and supervisor_requests(here) == []


async def test_what_does_not_serve_may_be_restarted() -> None:
    """Nothing is lost by it: the supervisor starts it once the node answers."""
    here = show_lives(running(), replace(READY, phase=DeploymentState.BACKING_OFF), answered(READY))
    here.nodes[1].on("", LOST)
    await restart(here.services, "twin")
    assert supervisor_requests(here) == ["restart twin"]


async def test_a_name_that_no_node_knows_may_be_on_the_one_that_is_lost() -> None:
    """Guards "no deployment twin" for a head whose sshd is dead."""
    here = running()
    for node in here.nodes:
        node.ranks.clear()
        node.default = Completed(0, "")
    here.nodes[0].on("", LOST)
    with pytest.raises(Unreachable):
        await restart(here.services, "twin")


async def test_the_refusal_of_the_supervisor_is_the_end() -> None:
    """It cannot ask a node that this machine can."""
    here = show_lives(
        running(), READY, answered(READY, refused="twin serves and was left as it is: no route", cure="ping")
    )
    with pytest.raises(Unreachable) as caught:
        await restart(here.services, "twin")
    assert "was left as it is: no route" in caught.value.message and caught.value.hint == "ping"


async def test_what_is_being_replaced_is_not_restarted() -> None:
    """The sentence names what replaces it and who asked for that."""
    here = show_lives(running(), READY)
    theirs = to_json(Request(Ask.REPLACE, "root@laptop-opa", "being replaced by recipe chat2", "n"))
    here.nodes[0].on('ln "$t"', Completed(service.OCCUPIED, f"7\n{theirs}"))
    with pytest.raises(Busy) as caught:
        await restart(here.services, "twin")
    assert caught.value.message == "twin is being replaced by recipe chat2, asked for by root@laptop-opa"


async def test_a_request_that_is_never_taken_up_names_its_owner() -> None:
    """Guards an endless wait behind a supervisor that hangs."""
    here = show_lives(running(), READY)
    theirs = to_json(Request(Ask.HALT, "bob@desk", "stopped by an operator", "n"))
    here.nodes[0].on('ln "$t"', Completed(service.OCCUPIED, f"65\n{theirs}"))
    with pytest.raises(Busy) as caught:
        await restart(here.services, "twin")
    assert "the halt that bob@desk asked for 65 s ago" in caught.value.message


async def wait_for_serving(here: ClusterScene) -> str:
    return await until_serving(here.services, "spark-1", "twin", "0123456789abcdef")


async def test_a_restart_that_was_replaced_ends_with_who_did_it() -> None:
    """Guards a wait without a word after another laptop's switch."""
    draining = answered(replace(READY, phase=DeploymentState.DRAINING))
    here = show_lives(running(), draining, None)
    here.nodes[0].on(
        "audit.log",
        "2026-11-27T19:00:00Z root@laptop-opa disarm twin: replaced by chat2\nnow 2026-11-27T19:00:09Z\n",
    )
    assert await wait_for_serving(here) == "it was replaced by chat2, by root@laptop-opa at 19:00:00 UTC"


async def test_a_restart_that_cannot_verify_the_stop_ends() -> None:
    """Guards 594 seconds: its reason has the cure."""
    why = "cannot verify that all is stopped: spark-2: the host key has CHANGED; ssh-keygen -R"
    waits = answered(replace(READY, phase=DeploymentState.BACKING_OFF, reason=why, unverified=900.0, incident=3))
    here = show_lives(running(), READY, waits)
    with pytest.raises(NotReady) as caught:
        await restart(here.services, "twin")
    assert "ssh-keygen -R" in caught.value.message and "incidents list twin" in caught.value.hint


async def test_two_restarts_at_once_both_see_the_end() -> None:
    """The second request is the last one that the supervisor shows; the first was accepted as well."""
    both = replace(READY, request="n2", answers=(RequestAnswer("0123456789abcdef"), RequestAnswer("n2")))
    here = show_lives(running(), replace(both, phase=DeploymentState.LOADING), both)
    assert await wait_for_serving(here) == ""


async def test_ctrl_c_says_that_the_restart_goes_on() -> None:
    """Guards "stopped", which reads as if the deployment was."""
    here = show_lives(running(), READY, answered(replace(READY, phase=DeploymentState.LOADING)))
    task = asyncio.ensure_future(restart(here.services, "twin"))
    while not supervisor_requests(here):
        assert not task.done(), task
        await asyncio.sleep(0)
    for _ in range(50):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    said = [one.text for one in here.sink.of(Notice)]
    assert said[-1] == "interrupted: the restart of twin goes on; `sparkwright status twin` shows it"
