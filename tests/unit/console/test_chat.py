"""Signs of life of a chat whose engine is slow, and its end."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from sparkwright.console.chat import Said, with_signs_of_life


class SlowAnswer:
    """Two parts; the second one comes when it is let go."""

    def __init__(self, error: Exception | None = None) -> None:
        self.go, self.closed, self._error = asyncio.Event(), asyncio.Event(), error

    async def parts(self) -> AsyncGenerator[Said, None]:
        try:
            yield "text", "one"
            await self.go.wait()
            if self._error:
                raise self._error
            yield "text", "two"
        finally:
            self.closed.set()


async def test_a_silent_engine_is_told_from_a_dead_stream() -> None:
    """Guards a page that waits minutes for a first token: it hears that the connection lives, and loses nothing."""
    slow, heard = SlowAnswer(), list[Said]()
    async for one in with_signs_of_life(slow.parts(), every=0.01):
        heard.append(one)
        if heard.count(("still", "")) == 3:
            slow.go.set()
    assert [one for one in heard if one[0] != "still"] == [("text", "one"), ("text", "two")]
    assert heard.count(("still", "")) >= 3 and slow.closed.is_set()


async def test_a_reader_that_leaves_ends_the_answer() -> None:
    """Guards the engine against working for a page that was closed while it was silent."""
    slow = SlowAnswer()
    async with aclosing(with_signs_of_life(slow.parts(), every=0.01)) as signs:
        async for kind, _ in signs:
            if kind == "still":
                break
    async with asyncio.timeout(60):
        await slow.closed.wait()


async def test_a_defect_ends_the_stream() -> None:
    """Guards that an error which nobody expected is no silence."""
    slow = SlowAnswer(ArithmeticError("odd"))
    slow.go.set()
    with pytest.raises(ArithmeticError):
        async for _ in with_signs_of_life(slow.parts(), every=60.0):
            pass
