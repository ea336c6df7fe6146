"""A frozen engine, apart from a busy one: requests run, and nothing moves for longer than work can explain."""

from collections.abc import Mapping, Sequence

from sparkwright.domain.live import LiveEngine
from sparkwright.domain.sample import HaltedProcess, Sample
from sparkwright.domain.units import duration
from sparkwright.domain.values import dataclass, field, replace
from sparkwright.supervisor.core.detect.gpu import Doing, GpuWatch
from sparkwright.supervisor.core.detect.setting import Setting
from sparkwright.supervisor.core.events import Fault
from sparkwright.supervisor.core.state import Recovery

# Words of four bytes between two looks, 16 KiB: two decoded tokens handed from one pipeline stage to the next are more.
_TRAFFIC = 4096
_SIGNS = {
    "generation_tokens": "generated tokens",
    "prompt_tokens": "prompt tokens",
    "finished": "finished requests",
    "iterations": "engine steps",
    "kv_usage": "KV usage",
    "prefix_queries": "prefix cache queries",
}


@dataclass
class Life:
    """Signs of life: whatever moves while requests run proves that the engine computes.

    What moves when, in vLLM 0.21.0 (v1/engine/async_llm.py, v1/core/sched/scheduler.py): running, KV usage and prefix
    counters come with the scheduler's statistics at the end of every engine step, also of one without output; prompt,
    generated and step counters only with output. So in a chunked prefill the KV usage alone moves, once a chunk. An
    engine that hangs in a step shows its figures of the step before for ever, `running 0` included. llama.cpp counts
    its decode calls, SGLang its pool with every prefill batch; both count tokens when a request ends. Between nodes
    every layer of every step goes over RDMA. Requests that clients give up prove nothing, and neither does it that
    fewer run.

    moved: when anything moved last; by: what. proved: when work came out, tokens or finished requests. worked: as
    moved, compilers aside. compiling: since when compilers run without anything else moving, 0 when none do.
    """

    moved: float = 0.0
    by: str = "the start"
    proved: float = 0.0
    worked: float = 0.0
    compiling: float = 0.0
    last: LiveEngine | None = None
    _traffic: dict[str, int] = field(default_factory=dict)
    _carried: dict[str, float] = field(default_factory=dict)

    def begin(self, at: float) -> None:
        self.moves("the start", at)
        self.proved, self.last = at, None

    def engine(self, live: LiveEngine, at: float) -> None:
        before, self.last = self.last, live
        if before is None:
            return
        pairs = {sign: (getattr(before, sign), getattr(live, sign)) for sign in _SIGNS}
        changed = [sign for sign, (old, new) in pairs.items() if None not in (old, new) and old != new]
        if (live.running or 0) > (before.running or 0):
            self.moves("running requests", at)
        if changed:
            self.moves(_SIGNS[changed[0]], at)
        if any(sign in changed for sign in ("generation_tokens", "finished")):
            self.proved = at

    def sample(self, node: str, sample: Sample, at: float, excuse: float) -> None:
        """excuse: seconds for which compilers count as a sign of life."""
        words = sum(port.sent + port.received for port in sample.ports)
        before = self._traffic.get(node)
        self._traffic[node] = words
        if before is not None and abs(words - before) > _TRAFFIC:
            self._carried[node] = at
            self.moves(f"RDMA traffic of {node}", at)
        if sample.compilers:
            self.compiling = self.compiling or at
            if at - self.compiling < excuse:
                self.moved, self.by = at, f"compilers on {node}"
        elif self.by == f"compilers on {node}":
            self.compiling = 0.0

    def moves(self, what: str, at: float) -> None:
        self.moved = self.worked = at
        self.by, self.compiling = what, 0.0

    def carried(self, node: str) -> float:
        """The time of the node's last RDMA traffic; 0: never."""
        return self._carried.get(node, 0.0)

    def still(self, at: float) -> float:
        return max(at - self.moved, 0.0)


# Whoever looks into a process (py-spy, a core dump) stops it for a moment: it must be found so again half of the
# patience later, and nothing may have moved for all of it.
_LASTING = 0.5
_SHOWN = 3


@dataclass
class Halted:
    """Ranks with a process that is stopped: those can neither work nor compile, however new the start is.

    patience: seconds of stillness. Processes are inspected only while an engine makes no progress.
    """

    patience: float
    _found: dict[str, tuple[float, float, tuple[HaltedProcess, ...]]] = field(default_factory=dict)

    def begin(self) -> None:
        self._found.clear()

    def look(self, rank: str, halts: Sequence[HaltedProcess], at: float) -> None:
        """rank: its label. What was found long before is another story."""
        before = self._found.pop(rank, None)
        if halts:
            since = before[0] if before and at - before[1] <= self.patience else at
            self._found[rank] = (since, at, tuple(halts))

    def verdict(self, still: float, at: float) -> Fault | None:
        """RELAUNCH as `frozen`. still: seconds in which nothing but compilers moved while requests ran."""
        held = {rank: halts for rank, (since, last, halts) in self._found.items() if self._lasts(since, last, at)}
        if still < self.patience or not held:
            return None
        first, halts = next(iter(held.items()))
        what = f"{first}: {halts[0]}, and nothing has moved for {duration(still)} while requests run"
        told = tuple(f"{rank}: {halt}" for rank, halts in held.items() for halt in halts[:_SHOWN])
        return Fault(at, "frozen", what, Recovery.RELAUNCH, told)

    def _lasts(self, since: float, last: float, at: float) -> bool:
        return last - since >= _LASTING * self.patience and at - last <= self.patience


# Expected speeds are of an average prompt: the longest ones go slower towards their end (Setting.step_seconds).
_PROMPTS = 2.0
# Part of the patience with what spins: longer than any healthy decode step, short enough to cost no verdict time.
_DOUBT = 0.25


@dataclass(frozen=True, slots=True)
class Allowance:
    """The time for which nothing may move while requests run, and its reason."""

    seconds: float
    why: str


def allowance(
    setting: Setting, live: LiveEngine | None, doing: Sequence[Doing], fresh: bool, served: bool = False
) -> Allowance:
    """doing: of the GPUs that can be read. fresh: within the first minutes of a start. served: it gave tokens since."""
    patience = setting.patience
    base = Allowance(patience.still, "no step takes longer")
    if fresh:
        compiles = "kernels may still be compiled so soon after the start"
        again = f"it has served, but a step of a new shape may be compiled in its first {duration(patience.fresh_for)}"
        base = Allowance(patience.fresh, again if served else compiles)
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
        """True if it has made no progress for so long that its processes are worth a look."""
        return self.busy > 0 and at - max(life.worked, self.busy) >= _DOUBT * self.setting.patience.spin

    def load(self, since: float) -> None:
        """Notes the work. since: time at which the present work was first seen, 0 for none."""
        self.busy = min(self.busy or since, since)

    def allowance(self, life: Life, gpus: Mapping[str, GpuWatch], at: float, fresh: bool = True) -> Allowance:
        """fresh: False: not even a start explains it."""
        patience = self.setting.patience
        doing = [gpu.doing for gpu in fresh_ones(gpus, patience.stale, at) if gpu.doing is not Doing.UNKNOWN]
        fresh = fresh and at - self.began < patience.fresh_for
        return allowance(self.setting, life.last, doing, fresh, served=life.proved > self.began)

    def verdict(self, life: Life, gpus: Mapping[str, GpuWatch], at: float) -> Fault | None:
        """RELAUNCH as `spin` or `frozen`."""
        if not self.busy:
            return None
        if halt := self.halted.verdict(at - max(life.worked, self.busy), at):
            return replace(halt, evidence=(*halt.evidence, *_evidence(life, gpus)))
        still = at - max(life.moved, self.busy)
        if still >= self.setting.patience.spin and self._all_spin(gpus, at):
            spins = (
                f"all GPUs are busy without work: nothing has moved for {duration(still)} (last: {life.by}), "
                "and they draw little power or touch no memory"
            )
            return Fault(at, "spin", spins, Recovery.RELAUNCH, _evidence(life, gpus))
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


def _evidence(life: Life, gpus: Mapping[str, GpuWatch]) -> tuple[str, ...]:
    live = life.last
    told: tuple[str, ...] = (f"last sign of life: {life.by}",)
    if live is not None:
        counted = {"running": live.running, "waiting": live.waiting, "KV usage": live.kv_usage}
        counted |= {"generated": live.generation_tokens, "prompt tokens": live.prompt_tokens}
        told += (", ".join(f"{name} {value:g}" for name, value in counted.items() if value is not None),)
    return (*told, *(gpu.summary() for gpu in gpus.values()))
