"""A frozen engine, told apart from a busy one: requests run, and nothing moves for longer than work can explain."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sparkwright.domain.live import LiveEngine
from sparkwright.domain.units import duration
from sparkwright.supervision.detect.gpu import Doing, GpuWatch
from sparkwright.supervision.detect.halted import Halted
from sparkwright.supervision.detect.life import Life
from sparkwright.supervision.detect.setting import Setting
from sparkwright.supervision.events import Fault
from sparkwright.supervision.state import Recovery

# Expected speeds are of an average prompt: the longest ones go slower towards their end (Setting.step_seconds).
_PROMPTS = 2.0
# Part of the patience with what spins: longer than any healthy decode step, short enough to cost no verdict time.
_DOUBT = 0.25


@dataclass(frozen=True, slots=True)
class Allowance:
    """How long nothing may move while requests run, and what that rests on."""

    seconds: float
    why: str


def allowance(setting: Setting, live: LiveEngine | None, doing: Sequence[Doing], fresh: bool) -> Allowance:
    """doing: of the GPUs that can be read. fresh: within the first minutes of a start."""
    patience = setting.patience
    first = "kernels may still be compiled so soon after the start"
    base = Allowance(patience.fresh, first) if fresh else Allowance(patience.still, "no step takes longer")
    if live is not None and live.kv_usage is not None:
        return max(base, of_a_step(setting), key=lambda one: one.seconds)
    if Doing.WORKING in doing or not doing:
        return max(base, of_a_prompt(setting), key=lambda one: one.seconds)
    return base


def of_a_step(setting: Setting) -> Allowance:
    """This engine's KV usage moves with every step."""
    why = f"a step of {setting.batched:,} prompt tokens, four times what it takes at the expected speed"
    return Allowance(setting.step_seconds, why)


def of_a_prompt(setting: Setting) -> Allowance:
    """This engine counts only when a prompt is done, and its GPU may well work on one."""
    if not (setting.context and setting.prefill_tokens_s):
        return Allowance(setting.patience.unknown, "the length of its longest prefill is not known")
    seconds = _PROMPTS * setting.context / setting.prefill_tokens_s
    return Allowance(seconds, f"a prompt of {setting.context:,} tokens, twice what it takes at the expected speed")


@dataclass
class Stuck:
    """busy: since when requests run (0: none do). Stillness before that is nobody's."""

    setting: Setting
    began: float = 0.0
    busy: float = 0.0
    halted: Halted = field(init=False)

    def __post_init__(self) -> None:
        self.halted = Halted(self.setting.patience.spin)

    def begin(self, at: float) -> None:
        self.began, self.busy = at, 0.0
        self.halted.begin()

    def looked_away(self, seconds: float, at: float) -> None:
        self.began, self.busy = self.began + seconds, at if self.busy else 0.0
        self.halted.begin()

    def doubtful(self, life: Life, at: float) -> bool:
        """Whether it stands still for so long that its processes are worth a look."""
        return self.busy > 0 and at - max(life.worked, self.busy) >= _DOUBT * self.setting.patience.spin

    def load(self, since: float) -> None:
        """since: when the work that is there was first seen, 0 for none."""
        self.busy = min(self.busy or since, since)

    def allowance(self, life: Life, gpus: Mapping[str, GpuWatch], at: float, fresh: bool = True) -> Allowance:
        """fresh: False: not even a start explains it."""
        patience = self.setting.patience
        doing = [gpu.doing for gpu in fresh_ones(gpus, patience.stale, at) if gpu.doing is not Doing.UNKNOWN]
        return allowance(self.setting, life.last, doing, fresh and at - self.began < patience.fresh_for)

    def verdict(self, life: Life, gpus: Mapping[str, GpuWatch], at: float) -> Fault | None:
        """RELAUNCH as `spin` or `frozen`."""
        if not self.busy:
            return None
        if halt := self.halted.verdict(at - max(life.worked, self.busy), at):
            return replace(halt, evidence=(*halt.evidence, *_evidence(life, gpus)))
        still = at - max(life.moved, self.busy)
        if still >= self.setting.patience.spin and self._all_spin(gpus, at):
            return Fault(at, "spin", _spins(life, still), Recovery.RELAUNCH, _evidence(life, gpus))
        allowed = self.allowance(life, gpus, at)
        if still <= allowed.seconds:
            return None
        what = f"requests run and nothing has moved for {duration(still)}, {duration(allowed.seconds)} is allowed: "
        return Fault(at, "frozen", what + allowed.why, Recovery.RELAUNCH, _evidence(life, gpus))

    def _all_spin(self, gpus: Mapping[str, GpuWatch], at: float) -> bool:
        """Every rank waits in a kernel: while one compiles, its peers spin, too, and that is no fault."""
        read = fresh_ones(gpus, self.setting.patience.stale, at)
        return len(read) == self.setting.world and all(gpu.doing is Doing.SPINNING for gpu in read)


def fresh_ones(gpus: Mapping[str, GpuWatch], stale: float, at: float) -> list[GpuWatch]:
    return [gpu for gpu in gpus.values() if gpu.read_at and at - gpu.read_at <= stale]


def _spins(life: Life, still: float) -> str:
    return (
        f"all GPUs are busy without work: nothing has moved for {duration(still)} (last: {life.by}), "
        "and they draw little power or touch no memory"
    )


def _evidence(life: Life, gpus: Mapping[str, GpuWatch]) -> tuple[str, ...]:
    live = life.last
    told: tuple[str, ...] = (f"last sign of life: {life.by}",)
    if live is not None:
        counted = {"running": live.running, "waiting": live.waiting, "KV usage": live.kv_usage}
        counted |= {"generated": live.generation_tokens, "prompt tokens": live.prompt_tokens}
        told += (", ".join(f"{name} {value:g}" for name, value in counted.items() if value is not None),)
    return (*told, *(gpu.told() for gpu in gpus.values()))
