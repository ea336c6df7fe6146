"""What the use case reported."""

from typing import TypeVar

from sparkwright.domain.progress import Happening

T = TypeVar("T")


class FakeSink:
    """Implements ports.Sink. told: everything in order."""

    def __init__(self) -> None:
        self.told: list[Happening] = []

    def report(self, happening: Happening) -> None:
        self.told.append(happening)

    def of(self, kind: type[T]) -> list[T]:
        return [happening for happening in self.told if isinstance(happening, kind)]
