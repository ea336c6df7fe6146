"""All detectors behind one interface: what was seen goes in, what is new comes out. `at`: the head's clock, epoch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sparkwright.domain.live import LiveCanary, LiveEngine, LiveNode
from sparkwright.domain.sample import GpuSample, HaltedProcess, Sample
from sparkwright.domain.units import duration
from sparkwright.supervisor.core.detect.canary import MISSES, Canary, Garbage
from sparkwright.supervisor.core.detect.gpu import Doing, GpuWatch
from sparkwright.supervisor.core.detect.leak import Leak
from sparkwright.supervisor.core.detect.node import NodeWatch
from sparkwright.supervisor.core.detect.setting import Drift, Found, Latch, Setting
from sparkwright.supervisor.core.detect.stall import FabricWatch, Stall, Uneven, has_work
from sparkwright.supervisor.core.detect.stuck import Allowance, Life, Stuck, fresh_ones
from sparkwright.supervisor.core.events import Cleared, Fault
from sparkwright.supervisor.core.recovery import NOTHING, Needs, worst_needs
from sparkwright.supervisor.core.state import DISK_FULL, STALLED, Recovery

_WEDGED = Needs(Recovery.POWER_CYCLE, "the GPU's clock is pinned low under load")
# Lines are reported once, and what they show is not over because the next sample has none.
_FOR_GOOD = frozenset({"xid", "oom-kill", "driver-memory"})
# What may be reported of a node whose engine loads, or has ended: its memory goes up and down then.
_ALWAYS = _FOR_GOOD | {"clock-wedge", "hot", DISK_FULL}

# Between two ticks: a step of the clock (NTP after a long time off), a machine that was suspended or stood still.
_GAP, _BACK = 15.0, -1.0


def _made(before: LiveEngine | None, now: LiveEngine) -> float:
    """Tokens between two looks; 0 where they are not counted."""
    if before is None or before.generation_tokens is None or now.generation_tokens is None:
        return 0.0
    return max(now.generation_tokens - before.generation_tokens, 0.0)


def is_watch_gap(seconds: float) -> bool:
    """True if so much time between two ticks is a gap in watching, and not silence of the engine."""
    return not _BACK < seconds < _GAP


@dataclass
class Detectors:
    """Give it everything, always. Between `begin` and `end` it judges the service, else the machines alone."""

    setting: Setting
    serving: bool = False
    life: Life = field(default_factory=Life)
    canaries: Canary = field(default_factory=Canary)
    garbage: Garbage = field(default_factory=Garbage)
    drift: Drift = field(default_factory=Drift)
    nodes: dict[str, NodeWatch] = field(default_factory=dict)
    stuck: Stuck = field(init=False)
    stall: Stall = field(init=False)
    uneven: Uneven = field(init=False)
    fabric: FabricWatch = field(init=False)
    latch: Latch = field(init=False)
    _ticked: float = 0.0

    def __post_init__(self) -> None:
        self.stuck, self.fabric, self.stall = Stuck(self.setting), FabricWatch(self.setting), Stall(self.setting)
        self.uneven = Uneven(self.setting.patience.settle)
        self.latch = Latch(self.setting.patience.retell)
        self.nodes = {node: NodeWatch(node, self.setting) for node in self.setting.nodes}

    def begin(self, at: float, ready: float = 0.0) -> None:
        """A start is ready, since `ready` (0: just now): what was usual before is nothing to compare with, and nothing
        is wrong yet."""
        self.serving, self.uneven.since = True, 0.0
        self.life.begin(at)
        self.canaries, self.garbage, self.drift = Canary(asked=self.canaries.asked), Garbage(), Drift()
        self.stuck.begin(ready or at)
        self.stall.begin(at)
        self.latch = Latch(self.setting.patience.retell)
        self._ticked = at
        for node in self.nodes.values():
            node.begin(at)

    def end(self) -> None:
        """It serves no longer; what was wrong is a matter of the machine now."""
        self.serving = False
        self.latch = Latch(self.setting.patience.retell)

    def sample(self, node: str, sample: Sample, at: float) -> Found:
        """Judges a sample of a node of the setting; other nodes are skipped."""
        watch = self.nodes.get(node)
        if watch is None:
            return ()
        self.life.sample(node, sample, at, self.setting.patience.compiling)
        working = at - self.life.proved < self.setting.patience.stale / 3
        finished = self.life.last.finished if self.life.last else None
        found = watch.sample(sample, working, finished, at)
        judged = {kind: fault for kind, fault in found.items() if self.serving or kind.split(":")[0] in _ALWAYS}
        lasting = {kind: fault for kind, fault in judged.items() if fault or kind not in _FOR_GOOD}
        told = [self.latch.set(kind, node, fault, at) for kind, fault in lasting.items()]
        told.append(self.latch.set("unseen", node, None, at))
        return _flat(*told, self._together(at), self.tick(at))

    def _together(self, at: float) -> Found:
        if not self.serving:
            return ()
        memories = {name: memory for name, node in self.nodes.items() if (memory := node.memory) and node.guard.level}
        counted = [name for name, node in self.nodes.items() if node.reached and node.last and node.last.ports]
        return _flat(
            self.latch.set("rank-uneven", "", self.uneven.look(memories, at), at),
            self.latch.set("rdma-still", "", self.fabric.look(self.life, counted, at), at),
        )

    def lost(self, node: str, at: float, why: str = "") -> Found:
        """Its stream has ended: that is not the node's end. why: the first try to open it again often knows more."""
        if node not in self.nodes:
            return ()
        watch = self.nodes[node]
        anew = bool(why) and why != watch.lost_by
        watch.reached, watch.lost_by = False, why or watch.lost_by
        what = f"cannot sample {node}" + (f": {why}" if why else "")
        return self.latch.set("unseen", node, Fault(at, "unseen", what, Recovery.NONE), at, anew)

    def engine(self, live: LiveEngine | None, at: float) -> Found:
        """None: /metrics did not answer."""
        if live is None:
            return self.tick(at)
        before, self.stall.reported = self.life.last, at
        self.life.engine(live, at)
        if self.life.proved == at:
            self.canaries.seen(at, _made(before, live))
        self.drift.engine(live)
        return _flat(
            self.latch.set("drift-acceptance", "", self.drift.acceptance(at), at),
            self.latch.set("acceptance-low", "", self.drift.low(at), at),
            self.latch.set("drift-prefix", "", self.drift.prefix(at), at),
            self.tick(at),
        )

    def gateway(self, flights: int, at: float) -> Found:
        """flights: requests that it has sent to the engine and that are not answered yet."""
        self.stall.gateway(flights, at)
        return self.tick(at)

    def glance(self, node: str, gpu: GpuSample, at: float) -> Found:
        """A reading of a GPU between two samples."""
        if node in self.nodes:
            self.nodes[node].gpu.glance(gpu, at)
        return self.tick(at)

    def canary(self, answer: LiveCanary, at: float) -> Found:
        """answer.at: when it was asked; seconds None: nothing came, with the reason as its text."""
        self.canaries.answer(answer)
        if answer.seconds is None:
            return self.tick(at)
        self.life.proved = at
        self.life.moves("the canary", at)
        return _flat(self.latch.set("garbage", "", self.garbage.answer(answer.said, at), at), self.tick(at))

    def wants_canary(self, at: float) -> bool:
        """True if a canary is due; False while traffic proves life. A garbled answer is asked for once more soon."""
        due = self.canaries.wanted(self.life, self.setting.patience.proof, at)
        return bool(self.garbage.strikes) or due or self.hurries(at)

    def hurries(self, at: float) -> bool:
        """True if the next canary must not wait for its turn."""
        hurried = bool(self.stall.since) or self.canaries.hurried(self.life, at)
        return self.serving and (hurried or self.stall.unexplained(self.life, self.canaries, at))

    def _gap(self, at: float) -> None:
        """The clock was set, or nobody looked for so long: that is no stillness."""
        seconds, self._ticked = at - self._ticked, at
        if not is_watch_gap(seconds):
            return
        self.life.moves("the clock was set, or nothing looked for a while", at)
        self.life.proved = at
        self.stall.begin(at)
        self.canaries.looked_away(at)
        self.stuck.looked_away(seconds, at)
        self.uneven.since = self.fabric.since = 0.0
        for node in self.nodes.values():
            node.leak = Leak(node.node, self.setting.scale)

    def doubts(self, at: float) -> bool:
        """True if the ranks' processes should be inspected now."""
        return self.serving and self.stuck.doubtful(self.life, at)

    def looked(self, rank: str, halts: Sequence[HaltedProcess], at: float) -> Found:
        """rank: its label; halts: its processes that do not run."""
        self.stuck.halted.look(rank, halts, at)
        return self.tick(at)

    def tick(self, at: float) -> Found:
        """Checks the conditions that come true by time alone. Call it at least every two seconds."""
        if not self.serving:
            return ()
        self._gap(at)
        # While it hangs the engine does not report its work: then a canary without an answer is all that is known.
        self.stuck.load(at if has_work(self.life.last) else self.canaries.failed_since)
        fault = self.stuck.verdict(self.life, self.gpus, at) or self._unanswered(at)
        since = self.stall.since
        stall = self.stall.look(self.life, self.canaries, self.gpus, at)
        if fault is None:
            told = self.latch.set(STALLED, "", stall, at)
            over = tuple(self.stall.over(since, at) if isinstance(one, Cleared) else one for one in told)
            return _flat(over, *(self.latch.set(kind, "", None, at) for kind in ("frozen", "spin")))
        return self.latch.set(fault.kind, "", fault, at)

    def _unanswered(self, at: float) -> Fault | None:
        patience, canaries = self.setting.patience, self.canaries
        alone = self.allowance(at).seconds
        if self._nothing_else(at):
            alone = min(alone, max(patience.alone, self.setting.step_seconds))
        if canaries.refused >= MISSES:
            alone = min(alone, patience.alone)
        # A web server that shows a KV usage is a process next to its engine (vLLM, SGLang, TensorRT-LLM): kernels that
        # are compiled there are no reason to show nothing.
        own = self.life.last is not None and self.life.last.kv_usage is not None
        deaf = min(alone, self.stuck.allowance(self.life, self.gpus, at, fresh=not own).seconds)
        silent = canaries.deaf(at - self.stall.reported, deaf, at)
        return silent or canaries.unanswered(self.life.still(at), alone, at)

    def _nothing_else(self, at: float) -> bool:
        """No work but the canary is known, no GPU works, and the kernels of the usual shapes have been compiled."""
        live, patience = self.life.last, self.setting.patience
        doing = [gpu.doing for gpu in fresh_ones(self.gpus, patience.stale, at)]
        idle = bool(doing) and not {Doing.WORKING, Doing.UNKNOWN} & set(doing)
        return idle and at - self.stuck.began >= patience.fresh_for and (live is None or not live.running)

    @property
    def gpus(self) -> Mapping[str, GpuWatch]:
        return {name: node.gpu for name, node in self.nodes.items()}

    def allowance(self, at: float) -> Allowance:
        """The time for which nothing may move now while requests run, with the reason."""
        return self.stuck.allowance(self.life, self.gpus, at)

    def seen(self, since: float) -> tuple[str, ...]:
        """Events on the machines since `since`, seen by the supervisor itself, that end or delay ranks."""
        return tuple(line for node in self.nodes.values() for line in node.seen(since))

    def lost_since(self, at: float) -> float:
        """The time since which clients get nothing, for the present fault."""
        return self.stall.lost(self.life, at) if self.serving else at

    def quiet(self, at: float) -> str:
        """The sentence about requests that give nothing now and the time allowed; '' without any."""
        if not self.serving or not (seen := self.stall.seen(self.life, at)):
            return ""
        if self.stall.since:
            allowed = self.allowance(at)
            return f"{seen}; launched again after {duration(allowed.seconds)} of it at the latest ({allowed.why})"
        may = self.stall.excuse(self.life, self.gpus)
        return f"{seen}; {duration(may.seconds)} may pass ({may.why})"

    def live_node(self, node: str) -> LiveNode | None:
        watch = self.nodes.get(node)
        return watch.live() if watch and watch.seen_at else None

    def missed(self, node: str) -> bool:
        """True if the last try to sample it failed."""
        return self.latch.holds("unseen", node)

    def asks(self) -> Needs:
        """The needs beyond a relaunch that the nodes have shown since the start, for when the service is down."""
        wedged = any(node.gpu.wedge(0.0) for node in self.nodes.values())
        return worst_needs([_WEDGED if wedged else NOTHING, *(node.kernel.asks for node in self.nodes.values())])


def _flat(*parts: Found) -> Found:
    return tuple(one for part in parts for one in part)
