"""The engine of a log, its progress, and the error of its clock, by its lines."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from statistics import median

from sparkwright.domain.deployment import PHASE_ORDER, LogEvent, Phase
from sparkwright.domain.values import dataclass
from sparkwright.engines.dialect import dialect, log_read_up_to
from sparkwright.engines.tables import SEPARATE
from sparkwright.engines.version import version_key
from sparkwright.logscan.logline import decoded
from sparkwright.logscan.matcher import Hit
from sparkwright.logscan.sign import Story

_SAMPLED = 300  # lines by which the engine is found
_REMEMBERED = 1 << 13  # lines: a diagnosis asks several times for the engine and the progress of the same log
# What a signature may ask for, and the values.
CONDITIONS: Mapping[str, Collection[str]] = {"rank": ("head", "worker"), "engine": SEPARATE, "phase": PHASE_ORDER}
_WORKER = re.compile(r"\bnode[-_]rank(?:[=: '\"]{1,4})[1-9]|\s--headless\b")
# Ends of collective steps: no rank prints them before the last one is there.
BARRIERS = {
    "barrier nccl": r"comm 0x[0-9a-f]+ .{0,160}Init COMPLETE",
    "barrier sglang init": r"Init (?:torch distributed|parallel) ends",
    "barrier vllm profile": r"Available KV cache memory: ",
    "barrier vllm graphs": r"Graph capturing finished in ",
    "barrier sglang graphs": r"Capture (?:cuda|device) graph end",
}
LEAST = 2.0  # seconds; ranks leave a barrier up to about that far apart
_SPREAD = 10.0  # barriers that disagree by more tell nothing


@dataclass(frozen=True, slots=True)
class LogProgress:
    """phases: (line, phase) where a later one begins; served: the last line of readiness."""

    phases: tuple[tuple[int, Phase], ...] = ()
    served: int = 0

    def may_end_at(self, number: int, strong: bool) -> bool:
        """True if the log may end at that line; a remark counts only in the last phase, and never once ready."""
        last = self.phases[-1][0] if self.phases else 0
        return number > self.served and (strong or (number > last and not self.served))

    def at(self, number: int) -> Phase | None:
        """None where no line before shows a phase."""
        return next((phase for line, phase in reversed(self.phases) if line <= number), None)


@dataclass(frozen=True, slots=True)
class LogOrigin:
    """The origin of a log. engine: '' if no line shows it; rank: head or worker."""

    engine: str
    rank: str
    progress: LogProgress

    def allows(self, only: Sequence[tuple[str, tuple[str, ...]]], number: int) -> bool:
        """True if a sign with these conditions counts in a line; a condition that the log does not show is not met."""
        shown = {"engine": self.engine, "rank": self.rank, "phase": str(self.progress.at(number) or "")}
        return all(shown[name] in allowed for name, allowed in only)


def counted(source: str, kept: Iterable[tuple[int, bytes]], hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """The hits that count in a log of this engine, rank or phase. kept: (number, raw line) of the log."""
    if not any(hit.signed.sign.only for hit in hits):
        return tuple(hits)
    whose = origin_of(source, [(number, decoded(raw)) for number, raw in kept])
    return tuple(hit for hit in hits if whose.allows(hit.signed.sign.only, hit.proof[0].number))


def origin_of(source: str, lines: Sequence[tuple[int, str]]) -> LogOrigin:
    """A worker is what its settings call a node after the first, or our name of the source (`rank 1 on spark-2`)."""
    is_worker = re.match(r"rank [1-9]", source) or any(_WORKER.search(text) for _, text in lines[:_SAMPLED])
    engine = engine_of(lines)
    return LogOrigin(engine, "worker" if is_worker else "head", progress(lines))


@lru_cache(_REMEMBERED)
def read_line(engine: str, text: str) -> LogEvent | None:
    """The event of a line in the dialect of that engine."""
    return dialect(engine).read(text)


def engine_of(lines: Sequence[tuple[int, str]]) -> str:
    """The one that understands most of the first lines, '' where none understands any."""
    known = {name: sum(read_line(name, text) is not None for _, text in lines[:_SAMPLED]) for name in SEPARATE}
    best = max(SEPARATE, key=lambda name: known[name])
    return best if known[best] else ""


def newer_than_read(lines: Sequence[tuple[int, str]]) -> str:
    """The engine and version that a log names, and the newest version whose log was read, if that is older; ''."""
    if not (engine := engine_of(lines)):
        return ""
    events = (read_line(engine, text) for _, text in lines[:_SAMPLED])
    named = next((value for event in events if event for name, value in event.facts if name == "version"), "")
    newest = log_read_up_to(engine, named)
    if newest and version_key(engine, named)[:3] > version_key(engine, newest)[:3]:
        return f"what {engine} {named} writes anew: its log was read up to {newest}"
    return ""


def progress(lines: Sequence[tuple[int, str]]) -> LogProgress:
    """The progress, by the engine that understands most of the lines."""
    engine = engine_of(lines) or SEPARATE[0]
    phases: list[tuple[int, Phase]] = []
    furthest, served = -1, 0
    for number, text in lines:
        event = read_line(engine, text)
        if event is None:
            continue
        served = number if event.ready else served
        place = PHASE_ORDER.index(event.phase)
        if place > furthest and not event.error and not event.alive:
            furthest = place
            phases.append((number, event.phase))
    return LogProgress(tuple(phases), served)


def shifts(stories: Sequence[Story]) -> Mapping[str, float]:
    """Source -> seconds to add to its times so that they are those of the first source that has barriers."""
    seen = {s.source: {name: s.marks[name].first.at for name in BARRIERS if name in s.marks} for s in stories}
    met = {source: {n: at for n, at in times.items() if at is not None} for source, times in seen.items()}
    reference = next((times for times in met.values() if times), {})
    return {source: _shift(reference, times) for source, times in met.items()}


def _shift(reference: Mapping[str, float], times: Mapping[str, float]) -> float:
    apart = [reference[name] - times[name] for name in reference if name in times]
    if not apart or max(apart) - min(apart) > _SPREAD:
        return 0.0
    middle = median(apart)
    return middle if abs(middle) >= LEAST else 0.0
