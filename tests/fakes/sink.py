"""The events that the use case reported."""

from typing import TypeVar

from sparkwright.domain.progress import Happening

T = TypeVar("T")


class FakeSink:
    """Implements ports.Sink. happenings: in order."""

    def __init__(self) -> None:
        self.happenings: list[Happening] = []

    def report(self, happening: Happening) -> None:
        self.happenings.append(happening)

    def of(self, kind: type[T]) -> list[T]:
        return [happening for happening in self.happenings if isinstance(happening, kind)]
