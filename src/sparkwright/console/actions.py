"""Operators' actions on a deployment: restart, stop, start, switch. Each shows its plan first."""

import asyncio
import sys
import time
import traceback
from collections.abc import Iterator, Sequence

from sparkwright.app.serve.prepare import prepare
from sparkwright.app.services import LaunchRequest
from sparkwright.console.board import DeploymentWatch, ReportBoard
from sparkwright.console.figures import with_code
from sparkwright.console.head import services
from sparkwright.console.pages import session_form
from sparkwright.console.sessions import Visitor
from sparkwright.domain.errors import SparkwrightError
from sparkwright.domain.live import OVER, SERVING
from sparkwright.domain.plan import Plan, stopping
from sparkwright.domain.units import DRAIN_SECONDS, duration, gib
from sparkwright.domain.values import dataclass
from sparkwright.gateway.caddy import CONSOLE_PATH
from sparkwright.report.markup import Html, html_tag, join_html

Row = tuple[str, str]
VERBS = ("restart", "stop", "start", "switch")
_DOES = {
    "restart": "stopped and started again",
    "stop": "stopped; supervisor, gateway and this console stay",
    "start": "started from its weights on the nodes, as its last `up` left it",
}
_PATIENCE = 15.0  # seconds for the nodes to answer before a start is shown


class Operations:
    """One at a time; what came of the last one of each deployment is shown on the first page."""

    def __init__(self, board: ReportBoard) -> None:
        self._board = board
        self._running: set[asyncio.Task[None]] = set()

    def begin(self, operation: "Operation", visitor: Visitor) -> bool:
        """False while another one runs. It goes on when the page is closed."""
        if self._running:
            return False
        task = asyncio.create_task(self._do(operation, visitor.key.name))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return True

    async def _do(self, operation: "Operation", who: str) -> None:
        name, title = operation.watch.name, f"{operation.title}, asked for by {who}"
        self._board.notes[name] = f"{title}: under way."
        began, said = time.monotonic(), "the console ended meanwhile; its state is shown below"
        try:
            if operation.other:
                self._board.notes.pop(operation.other.name, None)
                from sparkwright.app.serve.switch import switch_to_resting

                async with services(operation.watch, who) as here, services(operation.other, who) as there:
                    await switch_to_resting(here, there, operation.watch.name, operation.other.name)
            else:
                await (_halt if operation.verb == "stop" else _restart)(operation.watch, who)
            said = f"done in {duration(time.monotonic() - began)}"
        except SparkwrightError as error:
            said = f"{error.message}{f'; hint: {error.hint}' if error.hint else ''}"
        except Exception as error:
            traceback.print_exception(error, file=sys.stderr)
            said = f"failed: {error!r} (a bug in sparkwright; the console's log has more)"
        finally:
            self._board.notes[name] = f"{title} at {time.strftime('%H:%M:%S UTC', time.gmtime())}: {said}."


# What starts ranks is most of this program's memory and start: it is loaded when somebody asks for it.
async def _restart(watch: DeploymentWatch, who: str) -> None:
    from sparkwright.app.serve.restart import restart

    async with services(watch, who) as made:
        await restart(made, watch.name)


async def _halt(watch: DeploymentWatch, who: str) -> None:
    from sparkwright.app.serve.restart import halt_deployment

    async with services(watch, who) as made:
        await halt_deployment(made, watch.name)


def choices(watch: DeploymentWatch, watches: Sequence[DeploymentWatch]) -> list[DeploymentWatch]:
    """The deployments that a switch can start: stopped ones with their weights on the nodes."""
    return [one for one in watches if one is not watch and one.live and one.live.phase in OVER]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator's request. watches: all that the key opens. other: the deployment that a switch starts, once
    chosen."""

    verb: str
    watch: DeploymentWatch
    watches: Sequence[DeploymentWatch]
    other: DeploymentWatch | None = None

    @property
    def chosen(self) -> bool:
        return self.verb != "switch" or self.other is not None

    @property
    def title(self) -> str:
        return f"{self.verb.capitalize()} {self.watch.name}{f' to {self.other.name}' if self.other else ''}"


async def outlook_of(operation: Operation, visitor: Visitor) -> tuple[Row, ...]:
    """The outlook of an operation that takes memory which is not its own already."""
    if operation.other:
        return await outlook(operation.other, visitor.key.name, operation.watch.name)
    return await outlook(operation.watch, visitor.key.name) if operation.verb == "start" else ()


def plan(operation: Operation, visitor: Visitor, takes: Sequence[Row] = (), busy: bool = False) -> Html:
    """The page with the effects of an operation, also on clients. takes: memory on the nodes."""
    title, other = html_tag("h1", f"{operation.title}?"), operation.other
    back = html_tag("a", "Cancel", href=f"{CONSOLE_PATH}/", class_="button")
    if not operation.chosen:
        return join_html(title, _choice(operation), html_tag("p", back))
    rows = [*(_switch_rows(operation.watch, other) if other else _rows(operation)), *takes]
    to = html_tag("input", type="hidden", name="to", value=other.name) if other else ""
    safe = "primary" if operation.verb == "start" else "danger"
    send = html_tag("button", operation.title, type="submit", class_=safe)
    return join_html(
        title,
        html_tag("p", "Another operation is under way; wait for its end.", class_="alert", role="alert")
        if busy
        else "",
        html_tag(
            "dl",
            *(html_tag("div", html_tag("dt", name), html_tag("dd", with_code(value))) for name, value in rows),
            class_="conditions",
        ),
        session_form(f"{operation.verb}/{operation.watch.name}", visitor, to, send, " ", back),
    )


def _choice(operation: Operation) -> Html:
    name = operation.watch.name
    terminal = html_tag(
        "p", "To a recipe that was not started here yet: ", html_tag("code", f"sparkwright switch {name} RECIPE")
    )
    links = [
        html_tag("li", html_tag("a", one.name, href=f"{CONSOLE_PATH}/switch/{name}?to={one.name}", class_="button"))
        for one in choices(operation.watch, operation.watches)
    ]
    if not links:
        return join_html(html_tag("p", "Nothing to switch to: no other deployment of this head is stopped."), terminal)
    return join_html(
        html_tag("p", f"What serves in place of {name}:"), html_tag("ul", *links, class_="operate"), terminal
    )


def _rows(operation: Operation) -> Iterator[tuple[str, str]]:
    verb, watch = operation.verb, operation.watch
    yield "the ranks", f"{_ranks(watch)}: {_DOES[verb]}"
    if verb == "start":
        yield from _room(operation)
    else:
        yield "requests under way now", _under_way(watch)
    if verb == "stop":
        yield "clients meanwhile", "get 503 with the reason and Retry-After, until it is started again"
        yield "memory", "what the ranks hold on their nodes becomes free"
        yield "to remove it for good, in a terminal", f"sparkwright down {watch.name}"
        return
    yield "clients meanwhile", "get 503 with the reason and Retry-After"
    yield "how long", _usual(watch)
    yield "the same in a terminal", f"sparkwright restart {watch.name}"


def _switch_rows(watch: DeploymentWatch, other: DeploymentWatch) -> Iterator[tuple[str, str]]:
    yield "stopped first", f"{watch.name}: {_ranks(watch)}"
    yield "requests under way now", _under_way(watch)
    yield "then started", f"{other.name}: {_ranks(other)}, from its weights on the nodes"
    yield "how long", _usual(other)
    yield "clients meanwhile", f"get 503 with the reason; those of {watch.name} until it is started again"
    yield "if it does not serve", f"{other.name} is stopped and {watch.name} started again"
    yield "to a recipe that was not started here yet, in a terminal", f"sparkwright switch {watch.name} RECIPE"


def _room(operation: Operation) -> Iterator[tuple[str, str]]:
    """Other deployments on its nodes."""
    live = operation.watch.live
    if live is None:
        return
    mine = {rank.node for rank in live.ranks} or {node.node for node in live.nodes}
    lives = [
        one.live for one in operation.watches if one is not operation.watch and one.live and one.live.phase in SERVING
    ]
    if serve := [one.deployment for one in lives if mine & {rank.node for rank in one.ranks}]:
        yield "serves on these nodes now", f"{', '.join(serve)}: both must fit; a switch stops one first"


def _ranks(watch: DeploymentWatch) -> str:
    ranks = watch.live.ranks if watch.live else ()
    return ", ".join(f"rank {rank.rank} on {rank.node}" for rank in ranks) or "no rank is known"


def _under_way(watch: DeploymentWatch) -> str:
    """The requests under way and their fate."""
    engine = watch.live.engine if watch.live and watch.live.phase in SERVING else None
    count = "unknown" if engine is None or engine.running is None else f"{engine.running:.0f}"
    return f"{count}; those that do not end within {duration(DRAIN_SECONDS)} are cut off"


def _usual(watch: DeploymentWatch) -> str:
    return (
        f"about {duration(watch.live.usual)}, as the last start took" if watch.live and watch.live.usual else "unknown"
    )


async def outlook(watch: DeploymentWatch, who: str, replaces: str = "") -> tuple[Row, ...]:
    """The memory that a start would take on the nodes now: its supervisor makes the same plan before it.

    replaces: another deployment, whose memory is free by then. Changes nothing.
    """
    desired = watch.desired
    if desired is None:
        return ()
    request = LaunchRequest(desired.recipe, watch.name, desired.force, supervised=True, replaces=replaces)
    try:
        async with asyncio.timeout(_PATIENCE), services(watch, who) as made:
            plan = (await prepare(made, request)).plan
    except TimeoutError:
        return (("memory", f"unknown: the nodes did not answer within {duration(_PATIENCE)}"),)
    except SparkwrightError as error:
        return (("memory", f"unknown: {error.message}"),)
    return tuple(outlook_rows(plan, desired.force))


def outlook_rows(plan: Plan, force: str) -> Iterator[Row]:
    for ledger in plan.ledgers:
        if ledger.pool.bytes:
            left = f"{gib(ledger.left)} are left" if ledger.left >= 0 else f"{gib(-ledger.left)} are missing"
            takes = f"takes {gib(ledger.free - ledger.left)} of {gib(ledger.free)} that it can have"
            yield f"memory on {ledger.node}", f"{takes}: {left}"
    if stops := stopping(plan, force):
        yield "would be refused now", "; ".join(f"{one.code} {one.subject}: {one.title}" for one in stops)
