"""A deployment behind the gateway whose supervisor does not report any more, or does not see a node."""

from pathlib import Path

from fakes.clock import FakeClock
from sparkwright.domain.codec import to_json
from sparkwright.domain.live import DeploymentState, Live, LiveNode
from sparkwright.gateway.keys import RouteSetting
from sparkwright.gateway.replicas import KnownBeginnings
from sparkwright.supervisor.proxy.behind import Behind, Deployed
from sparkwright.supervisor.proxy.engine_answer import EngineAnswer
from sparkwright.supervisor.proxy.flight import Flight
from sparkwright.supervisor.proxy.replicas import ReplicaSet


async def test_what_gives_nothing_and_is_not_watched_refuses_with_the_reason(tmp_path: Path) -> None:
    """Guards requests that would wait until their client gives up; one now and then is let through, to see it back."""
    clock = FakeClock()
    live = Live(clock.now(), "big", DeploymentState.READY, clock.now())
    (tmp_path / "live.json").write_text(to_json(live))
    it = Behind(tmp_path, clock)
    it.begin()
    await clock.sleep(10.0)
    it.hear()
    assert it.use.heard == 0.0 and it.unattended() is None
    it.begin()
    await clock.sleep(14.0)
    assert it.unattended() is None, "not for so long"
    await clock.sleep(2.0)
    assert it.unattended() is None, "one may try"
    answer = it.unattended()
    assert answer and answer.status == 503 and "has not reported for 26 s" in answer.message
    assert "given nothing for 16 s" in answer.message
    await clock.sleep(16.0)
    assert it.unattended() is None and it.unattended(), "another may try"
    it.hear()
    assert it.unattended() is None


async def test_a_silent_replica_is_tried_now_and_then(tmp_path: Path) -> None:
    """Guards a replica that was killed while its supervisor was away: it is out, and one request in 15 s sees it
    back."""
    clock = FakeClock()
    (tmp_path / "live.json").write_text(to_json(Live(clock.now(), "big", DeploymentState.READY, clock.now())))
    it = Behind(tmp_path, clock)
    await clock.sleep(1.0)
    it.begin()
    it.fail(unreached=True)
    assert it.away
    it.end()
    await clock.sleep(40.0)
    assert not it.away, "one may try"
    it.begin()
    assert it.away
    await clock.sleep(16.0)
    assert not it.away
    it.begin()
    it.hear()
    assert not it.away


async def test_a_supervisor_that_reports_decides_itself(tmp_path: Path) -> None:
    """Guards long prompts: while somebody watches, silence is no reason to refuse."""
    clock = FakeClock()
    it = Behind(tmp_path, clock)
    it.begin()
    await clock.sleep(60.0)
    assert it.unattended() is None, "none has ever reported"
    (tmp_path / "live.json").write_text(to_json(Live(clock.now(), "big", DeploymentState.READY, clock.now())))
    assert it.unattended() is None and it.use.heard is None


async def test_what_gives_nothing_while_a_node_is_out_of_reach_refuses_with_the_reason(tmp_path: Path) -> None:
    """Guards clients of a rank that died on a node which lets nobody log in: they got headers and nothing else."""
    clock = FakeClock()

    def report(reached: bool, sampled: float = 1.0) -> None:
        nodes = (LiveNode("spark-1", 1.0, True), LiveNode("spark-2", sampled, reached))
        live = Live(clock.now(), "big", DeploymentState.DEGRADED, clock.now(), nodes=nodes)
        (tmp_path / "live.json").write_text(to_json(live))

    it = Behind(tmp_path, clock)
    await clock.sleep(1.0)
    it.begin()
    await clock.sleep(16.0)
    report(reached=False)
    await clock.sleep(2.0)
    assert it.unattended() is None, "one may try"
    answer = it.unattended()
    assert answer and answer.status == 503 and "cannot reach spark-2" in answer.message
    assert "given nothing for 18 s" in answer.message
    report(reached=True)
    await clock.sleep(2.0)
    assert it.unattended() is None, "its supervisor sees all of it and decides"
    report(reached=False, sampled=0.0)
    await clock.sleep(2.0)
    assert it.unattended() is None, "not sampled yet is not lost"
    report(reached=False)
    await clock.sleep(2.0)
    it.hear()
    assert it.unattended() is None, "the engine lives"


async def test_the_head_of_an_answer_is_no_sign_of_life(tmp_path: Path) -> None:
    """Guards outages: an engine whose ranks are dead still sends `200 OK` for a stream, and then nothing."""
    clock = FakeClock()
    it = Behind(tmp_path, clock)
    setting = RouteSetting("big", "127.0.0.1:1", 9000, 8443, 9100)
    at = ReplicaSet((Deployed(it, setting, ""),), KnownBeginnings())
    flight = Flight(at, "/v1/chat/completions", None).begin()
    flight.answers(EngineAnswer("POST"))
    assert it.use.heard is None
    await clock.sleep(3.0)
    flight.saw(b"data: {}")
    assert it.use.heard == 0.0
    await clock.sleep(3.0)
    flight.ended(whole=False)
    assert it.use.heard == 3.0, "cut off"
    other = Flight(at, "/v1/models", None).begin()
    other.ended(whole=True)
    assert it.use.heard == 0.0, "an answer without a body"


async def test_a_gateway_that_reaches_no_engine_says_why(tmp_path: Path) -> None:
    """Guards the state of a deployment whose supervisor reaches the engine while each client gets 503."""
    clock = FakeClock()
    it = Behind(tmp_path, clock)
    for second in range(6):
        it.fail(unreached=True, why="no local port is free")
        assert ("cannot connect to the engine (no local port is free)" in it.cut_off) is (second >= 3)
        await clock.sleep(1.0)
    it.fail(unreached=False)
    assert it.cut_off == "", "it was reached, and said nothing"
    for _ in range(5):
        it.fail(unreached=True, why="Connection refused")
        await clock.sleep(1.0)
    assert it.cut_off
    await clock.sleep(5.0)
    assert it.cut_off == "", "nobody has asked for it lately"
    it.fail(unreached=True, why="Connection refused")
    it.hear()
    assert it.cut_off == ""
