"""The ground on which drills are run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from drills.drill import Drill
from drills.ground import DrillGround
from drills.outage_drill import OutageDrill

AnyDrill = Drill | OutageDrill


@dataclass(frozen=True, slots=True)
class DrillStage:
    """Drills that share one deployment, at most so many as the loop guard allows launches. scale: of the supervisor's
    waits; changes: of the recipe."""

    drills: tuple[AnyDrill, ...]
    runtime: str = "docker"
    scale: float = 1.0
    lasting: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    before: Callable[[DrillGround], None] | None = None
