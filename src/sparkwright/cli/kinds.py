"""Kinds of option values with sentences of our own, options with older names, and the one way to give a duration."""

import re
from collections.abc import Callable, Sequence
from functools import wraps
from math import inf
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

from sparkwright.domain.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = r"\d{1,9}(?:\.\d{1,6})?"
_DURATION = re.compile(rf"(?:{_PART}[smhd])+", re.ASCII)
_NUMBER = re.compile(_PART, re.ASCII)


class Whole(click.IntRange):
    """Whole number within bounds."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return "N"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"found {value!r}, expected a whole number{_bounds(self)}", param, ctx)


def _bounds(kind: click.IntRange) -> str:
    if kind.min is not None and kind.max is not None:
        return f" from {kind.min:g} to {kind.max:g}"
    return "" if kind.min is None else f" of at least {kind.min:g}"


class Duration(click.ParamType):  # type: ignore[type-arg]
    """`90s`, `5m`, `1h30m`, `2d` -> seconds. unit: seconds of a plain number; None requires a unit.

    zero: no time at all is allowed.
    """

    name = "duration"

    def __init__(self, least: float, unit: float | None = None, most: float = inf, zero: bool = False) -> None:
        self.least, self.unit, self.most, self.zero = least, unit, most, zero

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return "DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        text = str(value).strip().lower()
        if _DURATION.fullmatch(text):
            found = sum(float(number) * _UNITS[unit] for number, unit in re.findall(rf"({_PART})([smhd])", text))
        elif self.unit and _NUMBER.fullmatch(text):
            found = float(text) * self.unit
        else:
            self.fail(f"found {value!r}, expected a duration such as 90s, 5m or 1h30m", param, ctx)
        if found < self.least or (not found and not self.zero):
            least = f"at least {self.least:g}s" if self.least else "more than 0s"
            self.fail(f"found {value!r}, expected {least}", param, ctx)
        if found > self.most:
            self.fail(f"found {value!r}, expected at most {self.most:g}s", param, ctx)
        return found


def checked_url(url: str) -> str:
    """The same URL of a server. Raises UsageError, which shows no password, for one that no client can use."""
    hint = "http://HOST:PORT or https://HOST:8443/v1"
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError as error:
        raise UsageError(f"{url.rpartition('@')[2]}: {str(error) or 'no URL'}", hint) from None
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            f"{parts.scheme}://...@{host}: a user or password in a URL is shown and stored", "--key-file FILE"
        )
    if not host or port == 0 or parts.query or parts.fragment:
        raise UsageError(f"{url}: expected the address of a server", hint)
    return url


class Renamed(click.Option):
    """An option with older names that still work and are not shown."""

    def __init__(self, declarations: Sequence[str], *, aliases: Sequence[str] = (), **given: Any) -> None:
        super().__init__(declarations, **given)
        self.aliases = tuple(aliases)

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        shown, self.opts = self.opts, [*self.opts, *self.aliases]
        try:
            super().add_to_parser(parser, ctx)
        finally:
            self.opts = shown


def renamed_option(*names: str, was: str | Sequence[str], **given: Any) -> Callable[[F], F]:
    """`click.option` with older names."""
    aliases = (was,) if isinstance(was, str) else was
    return click.option(*names, cls=Renamed, aliases=aliases, **given)


def time_option(told: str, least: float, default: float | None = None, **old: float) -> Callable[[F], F]:
    """--time DURATION; the function gets it as `seconds`. old: hidden older options, with seconds of a plain number."""

    def option(function: F) -> F:
        @wraps(function)
        def with_seconds(*args: Any, **given: Any) -> Any:
            named = {name: given.pop(name) for name in ("time", *old)}
            found = {name: value for name, value in named.items() if value is not None}
            if len(found) > 1:
                raise click.UsageError(f"{' and '.join(f'--{name}' for name in found)} exclude each other")
            return function(*args, seconds=next(iter(found.values()), default), **given)

        made: Any = with_seconds
        for name, unit in old.items():
            made = click.option(f"--{name}", type=Duration(least, unit), default=None, hidden=True)(made)
        return click.option("--time", type=Duration(least), default=None, help=told)(made)  # type: ignore[no-any-return]

    return option
