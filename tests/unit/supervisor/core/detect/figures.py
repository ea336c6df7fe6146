"""The detectors' input, in short: a node's sample and an engine's figures at a moment."""

from typing import Any

from sparkwright.domain.facts import Memory
from sparkwright.domain.live import LiveCanary, LiveEngine
from sparkwright.domain.sample import GpuSample, PortTraffic, Sample
from sparkwright.domain.units import GIB, MIB
from sparkwright.supervisor.core.detect.detectors import Detectors
from sparkwright.supervisor.core.detect.setting import Found, Setting
from sparkwright.supervisor.core.events import Cleared, Fault
from sparkwright.supervisor.core.state import Recovery

NODES = ("spark-1", "spark-2")
START = 1_000_000.0
# From here on a start is no longer fresh.
SETTLED = START + 301.0
TOTAL = 121 * GIB

IDLE = GpuSample(0.0, 0.0, 4.1, 2411.0, 41.0)
WORKING = GpuSample(94.0, 58.0, 62.0, 2405.0, 74.0)
SPINNING = GpuSample(96.0, 0.0, 14.2, 2411.0, 52.0)
WEDGED = GpuSample(96.0, 31.0, 9.5, 721.0, 48.0)


def memory(available: float = 20 * GIB, **more: int) -> Memory:
    free = int(available) - 2 * GIB
    given = {"cached": 4 * GIB, "swap_total": 16 * GIB, "swap_free": 16 * GIB, "unaccounted": 80 * GIB} | more
    return Memory(TOTAL, max(free, 0), int(available), **given)


def sample(at: float, gpu: Any = IDLE, available: float = 20 * GIB, words: int = 0, **more: Any) -> Sample:
    """words: of the one RDMA port since boot; the GPU is read again with each."""
    given: dict[str, Any] = {"memory": memory(available), "swap_pages": 0, "stall_some": 0.0, "stall_full": 0.0}
    ports = (PortTraffic("rocep1s0f0/1", words, words),)
    return Sample(at, "boot-1:24", gpu=gpu, gpu_at=at, ports=ports, **given | more)


def engine(at: float, **figures: float) -> LiveEngine:
    """vLLM's, idle, unless set."""
    zero = ("running", "waiting", "kv_usage", "prompt_tokens", "generation_tokens", "finished", "iterations")
    return LiveEngine(at, **dict.fromkeys(zero, 0.0) | figures)


def answered(at: float, said: str = "two three four five", seconds: float = 0.2) -> LiveCanary:
    return LiveCanary(at, seconds, said)


def unanswered(at: float) -> LiveCanary:
    return LiveCanary(at, None, "no answer within 10 s")


def detectors(**setting: Any) -> Detectors:
    """The detectors of two nodes that talk over RDMA; begun at START."""
    given: dict[str, Any] = {"rdma": True, "context": 1_048_576, "batched": 8192, "prefill_tokens_s": 986.0}
    made = Detectors(Setting(NODES, **given | setting))
    made.begin(START)
    return made


def settled(**setting: Any) -> Detectors:
    """The same, watched until SETTLED: a clock that jumps is no stillness."""
    made = detectors(**setting)
    for second in range(0, int(SETTLED - START), 7):
        made.tick(START + second)
    made.tick(SETTLED)
    made.life.moves("the start", SETTLED)
    return made


def faults(found: Found) -> dict[str, Fault]:
    return {one.kind: one for one in found if isinstance(one, Fault)}


def ending_faults(found: Found) -> dict[str, Fault]:
    """The faults that end the service."""
    return {kind: fault for kind, fault in faults(found).items() if fault.recovery is not Recovery.NONE}


def cleared(found: Found) -> set[str]:
    return {one.kind for one in found if isinstance(one, Cleared)}


__all__ = ["GIB", "MIB"]
