"""A hub that reports what it was asked to report, and remembers what it was asked."""

from sparkwright.domain.checkpoint import Published
from sparkwright.domain.facts import Unknown


class FakeHub:
    """`look` is the hub of app.services."""

    def __init__(self, answer: Published | Unknown | None = None) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str]] = []

    async def look(self, model: str, revision: str = "") -> Published | Unknown | None:
        self.asked.append((model, revision))
        return self.answer
