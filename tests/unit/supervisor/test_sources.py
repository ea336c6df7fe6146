"""The events that the sources make of their observations."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from fakes.endpoint import FakeEndpoint
from fakes.host import Given
from fakes.rank_node import Exit
from sparkwright.domain.command import Command, Completed, Secret
from sparkwright.domain.deployment import Answer
from sparkwright.domain.diagnosis import Cause, Proof
from sparkwright.domain.errors import NotReady, Unreachable
from sparkwright.domain.finding import Severity
from sparkwright.domain.live import LiveEngine
from sparkwright.facts import sample
from sparkwright.remote import process
from sparkwright.supervisor import endpoint, nodes
from sparkwright.supervisor.core.events import Fault
from sparkwright.supervisor.core.state import Recovery
from sparkwright.supervisor.nodes import Census, DockerAway
from unit.supervisor.watchtower import Tower, make_tower

STATE = "/home/ai/.local/state/sparkwright"
CAUSE = Cause("peer-rank-died", "LX", "a rank died", Severity.BLOCK, 0.95, "", (), (Proof("rank 0", 3, "NCCL WARN"),))


def follower_lines(*log: str, ends: str) -> Callable[[Command], list[str]]:
    """The lines of a follower; ends: behind its mark."""
    return lambda command: [*log, f"\x1eexit {command.argv[-1]} {ends}"]


def follows(it: Tower, number: int, *given: Given) -> None:
    """The rank's log; it has ended."""
    node, handle = it.scene.nodes[number], f"{STATE}/deployments/twin/rank{number}"
    node.ranks[handle].end(Exit(137))
    node.on(lambda command: command == process.follow(handle, 1, command.argv[-1]), *given)


async def test_a_rank_that_ends_is_a_fault_with_its_last_lines() -> None:
    """Guards the fastest detector: which rank, how, and what it reported last."""
    it = make_tower()
    scraped = '(APIServer pid=6) INFO:     127.0.0.1:58492 - "GET /metrics HTTP/1.1" 200 OK'
    follows(it, 1, follower_lines("a line", scraped, ends="exited 137 false 5 5"))
    await nodes.follow_rank(it.bus, 1)
    (fault,) = it.events
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.recovery) == ("rank-exited", Recovery.RELAUNCH)
    assert "rank 1 on spark-2 exited with code 137" in fault.what
    assert fault.evidence == ("rank 1 on spark-2: a line",)


async def test_a_rank_that_leaves_in_order_lets_the_one_that_it_lost_speak_first() -> None:
    """Guards what the incident is called: `rank 0 was killed`, not `rank 1 exited with code 0` because of that."""
    it = make_tower()
    for number, code in ((0, 137), (1, 0)):
        follows(it, number, follower_lines(ends=f"exited {code} false 5 5"))
    await asyncio.gather(nodes.follow_rank(it.bus, 1), nodes.follow_rank(it.bus, 0))
    assert ["code 137" in event.what for event in it.events if isinstance(event, Fault)] == [True, False]


async def test_a_node_out_of_reach_has_nothing_of_its_rank() -> None:
    """Guards promise 4: the connection is tried again, later each time, and the end is shown when it is seen."""
    it = make_tower()
    gone = Unreachable("spark-2", "connection lost")
    follows(it, 1, gone, gone, gone, follower_lines(ends="gone 0 false 5 5"))
    await nodes.follow_rank(it.bus, 1)
    (fault,) = it.events
    assert isinstance(fault, Fault) and "somebody removed it" in fault.what
    assert it.scene.clock.slept == pytest.approx([1.0, 1.1, 1.21])


async def test_samples_that_stay_away_make_a_node_unseen_once() -> None:
    """Guards a node that hangs with its connection open."""
    it = make_tower()
    it.bus.heard["spark-2"] = it.context.now()
    it.scene.clock.advance(10.0)
    nodes.report_silent(it.bus)
    assert it.events == []
    it.scene.clock.advance(20.0)
    nodes.report_silent(it.bus)
    nodes.report_silent(it.bus)
    (fault,) = it.events
    assert isinstance(fault, Fault) and fault.recovery is Recovery.NONE and "spark-2" in fault.what


async def test_what_a_log_reports_of_an_engine_that_answers_is_only_noted() -> None:
    """Guards against restarts by a fatal word: engines print them and live on."""
    it = make_tower()
    await endpoint.weigh_suspect(it.bus, CAUSE)
    assert it.events == []
    assert [(event.kind, "peer-rank-died" in event.text) for event, _ in it.keep.store.events] == [("noticed", True)]


async def test_what_a_log_reports_of_an_engine_that_refuses_is_believed() -> None:
    """Guards the 61 s of HTTP 500 after a rank's death (captures m1): log and refusal together are enough."""
    it = make_tower()
    it.scene.endpoint.given = [NotReady("HTTP 500: EngineCore died")]
    await endpoint.weigh_suspect(it.bus, CAUSE)
    (fault,) = it.events
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.recovery, fault.evidence) == (
        "peer-rank-died",
        Recovery.RELAUNCH,
        ("rank 0: NCCL WARN",),
    )


async def test_silence_with_a_suspicious_log_may_be_a_long_prefill() -> None:
    """An engine that is busy for 16 minutes answers nothing, whatever its log reports."""
    it = make_tower()
    it.scene.endpoint = SilentEndpoint()
    it.context.policy = replace(it.context.policy, canary_limit=0.01)
    await endpoint.weigh_suspect(it.bus, CAUSE)
    assert it.events == []


async def test_the_canary_distinguishes_an_answer_a_refusal_and_silence() -> None:
    """Guards what the detectors build on."""
    it = make_tower()
    it.scene.endpoint.given = [Answer("one two", 3, 8, 0.1, 0.2)]
    assert (await endpoint.ask_canary(it.context)).said == "one two"
    it.scene.endpoint.given = [NotReady("HTTP 500")]
    refused = await endpoint.ask_canary(it.context)
    assert (refused.seconds, refused.refused) == (None, True)


async def test_a_rank_is_looked_into_only_while_nothing_moves() -> None:
    """Guards the cost of it, nothing while tokens come; what cannot be inspected is not taken for stopped."""
    it = make_tower()
    worker, looks = it.scene.nodes[1], sample.in_folder(f"{STATE}/deployments/twin/rank1")
    worker.on(lambda c: c == looks, Completed(0, "stopped 4711 VLLM::Worker_TP\n"))
    it.scene.nodes[0].on(lambda c: c.argv[2] == looks.argv[2], Unreachable("spark-1", "no route"))
    it.bus.detectors.begin(it.context.now())
    it.bus.detectors.engine(LiveEngine(it.context.now(), running=1.0), it.context.now())
    work = asyncio.create_task(nodes.inspect_processes(it.bus))
    for _ in range(200):
        await asyncio.sleep(0)
    work.cancel()
    (fault,) = it.events
    assert isinstance(fault, Fault)
    assert "rank 1 on spark-2: process 4711" in fault.what
    assert len(worker.ran(lambda c: c == looks)) < len(it.scene.clock.slept)


async def test_figures_are_read_where_each_engine_has_them() -> None:
    """Guards TensorRT-LLM: its /metrics is another page, and its counters would silently be none."""
    it = make_tower()
    choice = replace(it.context.desired.recipe.engine, name="trtllm")
    it.context.desired = replace(it.context.desired, recipe=replace(it.context.desired.recipe, engine=choice))
    it.scene.endpoint.shown = {"metrics": "[]", "prometheus/metrics": "trtllm_num_requests_running 3\n"}
    found = await endpoint.read_engine(it.context)
    assert found and found.running == 3


async def test_an_engine_is_not_asked_without_the_key_that_it_wants() -> None:
    """Guards a torn secrets file: an engine that refuses us for want of its key is not away."""
    it = make_tower()
    serving = replace(it.context.desired.recipe.serving, api_key_env="VLLM_API_KEY")
    it.context.desired = replace(it.context.desired, recipe=replace(it.context.desired.recipe, serving=serving))
    assert not endpoint._due(it.bus)
    assert not (await endpoint.ask_canary(it.context)).refused and it.scene.endpoint.asked == []
    it.context.services.secrets["VLLM_API_KEY"] = Secret("k")
    assert endpoint._due(it.bus)


class SilentEndpoint(FakeEndpoint):
    async def ask(self, base_url: str, model: str, prompt: str, max_tokens: int, key: Secret | None) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError


async def test_containers_that_live_on_without_their_daemon_are_no_fault() -> None:
    """Guards live-restore: a Docker that is away ends nothing while tokens come; without a token it is the fault."""
    it = make_tower()
    found = Census({}, unseen={"spark-2": DockerAway("Docker is not running on spark-2")})
    it.bus.serving = True
    nodes.docker_lost(it.bus, found)
    assert it.events == []
    it.bus.detectors.stall.since = it.context.now() - 8
    nodes.docker_lost(it.bus, found)
    (fault,) = it.events
    assert isinstance(fault, Fault) and fault.recovery is Recovery.RELAUNCH
    assert fault.what == "Docker is not running on spark-2, and no token for 8.0 s"


def test_a_hostile_log_does_not_hold_up_the_loop() -> None:
    """Guards the canary against a client whose text fills a log: rules read so much of it a second, and then again."""
    it = make_tower()
    readers = it.bus.watching.readers
    for _ in range(16):
        it.bus.read("rank 0 on spark-1", "9" * 65536)
    source = readers["rank 0 on spark-1"].source()
    assert source.lines == 4 and source.bytes <= 4 * 8193
    it.bus.read("rank 1 on spark-2", "another rank")
    it.scene.clock.advance(1.0)
    it.bus.read("rank 0 on spark-1", "later")
    assert [reader.source().lines for reader in readers.values()] == [5, 1]


def test_what_a_log_quotes_of_a_client_is_no_suspect() -> None:
    """Guards against an engine's traceback with a client's text in it; the same words later are the engine's own."""
    it = make_tower()
    text = "NVRM: Xid (PCI:000f:01:00): 79, GPU has fallen off the bus"
    it.bus.read("rank 0 on spark-1", "[2026-11-22 14:40:09] Error in request: Error while loading data x")
    it.bus.read("rank 0 on spark-1", text)
    assert it.bus.suspects.empty()
    it.scene.clock.advance(3.0)
    it.bus.read("rank 0 on spark-1", text)
    assert it.bus.suspects.get_nowait().code == "LDRV013"
