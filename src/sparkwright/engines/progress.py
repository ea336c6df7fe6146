"""How far an engine got by the lines of its log."""

from collections.abc import Sequence
from dataclasses import dataclass

from sparkwright.domain.deployment import PHASE_ORDER, Phase
from sparkwright.engines.catalog import ENGINES, SEPARATE

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
