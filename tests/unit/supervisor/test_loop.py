"""The loop: what is written before what is done."""

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.adapters.sqlite.folders import Folders
from sparkwright.adapters.sqlite.store import SqliteStore
from sparkwright.domain.errors import Unreachable
from sparkwright.domain.incident import TAKEN_OVER
from sparkwright.domain.live import Ask, DeploymentState, Request
from sparkwright.domain.units import duration
from sparkwright.report.incident_story import story_of
from sparkwright.supervisor.announcer import Announcer
from sparkwright.supervisor.core.events import (
    Captured,
    Cleared,
    Disarmed,
    Event,
    Fault,
    Halt,
    Replaced,
    Restart,
    Resumed,
    Tick,
)
from sparkwright.supervisor.core.machine import first_state
from sparkwright.supervisor.core.state import Announce, Close, Recovery, ServedAgain, Work
from sparkwright.supervisor.event_bus import Unwatched
from sparkwright.supervisor.loop import Loop
from unit.supervisor.watchtower import Tower, make_tower

READY = Resumed(1.0, (0, 1), (), ())


async def looping(it: Tower) -> Loop:
    """A loop whose deployment serves; what its sources report is not read."""
    loop = Loop(it.context)
    loop._state = loop._state.__class__(DeploymentState.READY, 1.0, ready_at=1.0)
    return loop


async def test_the_state_is_on_the_disk_before_anything_is_done_about_it() -> None:
    """Guards a kill at any instruction: the next supervisor knows what this one was about to do."""
    it = make_tower()
    loop = await looping(it)
    written: list[str] = []
    opening = it.keep.store.open

    async def opened(incident):  # type: ignore[no-untyped-def]
        written.append(it.keep.journal.states[-1].work)
        return await opening(incident)

    it.keep.store.open = opened  # type: ignore[method-assign]
    await loop._step(Fault(2.0, "rank-exited", "rank 1 has ended", Recovery.RELAUNCH))
    await loop.bus.events.get()
    assert written == [Work.CAPTURE]
    shown = it.keep.journal.shown[-1]
    assert shown.refusing and shown.why == "rank 1 has ended"
    await loop.end()


async def test_a_full_disk_is_a_trouble_and_no_end() -> None:
    """Guards bad input `disk full`: it goes on from memory and reports it, and takes it back when it can write
    again."""
    it = make_tower()
    loop = await looping(it)
    it.keep.journal.full = "no space left on device"
    await loop._step(Fault(2.0, "swap", "it swaps", Recovery.NONE))
    trouble = loop.bus.events.get_nowait()
    assert isinstance(trouble, Fault) and "no space left" in trouble.what and trouble.recovery is Recovery.NONE
    await loop._step(trouble)
    it.keep.journal.full = ""
    await loop._step(Cleared(3.0, "swap"))
    told = [loop.bus.events.get_nowait() for _ in range(loop.bus.events.qsize())]
    assert any(isinstance(one, Cleared) and one.kind == trouble.kind for one in told)
    await loop.end()


async def test_a_full_disk_that_has_room_again_is_no_trouble_any_more() -> None:
    """Guards a trouble that stays for days because nothing happens that would have to be written."""
    it = make_tower()
    loop = await looping(it)
    it.keep.journal.full = "no space left on device"
    await loop._step(Fault(2.0, "swap", "it swaps", Recovery.NONE))
    await loop._step(loop.bus.events.get_nowait())
    loop._look()
    it.keep.journal.full = ""
    loop._look()
    told = [loop.bus.events.get_nowait() for _ in range(loop.bus.events.qsize())]
    assert [one.kind for one in told if isinstance(one, Cleared)] == ["journal"]
    await loop.end()


async def test_a_clock_that_is_set_makes_no_node_unseen_and_hides_no_state() -> None:
    """Guards NTP after days without a network: back, nothing would be shown until the old time has come again."""
    it = make_tower()
    loop = await looping(it)
    loop._look()
    for jump in (3600.0, -3600.0):
        loop.bus.heard["spark-2"] = it.context.now()
        shown = len(it.keep.journal.shown)
        it.scene.clock.advance(jump)
        loop._look()
        assert len(it.keep.journal.shown) == shown + 1
        told = [loop.bus.events.get_nowait() for _ in range(loop.bus.events.qsize())]
        assert not [event for event in told if isinstance(event, Fault)]
    await loop.end()


async def test_time_in_which_it_did_not_run_is_remembered_and_a_set_clock_is_not() -> None:
    """Guards the begin of an incident: SIGSTOP moves both clocks, an adjusted time only one."""
    it = make_tower()
    loop = await looping(it)
    loop._look()
    before = it.context.now()
    it.scene.clock.advance(1.0)
    loop._look()
    assert loop.bus.unwatched is None
    it.scene.clock.advance(36.0)
    loop._look()
    assert loop.bus.unwatched == Unwatched(before + 1.0, before + 37.0)
    loop.bus.unwatched = None
    it.scene.clock._start += 3600.0
    it.scene.clock.advance(1.0)
    loop._look()
    assert loop.bus.unwatched is None
    await loop.end()


@pytest.mark.parametrize("jump", [7200.0, -7200.0])
async def test_a_clock_that_is_set_during_an_incident_changes_not_how_long_it_took(tmp_path: Path, jump: float) -> None:
    """Guards `away` in row, record, message and time line while somebody sets the date.

    The calendar is the test's own; a real one belongs to the whole machine.
    """
    it, notices = make_tower(), list[str]()
    clock = it.scene.clock
    it.keep.store = store = SqliteStore(tmp_path, notices.append, clock.now)  # type: ignore[assignment]
    loop = await looping(it)
    loop._look()
    began = clock.elapsed
    await loop._step(Fault(clock.now(), "rank-exited", "rank 1 has ended", Recovery.RELAUNCH, since=clock.now()))
    while not isinstance(event := await loop.bus.events.get(), Captured):
        pass
    loop._state = replace(loop._state, incident=event.incident)
    clock.advance(1.0)
    loop._look()
    clock.advance(1.0)
    clock.set_calendar(jump)
    loop._look()
    await asyncio.sleep(0)
    clock.advance(7.0)
    loop._look()
    real, ready = clock.elapsed - began, replace(loop._state, phase=DeploymentState.READY)
    await loop._announcer.report(Close(event.incident, "serving again"), ready)
    await loop._announcer.report(Announce("closed", "serving again after: rank 1 has ended"), ready)
    await loop.end()
    await store.aclose()
    assert notices == []
    (kept,) = Folders(tmp_path / "incidents").all()
    assert kept.away == pytest.approx(real) and real < 100 and kept.away_text == duration(real)
    assert kept.serving_at - kept.opened_at == pytest.approx(real + jump)
    (told,) = [news for news in it.keep.notifier.news if news.what == "closed"]
    assert told.away == pytest.approx(real) and not told.away_word
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as rows:
        assert rows.execute("SELECT away_seconds, away_word FROM incidents").fetchall() == [(kept.away, "")]
    moments = story_of(kept, None).moments
    how = f"this node's clock was set {'forward' if jump > 0 else 'back'} by 2 h 00 min"
    assert f"clock: {how}" in [one.text for one in moments]
    assert not [one for one in moments if "min" in one.offset or "h" in one.offset], moments


async def test_an_incident_whose_supervisor_is_asked_to_end_says_so(tmp_path: Path) -> None:
    """Guards `systemctl stop` in the middle of an incident: readers learn that nothing works on it, until one does."""
    it, notices = make_tower(), list[str]()
    it.keep.store = store = SqliteStore(tmp_path, notices.append, it.scene.clock.now)  # type: ignore[assignment]
    loop = await looping(it)
    await loop._step(Fault(2.0, "rank-exited", "rank 1 has ended", Recovery.RELAUNCH))
    while not isinstance(event := await loop.bus.events.get(), Captured):
        pass
    loop._state = replace(loop._state, incident=event.incident)
    loop._save()
    await loop.end()
    assert it.keep.journal.shown[-1].left == it.context.now()
    assert await store.counts("twin") == (1, 1)
    (kept,) = Folders(tmp_path / "incidents").all()
    assert kept.outcome_text == "open, not watched"
    assert "its supervisor was stopped" in story_of(kept, None).end
    await Announcer(it.context, loop.bus.detectors.seen).begin(it.keep.journal.load())
    assert await store.counts("twin") == (1, 1)
    (kept,) = Folders(tmp_path / "incidents").all()
    assert kept.outcome_text == "open" and notices == []
    await store.aclose()


@pytest.mark.parametrize("answers", [False, True])
async def test_the_up_that_takes_an_outage_over_ends_it_when_it_serves(tmp_path: Path, answers: bool) -> None:
    """Guards `away` of an incident in which a person calls `up`: two supervisors, one outage."""
    it, notices = make_tower(), list[str]()
    clock = it.scene.clock
    it.keep.store = store = SqliteStore(tmp_path, notices.append, clock.now)  # type: ignore[assignment]
    loop = await looping(it)
    began = clock.now()
    await loop._step(Fault(began, "rank-exited", "rank 1 has ended", Recovery.RELAUNCH, since=began))
    while not isinstance(event := await loop.bus.events.get(), Captured):
        pass
    loop._state = replace(loop._state, incident=event.incident)
    await loop._step(Replaced(clock.now(), "being replaced by recipe twin"))
    assert loop._state.handed
    await loop.end()
    next_one = Announcer(it.context, loop.bus.detectors.seen)
    await next_one.begin(None)
    clock.advance(30.0)
    state = await next_one.take_up(first_state(clock.now(), ready=answers))
    assert state.handed is not answers
    if not answers:
        clock.advance(5.0)
        await next_one.report(ServedAgain(), state)
    took = clock.now() - began
    assert await store.counts("twin") == (1, 1)
    (kept,) = Folders(tmp_path / "incidents").all()
    assert kept.outcome == TAKEN_OVER and kept.away == pytest.approx(took) and notices == []
    assert not (await next_one.take_up(first_state(clock.now(), ready=False))).handed
    await store.aclose()


async def test_disarmed_it_changes_nothing_on_any_node() -> None:
    """Guards `down`: anyone who has taken over finds the ranks as they were."""
    it = make_tower()
    loop = await looping(it)
    await loop._step(Disarmed(2.0))
    await loop.end()
    assert it.keep.journal.states[-1].phase is DeploymentState.STOPPED
    assert it.scene.journal == []
    assert it.keep.store.over == ["a person has taken over"]


async def test_one_that_was_disarmed_leaves_nothing_to_go_on_with() -> None:
    """Guards a second `up`: what the first supervisor wrote last must not end the next one at once."""
    it = make_tower()
    loop = await looping(it)
    await loop._step(Disarmed(2.0))
    await loop.end()
    assert it.keep.journal.load() is not None
    assert Loop(it.context)._known() is None


ASKS = {Ask.RESTART: Restart, Ask.HALT: Halt, Ask.REPLACE: Replaced}


async def reviewed(it: Tower, loop: Loop, ask: Ask) -> list[Event]:
    """The decisions of the loop on a request."""
    it.keep.journal.asked = Request(ask, "ann@laptop", "a planned restart", "n1")
    loop._look()
    loop._look()  # a second look meanwhile begins nothing
    while review := [task for task in asyncio.all_tasks() if task.get_name() == "request"]:
        await asyncio.wait(review)
    told = [loop.bus.events.get_nowait() for _ in range(loop.bus.events.qsize())]
    return [event for event in told if not isinstance(event, Tick | Fault | Cleared)]


@pytest.mark.parametrize("ask", ASKS)
async def test_what_serves_is_not_stopped_while_a_node_cannot_be_asked(ask: Ask) -> None:
    """The request is refused with the reason and the cure, and is gone; nothing else changes."""
    it = make_tower()
    loop = await looping(it)
    it.scene.nodes[1].on("", Unreachable("spark-2", "the host key of spark-2 has CHANGED", "long", "ssh-keygen -R"))
    assert await reviewed(it, loop, ask) == []
    answer = it.keep.journal.shown[-1].answer_to("n1")
    assert answer and "twin serves and was left as it is: spark-2: the host key" in answer.refused
    assert answer.cure == "ssh-keygen -R" and it.keep.journal.asked is None
    assert loop._state.phase is DeploymentState.READY and it.scene.journal == []
    await loop.end()


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("phase", [DeploymentState.READY, DeploymentState.FAILED])
async def test_a_request_that_can_be_done_is_taken_up_once(ask: Ask, phase: DeploymentState) -> None:
    """A deployment that does not serve has nothing to lose: the request is begun whatever the nodes say."""
    it = make_tower()
    loop = await looping(it)
    loop._state = loop._state.__class__(phase, 1.0)
    if phase is DeploymentState.FAILED:
        it.scene.nodes[1].on("", Unreachable("spark-2", "no route to host"))
    (event,) = await reviewed(it, loop, ask)
    assert type(event) is ASKS[ask]
    await loop._step(event)
    assert ask is Ask.REPLACE or (it.keep.journal.asked is None and it.keep.journal.shown[-1].answer_to("n1"))
    await loop.end()
