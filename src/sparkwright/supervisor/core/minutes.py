"""A supervisor's reports, every two seconds, condensed into one row a minute: what the console's last day shows."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sparkwright.domain.history import MINUTE, Minute, NodeMinute
from sparkwright.domain.live import OVER, SERVING, DeploymentState, Live, LiveEngine, LiveNode

_LONGEST = 30.0  # seconds between two counts that still make a rate


@dataclass
class _Rate:
    """Tokens by a counter, over the time that was watched. A counter that fell is another start's."""

    last: tuple[float, float] | None = None
    gained: float = 0.0
    seconds: float = 0.0

    def add(self, at: float, total: float | None) -> None:
        if total is None:
            return
        if self.last and 0.0 < at - self.last[0] <= _LONGEST and total >= self.last[1]:
            self.gained += total - self.last[1]
            self.seconds += at - self.last[0]
        self.last = at, total

    def taken(self) -> float | None:
        """The rate a second since the last call; None if nothing was counted."""
        rate = self.gained / self.seconds if self.seconds else None
        self.gained = self.seconds = 0.0
        return rate


@dataclass
class _Mean:
    total: float = 0.0
    count: int = 0

    def add(self, value: float | None) -> None:
        if value is not None:
            self.total += value
            self.count += 1

    @property
    def value(self) -> float | None:
        return self.total / self.count if self.count else None


@dataclass
class _Open:
    """The minute under way."""

    at: float
    state: DeploymentState
    reports: int = 0
    serving: int = 0
    running: _Mean = field(default_factory=_Mean)
    kv: _Mean = field(default_factory=_Mean)
    nodes: dict[str, tuple[_Mean, _Mean, _Mean]] = field(default_factory=dict)
    totals: dict[str, float] = field(default_factory=dict)


class Minutes:
    """The minutes of one deployment."""

    def __init__(self) -> None:
        self._open: _Open | None = None
        self._decode, self._prefill = _Rate(), _Rate()

    def add(self, live: Live) -> Minute | None:
        """The minute before, when this report begins another one. Of a clock that was set back nothing is known."""
        begins, done = live.at - live.at % MINUTE, None
        if self._open is None or begins != self._open.at:
            done = self._closed(live.deployment) if self._open and begins > self._open.at else None
            self._open = _Open(begins, live.phase)
        here = self._open
        here.reports += 1
        here.serving += live.phase in SERVING and not live.refusing
        here.state = max(here.state, live.phase, key=_badness)
        self._count(here, live.engine)
        self._sample(here, live.nodes)
        return done

    def _count(self, here: _Open, engine: LiveEngine | None) -> None:
        if engine is None:
            return
        self._decode.add(engine.at, engine.generation_tokens)
        self._prefill.add(engine.at, engine.prompt_tokens)
        here.running.add(engine.running)
        here.kv.add(engine.kv_usage)

    def _sample(self, here: _Open, nodes: Iterable[LiveNode]) -> None:
        for node in nodes:
            if not node.reached:
                continue
            means = here.nodes.setdefault(node.node, (_Mean(), _Mean(), _Mean()))
            for mean, value in zip(means, (node.available, node.gpu_temperature, node.gpu_power), strict=True):
                mean.add(value)
            here.totals[node.node] = float(node.total or 0)

    def _closed(self, deployment: str) -> Minute:
        here = self._open
        assert here is not None
        nodes = tuple(
            NodeMinute(name, available.value, here.totals[name] or None, temperature.value, power.value)
            for name, (available, temperature, power) in here.nodes.items()
        )
        return Minute(
            deployment,
            int(here.at),
            str(here.state),
            here.serving / here.reports,
            self._decode.taken(),
            self._prefill.taken(),
            here.running.value,
            here.kv.value,
            nodes,
        )


def _badness(phase: DeploymentState) -> int:
    """A stall of a second colours its minute."""
    if phase in OVER:
        return 3
    return 0 if phase is DeploymentState.READY else 1 if phase in SERVING else 2
