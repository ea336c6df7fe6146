"""The results of hours of load: memory, latency, failures, answers. Computed from a run, never stored."""

from collections.abc import Mapping

from sparkwright.domain.evaluation import ProbeOutcome
from sparkwright.domain.summary import Interval
from sparkwright.domain.values import dataclass, field

Point = tuple[float, float]  # seconds since the run began, value


@dataclass(frozen=True, slots=True)
class MemoryTrend:
    """The memory trend of `of`: a node (bytes available) or the server's process (bytes resident). per_hour,
    per_request: bytes lost.

    left: seconds until the floor, None where nothing shrinks or no floor is known. leak: it is steady and above noise.
    """

    of: str
    points: tuple[Point, ...]
    per_hour: Interval
    per_request: Interval | None = None
    left: float | None = None
    leak: bool = False
    process: bool = False


@dataclass(frozen=True, slots=True)
class Shift:
    """A change of latency at a time. before, after: of the usual latency of the same level."""

    metric: str
    at: float
    before: float
    after: float

    @property
    def change(self) -> float:
        return self.after / self.before - 1.0


@dataclass(frozen=True, slots=True)
class SoakFinding:
    """kind: leak, drift, errors, answers, incident, restart, floor, gone."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Endurance:
    """seconds: under load. errors: kind -> how often. latency: metric -> (time, of the usual). requests: counted ones.

    failed: probes that failed, each time. unknown: what could not be judged, a sentence each.
    """

    seconds: float
    requests: int
    errors: Mapping[str, int] = field(default_factory=dict)
    memory: tuple[MemoryTrend, ...] = ()
    latency: Mapping[str, tuple[Point, ...]] = field(default_factory=dict)
    shifts: tuple[Shift, ...] = ()
    restarts: int = 0
    failed: tuple[ProbeOutcome, ...] = ()
    findings: tuple[SoakFinding, ...] = ()
    unknown: tuple[str, ...] = ()
