"""The works: each ends in one answer, with the turn that it was given."""

import asyncio
import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.rank_node import STATE as HOME
from fakes.rank_node import Exit
from patience import PATIENCE
from sparkwright.adapters.bundle_check import MANIFEST
from sparkwright.app.diagnose import incident as evidence
from sparkwright.app.serve.prepare import Outcome, prepare
from sparkwright.domain.command import Command
from sparkwright.domain.errors import NotReady, Unreachable
from sparkwright.domain.incident import CHANGED
from sparkwright.domain.live import Ask, DeploymentState, GatewayUse, LiveRank, Request
from sparkwright.supervisor.announcer import Announcer
from sparkwright.supervisor.core.events import Captured, Fault, Launched, LaunchFailed, Ready, Returned, Stopped
from sparkwright.supervisor.core.state import Announce, Capture, Close, Recovery, Refuse, State, StopRanks, SwapRanks
from sparkwright.supervisor.defects import explain_defect
from sparkwright.supervisor.effects import EffectRunner
from sparkwright.supervisor.event_bus import Unwatched
from sparkwright.supervisor.nodes import census
from sparkwright.supervisor.ranks import launch, watch_ranks
from unit.app.scene import HEAD as HEAD_LOG
from unit.supervisor.watchtower import Tower, make_tower

SERVED = f"{HOME}/served/twin.json"
STATE = State(DeploymentState.DRAINING, 1.0, reason="rank 1 has ended", fault="rank-exited", refusing=True)


async def answer(it: Tower) -> object:
    return await asyncio.wait_for(it.bus.events.get(), PATIENCE)


async def test_an_answer_has_the_turn_of_its_work() -> None:
    """Guards A's contract: a late answer to an earlier stop can never pass for the one that was asked for."""
    it = make_tower()
    await EffectRunner(it.bus).begin(StopRanks(turn=3), STATE)
    told = await answer(it)
    assert isinstance(told, Stopped) and told.turn == 3


async def test_a_defect_of_ours_is_an_answer_too() -> None:
    """Guards against waiting for ever: a stop that fails in itself has verified nothing."""
    it = make_tower()
    it.scene.nodes[0].on("", ValueError("odd"))
    await EffectRunner(it.bus).begin(StopRanks(turn=4), STATE)
    told = await answer(it)
    assert isinstance(told, Stopped) and "our own defect" in told.left[0] and told.turn == 4


async def test_an_incident_whose_evidence_failed_keeps_its_number() -> None:
    """Guards incidents without an end: one that was opened before a defect is closed like any other."""
    it = make_tower()
    it.scene.nodes[0].on("", ValueError("odd"))
    await EffectRunner(it.bus).begin(Capture("rank-exited", "rank 0 ended", 0, turn=2), STATE)
    told = await answer(it)
    (incident,) = it.keep.store.incidents
    assert isinstance(told, Captured) and told.incident == incident.number != 0


async def test_a_defect_with_damaged_files_is_no_defect_of_ours(tmp_path: Path) -> None:
    """Guards the advice: an ImportError of a program whose files a power cut has emptied is nobody's bug."""
    it, content = make_tower(), b"x = 1\n"
    manifest = f"{hashlib.sha256(content).hexdigest()}  sparkwright/x.py\n".encode()
    folder = tmp_path / hashlib.sha256(manifest).hexdigest()[:16]
    (folder / "sparkwright").mkdir(parents=True)
    (folder / MANIFEST).write_bytes(manifest)
    (folder / "sparkwright" / "x.py").write_bytes(content)
    assert "our own defect" in await explain_defect(it.context, ImportError("odd"), folder)
    (folder / "sparkwright" / "x.py").write_bytes(b"")
    said = await explain_defect(it.context, ImportError("odd"), folder)
    assert "sparkwright/x.py" in said and "the same `sparkwright up` puts the program back" in said


async def test_a_work_that_another_one_cuts_off_reports_nothing() -> None:
    """Guards the one work at a time."""
    it = make_tower()
    works = EffectRunner(it.bus)
    await works.begin(StopRanks(turn=5), STATE)
    await works.begin(StopRanks(turn=6), STATE)
    told = await answer(it)
    assert isinstance(told, Stopped) and told.turn == 6
    assert it.events == []


async def test_evidence_is_numbered_and_reported_before_anything_is_read() -> None:
    """Guards what hooks are given: the number and where its evidence will be; a node that is gone costs nothing."""
    it = make_tower()
    it.scene.nodes[1].on("", Unreachable("spark-2", "no route to host"))
    announcer = Announcer(it.context, it.bus.detectors.seen)
    await announcer.report(Announce("opened", "rank 1 has ended"), STATE)
    assert it.keep.notifier.news == []
    await EffectRunner(it.bus).begin(Capture(0, "rank-exited", "rank 1 has ended", ("the last line",), turn=1), STATE)
    told = await answer(it)
    assert isinstance(told, Captured) and told.incident == 7
    (news,) = it.keep.notifier.news
    assert (news.what, news.incident, news.folder) == ("opened", 7, "/evidence/7")
    await it.bus.saved()
    assert "the last line" in it.keep.store.files["fault.txt"]
    assert {"diagnosis.json", "live.json", "state.json"} <= set(it.keep.store.files)


async def test_an_outage_that_nobody_watched_began_after_the_last_byte_of_the_engine() -> None:
    """Guards `away`: the supervisor was stopped, and clients were without answers before it looked again."""
    it = make_tower()
    now = it.context.now()
    for use, unwatched, began in (
        ([GatewayUse(heard=39.0)], Unwatched(now - 45.0, now - 1.0), now - 39.0),
        ([], Unwatched(now - 45.0, now - 1.0), now - 45.0),
        ([GatewayUse(heard=39.0)], None, now),
        ([GatewayUse(heard=500.0)], Unwatched(now - 900.0, now - 800.0), now),
    ):
        it.scene.endpoint.uses, it.bus.unwatched = list(use), unwatched
        await EffectRunner(it.bus).begin(Capture(0, "rank-exited", "rank 1 has ended", turn=1, since=now), STATE)
        await answer(it)
        assert it.keep.store.incidents[-1].opened_at == began


async def test_a_later_failed_start_does_not_replace_the_cause_by_what_followed_from_it() -> None:
    """Guards the cause of a kill while nothing could be written: the others' lost peer is no cause."""
    it = make_tower()
    it.runs(1).end(Exit(137))
    runner = EffectRunner(it.bus)
    await runner.begin(Capture(0, "rank-exited", "rank 1 on spark-2 exited with code 137", turn=1), STATE)
    await answer(it)
    await it.bus.saved()
    first = it.keep.store.incidents[-1]
    assert first.code == "LIVE009" and "peer-rank-died" in it.context.seen.followers[first.number]


async def test_what_is_wrong_with_a_disk_is_evidence() -> None:
    """Guards an incident on a read-only file system: who reads it later must see that."""
    it = make_tower()
    state = replace(STATE, troubles=(("disk-full:spark-1", "read-only file system on spark-1: ..."), ("swap", "x")))
    await EffectRunner(it.bus).begin(Capture(0, "rank-exited", "rank 1 has ended", ("line",), turn=1), state)
    await answer(it)
    assert it.keep.store.incidents[-1].evidence == ("line", "read-only file system on spark-1: ...")


async def test_an_incident_notes_what_changed_since_the_deployment_last_served() -> None:
    """Guards the first line of an incident; and a relaunch that serves is what the next difference is counted from."""
    it = make_tower()
    before = {"at": 1_795_000_000, "facts": {"engine version": "0.20.0"}}
    it.scene.nodes[0].on(lambda command: SERVED in command.argv, json.dumps(before))
    await EffectRunner(it.bus).begin(Capture(0, "rank-exited", "rank 1 has ended", turn=1), STATE)
    await answer(it)
    await it.bus.saved()
    ((noted, _),) = [pair for pair in it.keep.store.events if pair[0].kind == CHANGED]
    assert noted.text == "changed since twin last served (2026-11-18): engine version: 0.20.0 -> 0.21.0"


async def test_a_relaunch_that_serves_is_what_the_next_difference_is_counted_from() -> None:
    """Guards the note on the head: a node that came back with another kernel and serves is no suspect next time."""
    it = make_tower()
    for node in it.scene.nodes:
        node.ranks.clear()
        node.script = HEAD_LOG
    it.context.seen.ranks[1] = LiveRank(1, "spark-2", running=False, started="1795000000")
    assert isinstance(await launch(it.context), Launched)
    assert it.context.seen.ranks[1] == LiveRank(1, "spark-2", running=True), "who looks while it loads"
    assert isinstance(await watch_ranks(it.context, ours=True), Ready)
    assert json.loads(it.scene.nodes[0].files[SERVED])["facts"]["engine version"] == "0.21.0"


async def test_what_ended_by_our_own_stop_is_no_evidence() -> None:
    """Guards the cause: a rank that we ended with code 0 would be called a container that exits 0 after a failure."""
    it = make_tower()
    lost, other = it.runs(1), it.runs(0)
    lost.end(Exit(137))
    ranks = [
        evidence.IncidentRank(s.rank, s.node, s.runtime, it.context.handle(s.rank)) for s in it.context.outline.specs
    ]
    found = await evidence.collect(it.context.services, "twin", ranks)
    other.end(Exit(0))
    await evidence.complete(it.context.services, found, it.context.nodes)
    assert [(rank.rank, rank.exit_code) for rank in found.ended] == [(1, 137)]


async def test_what_is_closed_is_closed_once_more_without_harm() -> None:
    """Guards the messages that are reported again after a kill: 0 means the last incident."""
    it = make_tower()
    await EffectRunner(it.bus).begin(Capture(0, "spin", "it spins", turn=1), STATE)
    await answer(it)
    announcer = Announcer(it.context, it.bus.detectors.seen)
    await announcer.report(Close(0, "serving again"), replace(STATE, phase=DeploymentState.READY))
    assert [(one.number, one.outcome) for one in it.keep.store.incidents] == [(7, "serving again")]


async def test_when_it_should_be_back() -> None:
    """Guards the gateway's Retry-After: when the launch is due and as long as the last start took; else not known."""
    it = make_tower()
    announcer = Announcer(it.context, it.bus.detectors.seen)
    await announcer.report(Refuse("rank 1 has ended", 1000.0), STATE)
    assert it.context.seen.back_at == 0.0
    it.context.remember({"started in": 90.0})
    await announcer.report(Refuse("rank 1 has ended", 1000.0), STATE)
    assert it.context.seen.back_at == 1090.0


async def test_a_node_out_of_reach_is_no_launch() -> None:
    """Guards the loop guard's count: while a worker reboots nothing is launched, however often it is tried."""
    it = make_tower()
    it.scene.nodes[1].on("", Unreachable("spark-2", "no route to host"))
    told = await launch(it.context)
    assert isinstance(told, LaunchFailed) and told.busy and "no route to host" in told.why
    assert it.scene.did("start") == []
    assert it.scene.clock.elapsed >= 15.0


async def test_a_finding_that_forbids_the_launch_is_its_reason() -> None:
    """Guards what gateway and incident report: the code and the sentence, after a wait in which it may go away."""
    it = make_tower()
    odd = replace(it.context.desired.recipe, flags={"no-such-flag": True})
    it.context.desired = replace(it.context.desired, recipe=odd, force="")
    told = await launch(it.context)
    assert isinstance(told, LaunchFailed) and not told.busy
    assert "no-such-flag" in told.why
    assert it.scene.did("start") == []
    assert 15.0 <= it.scene.clock.elapsed < 60.0


async def test_it_comes_back_next_to_what_ran_before() -> None:
    """Guards two deployments on one head: the first was started without --force, the second was allowed next to it.

    What came while it was away is another matter: then its place is taken.
    """
    it = make_tower()
    it.context.desired = replace(it.context.desired, force="")
    others = [replace(it.runs(number), labels=neighbour(number)) for number in (0, 1)]
    for node, other in zip(it.scene.nodes, others, strict=True):
        node.ranks["/other"] = other
    await census(it.context)
    assert it.context.neighbours == ("other",)
    for node in it.scene.nodes:
        node.ranks.pop(next(iter(node.ranks)))
    assert "RANK001" not in finding_codes(await prepare(it.context.services, it.context.launch_request))
    it.keep.journal.figures = {}
    await census(it.context)
    assert "RANK001" in finding_codes(await prepare(it.context.services, it.context.launch_request))


def neighbour(number: int) -> dict[str, str]:
    return {"deployment": "other", "rank": str(number), "world": "2"}


def finding_codes(found: Outcome) -> set[str]:
    return {finding.code for finding in found.plan.findings}


async def test_somebody_elses_lease_is_no_failed_launch() -> None:
    """Guards a person at work: `up` by hand and the supervisor never start the same ranks side by side."""
    it = make_tower()
    for node in it.scene.nodes:
        node.ranks.clear()
        node.holder = '{"holder": "ben@laptop", "why": "up", "since": 1, "nonce": "other"}'
    told = await launch(it.context)
    assert isinstance(told, LaunchFailed) and told.busy and "ben@laptop" in told.why
    assert it.scene.did("start") == []


async def test_a_lease_that_is_given_back_within_seconds_is_waited_for() -> None:
    """Guards two deployments that fall together: the second supervisor launches when the first has, not 30 s later."""
    it, tried = make_tower(), list[str]()
    for node in it.scene.nodes:
        node.ranks.clear()
    first = it.scene.nodes[0]
    first.holder = '{"holder": "supervisor of next", "why": "launch", "since": 1, "nonce": "other"}'

    def given_back(command: Command) -> bool:
        tried.extend([command.changes] if command.changes == "take lease" else [])
        first.holder = None if len(tried) == 2 else first.holder
        return False

    first.on(given_back)
    assert isinstance(await launch(it.context), Launched) and len(tried) > 1


async def test_an_engine_that_is_busy_when_it_is_found_serves() -> None:
    """Report 003 at a supervisor's start: no token for 16 minutes, but the KV cache fills: nothing is stopped."""
    it = make_tower()
    it.scene.endpoint.given = [NotReady("no answer within 10 s")]
    used = iter(f"vllm:kv_cache_usage_perc {share}\n" for share in (0.1, 0.1, 0.2))

    async def page(base_url: str, path: str, key: object) -> str:
        return next(used)

    it.scene.endpoint.page = page  # type: ignore[method-assign]
    assert isinstance(await watch_ranks(it.context, ours=False), Ready)
    assert it.scene.did("stop") == []


REPLACE = Request(Ask.REPLACE, "ann (console)", "being replaced by other", "n1", successor="other")


@pytest.mark.parametrize("phases", [("loading", "ready"), ("loading", "draining", "halted"), ("halted",), (None,)])
async def test_a_switch_whose_console_has_gone_is_ended_here(phases: tuple[str | None, ...]) -> None:
    """Either the successor serves and this one rests, or that one is stopped and this one is started again."""
    it = make_tower()
    states = [DeploymentState(phase) if phase else None for phase in phases]
    asked: list[tuple[str, Request]] = []
    it.keep.journal.asked = replace(REPLACE, age=1000.0)
    it.keep.journal.phase_of = lambda name: states.pop(0) if len(states) > 1 else states[0]  # type: ignore[attr-defined]
    it.keep.journal.ask = lambda name, request: asked.append((name, request))  # type: ignore[attr-defined]
    await EffectRunner(it.bus).begin(SwapRanks(turn=3), STATE)
    told = await answer(it)
    assert isinstance(told, Returned) and it.keep.journal.asked is None
    serves = phases[-1] == "ready"
    assert (told.again, told.halted) == (not serves, serves)
    assert [(name, one.ask) for name, one in asked] == ([("other", Ask.HALT)] if "draining" in phases else [])


async def test_a_switch_that_went_well_ends_at_rest() -> None:
    """The console's word to the supervisor that waits."""
    it = make_tower()
    it.keep.journal.asked = replace(REPLACE, ask=Ask.HALT, why="other serves in its place")
    await EffectRunner(it.bus).begin(SwapRanks(turn=3), STATE)
    told = await answer(it)
    assert it.context.seen.request == "" and it.context.seen.answers == ()
    assert isinstance(told, Returned) and (told.again, told.halted, told.why) == (
        False,
        True,
        "other serves in its place",
    )


async def test_keys_in_a_fault_reach_nobody() -> None:
    """Guards a token in a log line: the fault is shown by `status`, sent as a message and quoted to clients."""
    it, key = make_tower(), "sk-" + "q1W2" * 12
    it.bus.put(Fault(1.0, "auth", f"denied: {key}", Recovery.NONE, (f"Bearer {key}",)))
    it.bus.put(LaunchFailed(2.0, f"denied: {key}"))
    fault, failed = it.events
    assert isinstance(fault, Fault) and (fault.what, fault.evidence) == ("denied: sk-***", ("Bearer sk-***",))
    assert isinstance(failed, LaunchFailed) and failed.why == "denied: sk-***"
