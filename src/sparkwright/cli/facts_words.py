"""Words for facts: `unknown` with the reason where there is no answer, and nothing for what is not worth a word."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from sparkwright.domain.unknown import Unknown

T = TypeVar("T")


def lines_of(fact: T | Unknown, read: Callable[[T], Sequence[str]]) -> Sequence[str]:
    """The lines of a fact, or the reason why it is unknown."""
    return [unknown(fact)] if isinstance(fact, Unknown) else read(fact)


def unknown(fact: Unknown) -> str:
    """`unknown: why (the node's output)`."""
    said = f" ({fact.raw})" if fact.raw and fact.why else fact.raw
    return f"unknown: {fact.why}{said}"


def each(read: Callable[[T], str]) -> Callable[[Sequence[T]], Sequence[str]]:
    """One line for each."""
    return lambda found: [read(one) for one in found]


def known(value: object, form: str = "{}") -> str:
    """'' for what is not known: inside a line only what is known is worth a word."""
    return "" if isinstance(value, Unknown) or value in ("", None) else form.format(value)


def listed(*parts: str) -> str:
    return ", ".join(part for part in parts if part)
