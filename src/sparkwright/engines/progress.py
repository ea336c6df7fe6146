"""How far an engine got by the lines of its log, and how far the clocks of its ranks are apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from sparkwright.domain.deployment import PHASE_ORDER, Phase
from sparkwright.engines.catalog import ENGINES, SEPARATE
from sparkwright.logscan.sign import Story

_SAMPLED = 300  # lines by which the engine is found


@dataclass(frozen=True, slots=True)
class Progress:
    """phases: (line, phase) where a later one begins; served: the last line of readiness."""

    phases: tuple[tuple[int, Phase], ...] = ()
    served: int = 0

    def may_end_at(self, number: int, strong: bool) -> bool:
        """Whether it went no further after that line; a remark counts only in the last phase, and never once ready."""
        last = self.phases[-1][0] if self.phases else 0
        return number > self.served and (strong or (number > last and not self.served))

    def at(self, number: int) -> Phase | None:
        """None where no line before shows a phase."""
        return next((phase for line, phase in reversed(self.phases) if line <= number), None)


def progress(lines: Sequence[tuple[int, str]]) -> Progress:
    """By the engine that understands most of the lines."""
    sample = lines[:_SAMPLED]
    engine = max(
        (ENGINES[name] for name in SEPARATE), key=lambda one: sum(one.read(text) is not None for _, text in sample)
    )
    phases: list[tuple[int, Phase]] = []
    furthest, served = -1, 0
    for number, text in lines:
        event = engine.read(text)
        if event is None:
            continue
        served = number if event.ready else served
        place = PHASE_ORDER.index(event.phase)
        if place > furthest and not event.error and not event.alive:
            furthest = place
            phases.append((number, event.phase))
    return Progress(tuple(phases), served)


# Ends of collective steps: no rank prints them before the last one is there.
BARRIERS = {
    "barrier nccl": r"comm 0x[0-9a-f]+ .{0,160}Init COMPLETE",
    "barrier sglang init": r"Init torch distributed ends",
    "barrier vllm profile": r"Available KV cache memory: ",
    "barrier vllm graphs": r"Graph capturing finished in ",
    "barrier sglang graphs": r"Capture (?:cuda|device) graph end",
}
LEAST = 2.0  # seconds; ranks leave a barrier up to about that far apart
_SPREAD = 10.0  # barriers that disagree by more tell nothing


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
