"""Holding leases: what others are shown, how they live on, and that they always come back."""

import asyncio
import json

import pytest

from fakes.clock import START
from sparkwright.app.lease import RENEW_EVERY, STALE_AFTER, holding
from sparkwright.domain.command import Completed
from sparkwright.domain.errors import Busy, CommandFailed, Unreachable
from sparkwright.domain.values import replace
from sparkwright.remote import lease
from unit.app.scene import ClusterScene, make_scene

BOTH = ("spark-1", "spark-2")


def lease_text(since: float = START - 300, nonce: str = "fedcba9876543210") -> str:
    return json.dumps({"holder": "bob@desk", "why": "up qwen", "since": since, "nonce": nonce})


async def busy_error(here: ClusterScene, content: str, age: int) -> Busy:
    here.nodes[0].holder, here.nodes[0].age = content, age
    with pytest.raises(Busy) as caught:
        async with holding(here.services, BOTH, "up twin"):
            pass
    return caught.value


async def test_a_fresh_lease_is_reported_with_who_why_and_since_when() -> None:
    """Enough to walk over and ask."""
    error = await busy_error(make_scene(), lease_text(), 4)
    assert error.message == "spark-1: bob@desk holds the lease for `up qwen` since 5 min 00 s, renewed 4.0 s ago"
    assert error.hint == "wait, or ask bob@desk; --break-lease takes it over"


async def test_a_stale_lease_is_called_what_it_is() -> None:
    """The user who lease_text it has gone without a trace: the way on is named, and not taken automatically."""
    error = await busy_error(make_scene(), lease_text(), int(STALE_AFTER) + 30)
    assert "has not renewed it for 90 s" in error.message
    assert "it looks dead" in error.message
    assert "repeat yours with --break-lease" in error.hint


async def test_a_dead_init_is_replaced() -> None:
    """The leftovers of a killed init heal on the nodes: after a minute of silence the lease is taken, and reported."""
    for why, age, taken in (("init", 61, True), ("init --undo", 61, True), ("init", 59, False), ("initial", 61, False)):
        here = make_scene()
        here.nodes[0].holder, here.nodes[0].age = lease_text().replace("up qwen", why), age
        with _nothing() if taken else pytest.raises(Busy):
            async with holding(here.services, BOTH, "init"):
                assert "spark-1: bob@desk held the lease for `init" in str(here.sink.happenings)


class FakeCallers:
    """Callers as adapters.machine.MachineCallers: what begins with `gone` has ended."""

    def own_mark(self) -> str:
        return "here 1"

    def has_ended(self, mark: str) -> bool:
        return mark.startswith("gone")


@pytest.mark.parametrize(
    ("age", "who", "mark", "taken"),
    [
        (3, "test@desk", "gone 7", True),
        (90, "test@desk", "gone 7", True),
        (3, "test@desk (supervisor)", "gone 7", True),
        (90, "test@desk", "here 8", False),
        (90, "test@desk", "", False),
        (90, "bob@desk", "gone 7", False),
    ],
)
async def test_a_lease_of_a_process_that_has_ended_here_is_taken(age: int, who: str, mark: str, taken: bool) -> None:
    """Guards an `up` that was killed: the next call waits until its last commands are over, and goes on by itself;
    whoever may still be at work keeps theirs."""
    here = make_scene()
    services = replace(here.services, who="test@desk", callers=FakeCallers())
    here.nodes[0].holder = json.dumps({**json.loads(lease_text()), "holder": who, "process": mark})
    here.nodes[0].age = age
    began = here.clock.elapsed
    with _nothing() if taken else pytest.raises(Busy):
        async with holding(services, BOTH, "up twin"):
            assert json.loads(here.nodes[0].holder)["process"] == "here 1"
            assert here.clock.elapsed - began == pytest.approx(max(20 - age, 0))
            assert "that process of this machine has ended: it is taken over" in str(here.sink.happenings)


async def test_a_lease_that_somebody_took_meanwhile_is_theirs() -> None:
    """Guards the wait: another call may have taken the dead one's place."""
    here = make_scene()
    services = replace(here.services, who="test@desk", callers=FakeCallers())
    dead = {**json.loads(lease_text()), "holder": "test@desk", "process": "gone 7"}
    here.nodes[0].holder, here.nodes[0].age = json.dumps(dead), 3

    def others(command: object) -> Completed:
        here.nodes[0].holder = lease_text()
        return Completed(0, f"0\n{here.nodes[0].holder}")

    here.nodes[0].on(lambda command: command == lease.show_lease(), others)
    with pytest.raises(Busy):
        async with holding(services, BOTH, "up twin"):
            pass
    assert here.nodes[0].holder == lease_text()


@pytest.mark.parametrize("content", ["", "garbage", "[]", '{"holder": "x"}'])
async def test_an_unreadable_lease_is_still_a_lease(content: str) -> None:
    """Somebody's half-written file is no invitation."""
    error = await busy_error(make_scene(), content, 3)
    assert "unreadable" in error.message


async def test_leases_come_back_however_the_work_ends() -> None:
    """Done, failed or interrupted."""
    for trouble in (None, RuntimeError("x"), asyncio.CancelledError()):
        here = make_scene()
        with pytest.raises(type(trouble)) if trouble else _nothing():
            async with holding(here.services, BOTH, "up twin"):
                assert [node.holder is not None for node in here.nodes] == [True, True]
                if trouble:
                    raise trouble
        assert [node.holder for node in here.nodes] == [None, None]


class _nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


async def test_an_interrupt_while_taking_leaves_no_lease() -> None:
    """Ctrl-C may come when the node has taken it and the answer is still on its way."""
    here = make_scene()
    task: list[asyncio.Task[None]] = []

    async def take_and_dawdle(command: object) -> Completed:
        done = here.nodes[1]._take(*command.argv[4:])  # type: ignore[attr-defined]
        task[0].cancel()
        await asyncio.sleep(0)
        return done

    here.nodes[1].on(lambda command: command.changes == "take lease", take_and_dawdle)

    async def work() -> None:
        async with holding(here.services, BOTH, "up twin"):
            raise AssertionError("not reached")

    task.append(asyncio.create_task(work()))
    with pytest.raises(asyncio.CancelledError):
        await task[0]
    assert [node.holder for node in here.nodes] == [None, None]


async def test_it_is_renewed_for_as_long_as_the_work_takes() -> None:
    """An hour of copying weights is no dead holder; a lost connection in between is no reason to stop."""
    here = make_scene()
    renewals = 0

    def renewed(command: object) -> Completed:
        nonlocal renewals
        renewals += 1
        if renewals == 3:
            raise Unreachable("spark-1", "connection lost")
        return Completed(0, "")

    here.nodes[0].on(lambda command: command == lease.renew_lease(here.nonce), renewed)
    async with holding(here.services, BOTH, "up twin"):
        await here.clock.sleep(10 * RENEW_EVERY + 1)
    assert renewals >= 9


async def test_seizing_takes_what_others_hold() -> None:
    """The seized lease is given back like any other."""
    here = make_scene()
    here.nodes[0].holder = lease_text()
    async with holding(here.services, BOTH, "down twin", seize=True):
        assert here.nonce in (here.nodes[0].holder or "")
    assert here.nodes[0].holder is None


async def test_who_loses_it_is_recognized_by_whom_and_touches_nothing_of_theirs() -> None:
    """The work inside ends; the new holder's lease stays."""
    here = make_scene()
    with pytest.raises(Busy) as caught:
        async with holding(here.services, BOTH, "up twin"):
            here.nodes[1].holder = lease_text()
            await asyncio.sleep(3600)
    assert "bob@desk" in caught.value.message
    assert [node.holder for node in here.nodes] == [None, lease_text()]


async def test_a_node_without_room_for_it_reports_it() -> None:
    """Neither taken nor lease_text by anybody: an error of the node."""
    here = make_scene()
    here.nodes[0].on(lambda command: command.changes == "take lease", Completed(1, "", "No space left on device"))
    with pytest.raises(CommandFailed) as caught:
        async with holding(here.services, BOTH, "up twin"):
            pass
    assert "No space left on device" in caught.value.message


async def test_giving_back_does_not_hang_on_a_lost_node() -> None:
    """The reachable leases are given back; the other is stale in a minute."""
    here = make_scene()
    here.nodes[0].on(lambda command: command.changes == "release lease", Unreachable("spark-1", "gone"))
    async with holding(here.services, BOTH, "up twin"):
        pass
    assert here.nodes[1].holder is None
