"""A view that is drawn again and again: in place on a terminal, frame after frame elsewhere."""

import asyncio
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.cli import options as shared
from sparkwright.cli.columns import echo_text
from sparkwright.cli.kinds import Duration
from sparkwright.domain.printable import printable
from sparkwright.domain.values import dataclass

if TYPE_CHECKING:
    from sparkwright.app.services import Services

every_option = click.option(
    "--every",
    type=Duration(0.5, 1.0, 3600),
    default=2.0,
    help="Time between two looks, with a view that is updated. [default: 2s]",
)


@dataclass(frozen=True, slots=True)
class Frame:
    """text: plain lines. document: the same for --json."""

    text: str
    document: dict[str, Any]


Look = Callable[["Services"], Awaitable[Frame]]


def watch_screen(where: ClusterOptions, look: Look, every: float, as_json: bool) -> None:
    """Draws until Ctrl-C, its usual end: the terminal is as before, and the exit code is 0."""

    async def work(services: "Services") -> None:
        try:
            if as_json or not sys.stdout.isatty():
                await _printed(services, look, every, as_json)
            else:
                await _drawn(services, look, every)
        except asyncio.CancelledError:
            return

    shared.with_services(where, work, quiet=True)


async def _printed(services: "Services", look: Look, every: float, as_json: bool) -> None:
    while True:
        frame = await look(services)
        if as_json:
            shared.print_line({"at": time.time(), **frame.document})
        else:
            echo_text(f"{_time()}\n{frame.text}\n")
        sys.stdout.flush()
        await asyncio.sleep(every)


async def _drawn(services: "Services", look: Look, every: float) -> None:
    """Draws on the alternate screen, which leaves nothing behind; the bottom is cut if it does not fit."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(highlight=False)
    if console.is_dumb_terminal:
        await _printed(services, look, every, as_json=False)
        return
    with Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:
        live.update(Text("asking the nodes ..."), refresh=True)
        while True:
            frame = await look(services)
            lines = fitted(printable(frame.text), console.width)[: max(console.height - 2, 1)]
            text = "\n".join((f"{_time()}  every {every:g} s, Ctrl-C ends", *lines))
            live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)
            await asyncio.sleep(every)


def fitted(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns: what is longer continues below, indented; nothing is cut on the right."""
    found: list[str] = []
    for line in text.splitlines():
        indent = " " * min(len(line) - len(line.lstrip()) + 2, width // 2)
        found += textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False) or [""]
    return found


def _time() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")
