"""The value for anything unknown. It stays unknown: nothing is guessed in its place."""

from typing import Literal, TypeVar

from sparkwright.domain.values import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Unknown:
    """A fact that could not be read: the line that was not understood, and why."""

    raw: str
    why: str = ""

    def __bool__(self) -> Literal[False]:
        return False


NOT_ASKED = Unknown("", "not asked")


def known_or_none(value: T | Unknown) -> T | None:
    return None if isinstance(value, Unknown) else value
