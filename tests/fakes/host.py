"""A node of which a test states what it answers."""

import inspect
import shlex
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from sparkwright.domain.command import Command, Completed

Wanted = str | tuple[str, ...] | Callable[[Command], bool]
# A str is stdout with exit code 0; a list is the lines of a stream; an exception is raised; a function gets the
# command and gives any of these (a coroutine function is awaited: it can wait, for tests of cancellation).
Given = Completed | str | list[str] | BaseException | Callable[[Command], Any]


@dataclass
class Rule:
    expected: Wanted
    given: list[Given]

    def fits(self, command: Command) -> bool:
        if isinstance(self.expected, tuple):
            return command.argv[: len(self.expected)] == self.expected
        if isinstance(self.expected, str):
            return self.expected in joined(command)
        return self.expected(command)

    def next(self) -> Given:
        """The answers in their order; the last one for ever."""
        return self.given.pop(0) if len(self.given) > 1 else self.given[0]


@dataclass
class FakeHost:
    """Implements ports.Host. The rule added last wins; a command that no rule fits fails the test, or gets `default`.

    commands: all that ran, in order; files: path -> content of `put`; modes: path -> mode; tunnels: (address, port).
    round_trips: how often the node was spoken to. called: the address that ssh connects to.
    """

    name: str = "spark-1"
    default: Given | None = None
    commands: list[Command] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    modes: dict[str, int] = field(default_factory=dict)
    tunnels: list[tuple[str, int]] = field(default_factory=list)
    round_trips: int = 0
    open_streams: int = 0
    closed: bool = False
    called: str = ""
    _rules: list[Rule] = field(default_factory=list)

    def on(self, expected: Wanted, *given: Given) -> "FakeHost":
        """expected: the first parts of argv (tuple), a part of the joined argv (str), or a predicate."""
        self._rules.append(Rule(expected, list(given or (Completed(0, ""),))))
        return self

    def ran(self, expected: Wanted) -> list[Command]:
        """The commands that fit."""
        return [command for command in self.commands if Rule(expected, []).fits(command)]

    @property
    def changes(self) -> list[str]:
        """The changes that the commands reported."""
        return [command.changes for command in self.commands if command.changes]

    async def run(self, command: Command) -> Completed:
        self.round_trips += 1
        return await self._completed(command)

    async def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        self.round_trips += 1
        return tuple([await self._completed(command) for command in commands])

    async def stream(self, command: Command) -> AsyncIterator[str]:
        self.round_trips += 1
        self.open_streams += 1
        try:
            given = await self._answer(command)
            for line in _lines(given):
                yield line
        finally:
            self.open_streams -= 1

    async def put(self, content: bytes, path: str, mode: int = 0o644) -> None:
        self.round_trips += 1
        self.files[path] = content
        self.modes[path] = mode

    @asynccontextmanager
    async def tunnel(self, address: str, port: int) -> AsyncIterator[str]:
        self.tunnels.append((address, port))
        yield f"http://{address}:{port}"

    async def address(self) -> str:
        return self.called

    async def close(self, persist: bool = True) -> None:
        self.closed = True

    async def _completed(self, command: Command) -> Completed:
        given = await self._answer(command)
        if isinstance(given, Completed):
            return given
        return Completed(0, given if isinstance(given, str) else "".join(f"{line}\n" for line in given))

    async def _answer(self, command: Command) -> Completed | str | list[str]:
        self.commands.append(command)
        given: Any = self._given(command)
        if callable(given):
            given = given(command)
        if inspect.isawaitable(given):
            given = await given
        if isinstance(given, BaseException):
            raise given
        return given

    def _given(self, command: Command) -> Given:
        for rule in reversed(self._rules):
            if rule.fits(command):
                return rule.next()
        if self.default is None:
            raise AssertionError(f"{self.name}: the test has no answer for: {joined(command)}")
        return self.default


def joined(command: Command) -> str:
    return shlex.join(command.argv)


def _lines(given: Completed | str | list[str]) -> Iterable[str]:
    if isinstance(given, list):
        return given
    return (given if isinstance(given, str) else given.stdout).splitlines()
