"""The calibrations that engines reported, in memory."""

from sparkwright.domain.calibration import Calibration, Conditions


class FakeCalibrations:
    """Implements ports.Calibrations. trouble: why nothing can be kept, '' when it can."""

    def __init__(self, trouble: str = "") -> None:
        self.kept: dict[tuple[str, ...], Calibration] = {}
        self.trouble = trouble

    def save(self, calibration: Calibration) -> str:
        if not self.trouble:
            under = calibration.conditions
            self.kept[under.family + under.place] = calibration
        return self.trouble

    def like(self, conditions: Conditions) -> tuple[Calibration, ...]:
        return tuple(one for one in self.kept.values() if one.conditions.family == conditions.family)
