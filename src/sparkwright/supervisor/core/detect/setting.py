"""The settings of detectors: facts of the deployment, patience, findings reported once, and slow drifts of its
figures."""

from collections import deque
from statistics import median

from sparkwright.domain.live import Desired, LiveEngine
from sparkwright.domain.values import dataclass, field, fields, replace
from sparkwright.supervisor.core.events import Cleared, Fault
from sparkwright.supervisor.core.state import Recovery

Found = tuple[Fault | Cleared, ...]


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds, all scaled together for drills.

    still: nothing moves for so long, and the engine counts as stuck, unless more is known of it. vLLM 0.21.0 itself
    begins to complain of a step after 60 s (`No available shared memory broadcast block found in 60 seconds`).
    fresh, fresh_for: the same within the first minutes of a start, in which kernels are still compiled; vLLM gives up
    a step after 300 s (VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS).
    unknown: for an engine that works as far as its GPU shows, and of which nothing is known.
    compiling: compilers that run excuse a stillness for so long (1800 s is what operators set).
    spin: all GPUs busy without work for so long. alone: a canary that nobody else can be in the way of, and no answer.
    stale: a figure that is older counts no more. retell: what is wrong is reported again with new figures.
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
    known. state: our folder on the nodes. fabric: addresses by which the ranks reach each other.
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
    fabric: frozenset[str] = frozenset()

    @property
    def world(self) -> int:
        return len(self.nodes)

    @property
    def scale(self) -> float:
        """The factor by which the patience was scaled."""
        return self.patience.still / Patience().still

    @property
    def step_seconds(self) -> float:
        """Seconds that one engine step of a prompt may take: four times the expected; 0 if unknown.

        A step at a prompt's end takes longer than the average one (a published run falls from 1,710 tokens/s at 240K to
        986 at 980K), and expected speeds have an interval of their own.
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
            frozenset(desired.fabric),
        )


_ENDS = (Recovery.RELAUNCH, Recovery.STOP, Recovery.REBOOT, Recovery.POWER_CYCLE)


@dataclass
class Latch:
    """retell: seconds after which a trouble is reported again, with new figures; what ends the service only once."""

    retell: float
    _held: dict[str, dict[str, float]] = field(default_factory=dict)

    def set(self, kind: str, subject: str, fault: Fault | None, at: float, anew: bool = False) -> Found:
        """subject: the node, '' for the whole deployment. fault: None when it is not (or no longer) so. anew: it has
        another reason than before, and is told at once."""
        held = self._held.setdefault(kind, {})
        if fault is None:
            return (Cleared(at, kind),) if held.pop(subject, None) is not None and not held else ()
        told = held.get(subject)
        if told is not None and (fault.recovery in _ENDS or (at - told < self.retell and not anew)):
            return ()
        held[subject] = at
        return (fault,)

    def holds(self, kind: str, subject: str = "") -> bool:
        return subject in self._held.get(kind, {})


_HISTORY, _ENOUGH, _STRIKES = 60, 8, 3
# Owners saw acceptance 24 % down half a minute before garbled windows; a mean length of 2.0 or less under load is a
# precursor, too, which means something only where more than two tokens are usual.
_DOWN, _LOW, _USUAL = 0.76, 2.0, 2.5
# Windows hold so many drafts or queried tokens: some hundred steps, and a few long prompts.
_DRAFTS, _QUERIED = 300.0, 20000.0
# A hit rate that has fallen to a quarter of what was usual, where a third and more was.
_HITS_DOWN, _HITS_USUAL = 0.25, 0.3


@dataclass
class FigureSeries:
    """Values of windows. The reference is what lies before the windows that are judged."""

    values: deque[float] = field(default_factory=lambda: deque(maxlen=_HISTORY))

    @property
    def ready(self) -> bool:
        return len(self.values) >= _ENOUGH + _STRIKES

    @property
    def usual(self) -> float:
        return median(list(self.values)[:-_STRIKES])

    @property
    def latest(self) -> list[float]:
        return list(self.values)[-_STRIKES:]

    def below(self, part: float) -> bool:
        """The latest are all below `part` of the usual, and below all that came before them."""
        earlier = list(self.values)[:-_STRIKES]
        return self.ready and max(self.latest) < min(part * self.usual, min(earlier))


@dataclass
class Drift:
    """Acceptance of drafts and hits of the prefix cache, compared with their own past.

    Both depend on the requests: code is drafted better than prose, a new project has no prefix. So a fall counts only
    when it is far below what this start has ever shown, for several windows in a row. _accepted: mean tokens of a step;
    _hits: prefix hit rate, 0 to 1.
    """

    _from: LiveEngine | None = None
    _hits_from: LiveEngine | None = None
    _accepted: FigureSeries = field(default_factory=FigureSeries)
    _hits: FigureSeries = field(default_factory=FigureSeries)
    _held: set[str] = field(default_factory=set)

    def engine(self, live: LiveEngine) -> None:
        drafts = _grown(self._from, live, "drafts")
        if drafts is None or drafts < 0:
            self._from = live
        elif drafts >= _DRAFTS:
            self._accepted.values.append(1 + (_grown(self._from, live, "accepted_tokens") or 0.0) / drafts)
            self._from = live
        queried = _grown(self._hits_from, live, "prefix_queries")
        if queried is None or queried < 0:
            self._hits_from = live
        elif queried >= _QUERIED:
            self._hits.values.append((_grown(self._hits_from, live, "prefix_hits") or 0.0) / queried)
            self._hits_from = live

    def acceptance(self, at: float) -> Fault | None:
        series = self._accepted
        if not self._fell("acceptance", series, _DOWN):
            return None
        what = f"tokens accepted a step fell to {series.latest[-1]:.2f}, {series.usual:.2f} is usual: {_PRECURSOR}"
        return Fault(at, "drift-acceptance", what, Recovery.NONE, _shown("mean acceptance length", series))

    def low(self, at: float) -> Fault | None:
        series = self._accepted
        if not (series.ready and series.usual >= _USUAL and max(series.latest) <= _LOW):
            return None
        what = f"only {series.latest[-1]:.2f} tokens a step are accepted under load, {series.usual:.2f} is usual"
        return Fault(at, "acceptance-low", what, Recovery.NONE, _shown("mean acceptance length", series))

    def prefix(self, at: float) -> Fault | None:
        series = self._hits
        usual = series.ready and series.usual >= _HITS_USUAL
        if not (usual and self._fell("prefix", series, _HITS_DOWN)):
            return None
        what = f"the prefix cache's hit rate fell to {series.latest[-1]:.0%}, {series.usual:.0%} is usual"
        return Fault(at, "drift-prefix", what, Recovery.NONE, _shown("hit rate", series))

    def _fell(self, name: str, series: FigureSeries, part: float) -> bool:
        """Held until the last window is near the usual again."""
        if series.below(part):
            self._held.add(name)
        elif name in self._held and series.latest[-1] >= (1 + part) / 2 * series.usual:
            self._held.discard(name)
        return name in self._held


_PRECURSOR = "a precursor of garbled output"


def _grown(before: LiveEngine | None, now: LiveEngine, name: str) -> float | None:
    first, last = getattr(before, name, None), getattr(now, name)
    return None if first is None or last is None else last - first


def _shown(what: str, series: FigureSeries) -> tuple[str, ...]:
    return (f"{what}, latest: {', '.join(f'{value:.2f}' for value in series.latest)}; usual {series.usual:.2f}",)
