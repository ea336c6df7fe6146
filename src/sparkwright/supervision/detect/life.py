"""Signs of life: whatever moves while requests run proves that the engine computes.

What moves when, in vLLM 0.21.0 (v1/engine/async_llm.py, v1/core/sched/scheduler.py; the captured pages): running, KV
usage and prefix counters come with the scheduler's statistics at the end of every engine step, also of one that gives
no output; prompt, generated and step counters only with output. So in a chunked prefill the KV usage alone moves, once
a chunk. An engine that hangs in a step says for ever what it said after the step before, `running 0` included.
llama.cpp counts its decode calls, SGLang its pool with every prefill batch; both count tokens when a request ends.
Between nodes every layer of every step goes over RDMA. Requests that clients give up prove nothing, and neither does
it that fewer run.
"""

from dataclasses import dataclass, field

from sparkwright.domain.live import LiveEngine
from sparkwright.domain.sample import Sample

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
    """moved: when anything moved last; by: what. proved: when work came out, tokens or finished requests. worked: as
    moved, compilers aside.

    compiling: since when compilers run without anything else moving, 0 when none do.
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
        changed = [sign for sign in _SIGNS if _differs(getattr(before, sign), getattr(live, sign))]
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
        """When RDMA traffic of the node was seen last; 0: never."""
        return self._carried.get(node, 0.0)

    def still(self, at: float) -> float:
        return max(at - self.moved, 0.0)


def _differs(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and one != other
