"""What detectors must know of a deployment, and how patient they are."""

from dataclasses import dataclass, fields, replace

from sparkwright.domain.live import Desired
from sparkwright.supervision.events import Cleared, Fault

Found = tuple[Fault | Cleared, ...]


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds, all scaled together for drills.

    still: nothing moves for so long, and the engine counts as stuck, unless more is known of it. vLLM 0.21.0 itself
    begins to complain of a step after 60 s (`No available shared memory broadcast block found in 60 seconds`).
    fresh, fresh_for: the same within the first minutes of a start, in which kernels are still compiled; vLLM gives up
    a step after 300 s by itself (VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS; field guide E98).
    unknown: for an engine that works as far as its GPU tells, and of which nothing is known (AID's BUSY_GRACE, F3).
    compiling: compilers that run excuse a stillness for so long (E98: 1800 s is what operators set).
    spin: all GPUs busy without work for so long. alone: a canary that nobody else can be in the way of, and no answer.
    stale: a figure that is older counts no more. retell: what is wrong is told again with new figures.
    settle: after a start, until memory is taken as its level. proof: traffic so long ago still proves life.
    """

    still: float = 60.0
    fresh: float = 300.0
    fresh_for: float = 300.0
    unknown: float = 600.0
    compiling: float = 1800.0
    spin: float = 20.0
    alone: float = 20.0
    stale: float = 30.0
    retell: float = 60.0
    settle: float = 60.0
    proof: float = 15.0

    def scaled(self, by: float) -> "Patience":
        return replace(self, **{f.name: getattr(self, f.name) * by for f in fields(self)})


@dataclass(frozen=True, slots=True)
class Setting:
    """nodes: those of the ranks, the head first. rdma: whether the ranks talk over RDMA.

    context: the longest prompt, batched: prompt tokens of one engine step, prefill_tokens_s: expected speed; 0: not
    known. state: our folder on the nodes.
    floor, stop_floor: bytes of MemAvailable; 0: from the level after the start (floors.py).
    """

    nodes: tuple[str, ...]
    rdma: bool = False
    context: int = 0
    batched: int = 0
    prefill_tokens_s: float = 0.0
    floor: int = 0
    stop_floor: int = 0
    patience: Patience = Patience()
    state: str = "the state folder"

    @property
    def world(self) -> int:
        return len(self.nodes)

    @property
    def scale(self) -> float:
        """Of time, as the patience was scaled."""
        return self.patience.still / Patience().still

    @property
    def step_seconds(self) -> float:
        """What one engine step of a prompt may take: four times the expected; 0 when that is not known.

        A step at a prompt's end takes longer than the average one: report 003 falls from 1,710 tokens/s at 240K to 986
        at 980K, and expected speeds have an interval of their own.
        """
        return 4.0 * self.batched / self.prefill_tokens_s if self.prefill_tokens_s else 0.0

    @classmethod
    def of(cls, desired: Desired, nodes: tuple[str, ...], rdma: bool) -> "Setting":
        """nodes: of the plan's ranks, by rank. Where the supervisor's time is scaled, the engine's is, too."""
        serving, speed = desired.recipe.serving, desired.speeds.get("prefill_tokens_s", 0.0)
        return cls(
            tuple(dict.fromkeys(nodes)),
            rdma,
            serving.context,
            serving.batched_tokens,
            speed / desired.time_scale,
            desired.memory_floor,
            desired.stop_floor,
            Patience().scaled(desired.time_scale),
            desired.cluster.node(nodes[0]).paths.state if nodes else "",
        )
