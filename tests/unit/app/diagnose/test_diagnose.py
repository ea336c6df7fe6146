"""`diagnose DEPLOYMENT`: what a deployment's logs show about now, and what they show about the past."""

import json
from dataclasses import asdict
from datetime import UTC, datetime

import pytest

from fakes.clock import FakeClock
from sparkwright.app.diagnose.diagnosing import examine_deployment
from sparkwright.app.diagnose.examine import Examined
from sparkwright.cli.diagnose_text import examined_text
from sparkwright.domain.live import DeploymentState, Live, LiveCanary
from sparkwright.facts import store
from sparkwright.remote import evidence as diagnose
from sparkwright.remote import process
from unit.app.scene import ClusterScene
from unit.app.test_status import STATE, handle, running

HOUR = 3600.0
NOW = FakeClock().now()
WRONG_MODEL = (
    "(APIServer pid=9) ERROR {} [serving.py:214] Error with model error=ErrorInfo(message='The model `wrong` does not "
    "exist.', type='NotFoundError', param='model', code=404)"
)
KILLED = "{} spark-1 kernel: Out of memory: Killed process 4242 (python3) total-vm:9kB, anon-rss:9kB"


def vllm_time(seconds: float, zone: float = 0.0) -> str:
    """A time as vLLM writes it, `seconds` after now."""
    return f"{datetime.fromtimestamp(NOW + seconds + zone, UTC):%m-%d %H:%M:%S}"


START = f"(APIServer pid=9) INFO {vllm_time(-HOUR + 3)} [api_server.py:1] vLLM API server version 0.21.0"


def serving(
    *lines: str, answered: float = -2.0, zone: str = "+0000", phase: DeploymentState = DeploymentState.READY
) -> ClusterScene:
    """Started an hour ago; rank 0's log has these lines; its supervisor's last probe was answered then."""
    here = running()
    head = here.nodes[0]
    live = Live(NOW, "twin", phase, NOW - 60, canary=LiveCanary(NOW + answered, 0.2))
    row = {"deployment": "twin", "live": asdict(live), "by": "", "running": True, "again": False, "unit": ""}
    head.on(
        lambda c: c == store.supervised_fact("head", STATE).command, json.dumps([{**row, "endpoint": "", "now": NOW}])
    )
    head.on(lambda c: c == diagnose.read_clock(), f"{NOW} {zone}")
    head.on(lambda c: c == process.logs(handle(0), 0), [*lines])
    for node in here.nodes:
        node.started = str(int(NOW - HOUR))
    return here


async def examined(here: ClusterScene) -> Examined:
    return await examine_deployment(here.services, "twin")


def cause_keys(found: Examined) -> tuple[list[str], list[str]]:
    """The keys of the causes, and of those from earlier lines."""
    return [cause.key for cause in found.diagnosis.causes], [cause.key for cause in found.earlier]


async def test_a_clients_error_before_the_last_answer_is_not_the_headline() -> None:
    """Guards a serving deployment against an old line of a client: it is named with its time, apart."""
    found = await examined(serving(START, WRONG_MODEL.format(vllm_time(-600))))
    assert cause_keys(found) == ([], ["served-model-name-mismatch"])
    text = examined_text(found)
    assert "no known cause in lines since the last good answer (" in text
    assert "no cause of what is wrong now" in text and "to narrow it down" not in text


@pytest.mark.parametrize(("zone", "offset"), [("+0000", 0.0), ("-0700", -7 * HOUR), ("+0530", 5.5 * HOUR)])
async def test_a_line_after_the_last_answer_counts_whatever_the_zone(zone: str, offset: float) -> None:
    """Guards against a log in local time of which all, or nothing, would be taken for old."""
    first = f"(APIServer pid=9) INFO {vllm_time(-HOUR + 3, offset)} [api_server.py:1] vLLM API server version 0.21.0"
    old, new = (WRONG_MODEL.format(vllm_time(seconds, offset)) for seconds in (-600, -1))
    assert cause_keys(await examined(serving(first, new, zone=zone)))[0] == ["served-model-name-mismatch"]
    assert cause_keys(await examined(serving(first, old, zone=zone)))[1] == ["served-model-name-mismatch"]


@pytest.mark.parametrize("line", [WRONG_MODEL.format(vllm_time(-600, -7 * HOUR)), "The model `wrong` does not exist."])
async def test_a_log_whose_times_are_not_understood_is_read_as_a_whole(line: str) -> None:
    """Guards against hiding what is wrong now: lines from before the start are of another zone, llama.cpp has none."""
    assert cause_keys(await examined(serving(line)))[0] == ["served-model-name-mismatch"]


async def test_what_the_kernel_did_before_the_start_is_not_the_headline() -> None:
    """Guards a fresh start against yesterday's out-of-memory kill."""
    here = serving(START, answered=-2 * HOUR)
    old = KILLED.format(datetime.fromtimestamp(NOW - 5 * HOUR, UTC).isoformat())
    here.nodes[0].on(lambda c: c == diagnose.kernel_log(), old)
    found = await examined(here)
    assert found.diagnosis.causes == () and len(found.earlier) == 1
    assert "no known cause in lines since the start (" in examined_text(found)


async def test_what_slows_a_service_down_since_its_start_is_shown_while_it_answers() -> None:
    """Guards findings of the start that an answer does not refute."""
    text = "Currently disabled CUDA graphs (enforce_eager): With --enforce-eager decode drops from 41 tok/s to 19 tok/s"
    found = await examined(serving(START, f"(Worker pid=9) WARNING {vllm_time(-HOUR + 9)} [marlin_utils.py:1] {text}"))
    assert cause_keys(found)[0] and not found.earlier


@pytest.mark.parametrize(
    ("phase", "answered", "hangs"),
    [
        (DeploymentState.READY, -2.0, False),
        (DeploymentState.READY, -300.0, False),
        (DeploymentState.DEGRADED, -30.0, False),
        (DeploymentState.DEGRADED, -300.0, True),
    ],
)
async def test_a_busy_gpu_hangs_only_if_nothing_was_answered_for_a_while(
    phase: DeploymentState, answered: float, hangs: bool
) -> None:
    """Guards ranks that take turns on a GPU: busy without memory traffic, and they answer."""
    here = serving(START, answered=answered, phase=phase)
    rows = (
        "# gpu     sm    mem    enc    dec\n# Idx      %      %      %      %\n"
        + "    0     99      0      0      0\n" * 3
    )
    here.nodes[0].on(lambda c: c == diagnose.utilization(), rows)
    keys, _ = cause_keys(await examined(here))
    assert ("cuda-graph-multinode-collective-deadlock" in keys) is hangs
