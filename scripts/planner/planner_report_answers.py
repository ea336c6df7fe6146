"""The planner's answers to one row, quantity by quantity, next to the measurements of the row's source."""

from __future__ import annotations

from dataclasses import dataclass, field

from planner_report_rows import PlannerCase

from sparkwright.domain.facts import Unknown


@dataclass(frozen=True, slots=True)
class PlannerAnswer:
    """predicted None: not predicted, for `reason`. low, high: the planner's own interval. peer: the other estimator's.

    error: relative and signed. For `fits`, 1 where it accepts what failed (unsafe), -1 where it refuses what ran.
    passed: it may not fit, or the source leaves out what decides. kind: of the model's attention. conditions: of this
    figure, such as depth and concurrency.
    """

    id: str
    quantity: str
    kind: str
    published: float | bool
    predicted: float | bool | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""
    peer: float | bool | None = None
    passed: bool = False
    conditions: dict[str, float | str] = field(default_factory=dict)

    @property
    def error(self) -> float | None:
        return relative(self.predicted, self.published)

    @property
    def peer_error(self) -> float | None:
        return relative(self.peer, self.published)

    @property
    def inside(self) -> bool | None:
        """True if the interval holds the published figure; None without an interval."""
        if self.low is None or self.high is None:
            return None
        return self.low <= self.published <= self.high


def relative(predicted: float | bool | None, published: float | bool) -> float | None:
    if predicted is None:
        return None
    if isinstance(published, bool):
        return float(predicted) - float(published)
    return (predicted - published) / published


def attention_kind(case: PlannerCase) -> str:
    """The kind of attention, by what the model caches."""
    shape = case.shape
    if isinstance(shape, Unknown):
        return "unknown"
    if shape.compress:
        return "compressed sparse (DeepSeek V4)"
    if shape.state_layers:
        return "linear or Mamba hybrid"
    if shape.latent:
        return "sparse MLA with indexer" if shape.index_layers else "MLA"
    if shape.index_layers:
        return "block-sparse GQA with indexer"
    return "sliding window + full" if shape.window_layers else "GQA, MHA"
