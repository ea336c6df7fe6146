"""What operators may do: restart a deployment, add and revoke keys. Each shows its plan first."""

import asyncio
import time
from collections.abc import Sequence

from sparkwright.app import keys as key_work
from sparkwright.app.restart import restart
from sparkwright.console.board import Board, Watch
from sparkwright.console.figures import clock, short
from sparkwright.console.head import Shown, services
from sparkwright.console.pages import form
from sparkwright.console.sessions import Visitor
from sparkwright.domain.errors import SparkwrightError
from sparkwright.domain.units import duration
from sparkwright.gateway.caddy import CONSOLE_PATH
from sparkwright.gateway.keys import Key, Role
from sparkwright.report.markup import Html, join, tag

_ROLES = {
    Role.CLIENT: "client: uses the API",
    Role.VIEWER: "viewer: sees this console",
    Role.OPERATOR: "operator: uses the API, and operates here",
}


class Operations:
    """One at a time; what came of the last one of each deployment is shown on the first page."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._running: set[asyncio.Task[None]] = set()

    def restart(self, watch: Watch, visitor: Visitor) -> bool:
        """False while another one runs. It goes on when the page is closed."""
        if self._running:
            return False
        task = asyncio.create_task(self._restart(watch, visitor.key.name))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return True

    async def _restart(self, watch: Watch, who: str) -> None:
        self._board.notes[watch.name] = f"Restart, asked for by {who}: under way."
        try:
            async with services(watch, who) as made:
                took = await restart(made, watch.name)
            said = f"done in {duration(took)}"
        except SparkwrightError as error:
            said = f"{error.message}{f'; hint: {error.hint}' if error.hint else ''}"
        self._board.notes[watch.name] = f"Restart, asked for by {who} at {time.strftime('%H:%M:%S')}: {said}."


def restart_plan(watch: Watch, visitor: Visitor, busy: bool = False) -> Html:
    """What it would do, and what clients see meanwhile."""
    live = watch.live
    usual = f"about {duration(live.usual)}, as the last start took" if live and live.usual else "unknown"
    ranks = ", ".join(f"rank {rank.rank} on {rank.node}" for rank in live.ranks) if live else "unknown"
    running = live.engine.running if live and live.engine else None
    cut = "unknown" if running is None else f"{running:.0f}"
    rows = [
        ("stopped and started again", ranks or "no rank is known"),
        ("requests that are cut off now", cut),
        ("clients meanwhile", "get 503 with the reason and Retry-After"),
        ("how long", usual),
        ("the same in a terminal", f"sparkwright restart {watch.name}"),
    ]
    send = tag("button", f"Restart {watch.name}", type="submit", class_="danger")
    back = tag("a", "Cancel", href=f"{CONSOLE_PATH}/", class_="button")
    return join(
        tag("h1", f"Restart {watch.name}?"),
        tag("p", "Another operation is under way; wait for its end.", class_="alert", role="alert") if busy else "",
        tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in rows), class_="conditions"),
        form(f"restart/{watch.name}", visitor, send, " ", back),
    )


def operating(watches: Sequence[Watch]) -> Html:
    """Below the live part of the first page."""
    rows = (
        tag(
            "li",
            tag("b", one.name),
            " ",
            tag("a", "Restart …", href=f"{CONSOLE_PATH}/restart/{one.name}", class_="button"),
            tag("span", " To stop it, in a terminal: ", tag("code", f"sparkwright down {one.name}"), class_="soft"),
        )
        for one in watches
    )
    return tag("section", tag("h2", "Operate"), tag("ul", *rows, class_="operate"), aria_label="Operate")


async def add_key(watch: Watch, visitor: Visitor, name: str, role: Role) -> str:
    """The key itself. Raises SparkwrightError. A key for one deployment makes keys for that one only."""
    shown = Shown()
    async with services(watch, visitor.key.name, shown) as made:
        await key_work.add(made, name, visitor.key.deployment, role)
    return shown.kept[0]


async def revoke_key(watch: Watch, visitor: Visitor, name: str, deployment: str) -> None:
    async with services(watch, visitor.key.name) as made:
        await key_work.revoke(made, name, deployment)


def keys_page(keys: Sequence[Key], visitor: Visitor, said: str = "", fresh: str = "") -> Html:
    rows = (_key_row(key, visitor) for key in keys)
    heads = ("name", "role", "opens", "added by", "added", "")
    table = tag(
        "table",
        tag("thead", tag("tr", *(tag("th", head, scope="col") if head else tag("td") for head in heads))),
        tag("tbody", *rows),
    )
    options = (tag("option", text, value=str(role)) for role, text in _ROLES.items())
    fields = [
        tag(
            "div",
            tag("label", "Name", for_="name"),
            tag("input", id="name", name="name", required=True, maxlength="63"),
        ),
        tag("div", tag("label", "Role", for_="role"), tag("select", *options, id="role", name="role")),
        tag("button", "Add key", type="submit", class_="primary"),
    ]
    new = tag("p", "The new key, shown this once: ", tag("code", fresh, class_="fresh"), class_="fresh", role="status")
    return join(
        tag("h1", "Keys"),
        tag("p", said, class_="alert", role="alert") if said else "",
        new if fresh else "",
        tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="Keys"),
        tag("section", tag("h2", "Add a key"), form("keys/add", visitor, *fields, class_="fields")),
    )


def _key_row(key: Key, visitor: Visitor) -> Html:
    own = key.sha256 == visitor.key.sha256
    about = tag("input", type="hidden", name="name", value=key.name)
    where = tag("input", type="hidden", name="deployment", value=key.deployment)
    press = tag("button", "Revoke …", type="submit", class_="plain", aria_label=f"Revoke {key.name}")
    revoke = tag("span", "yours", class_="soft") if own else form("keys/revoke", visitor, about, where, press)
    added = clock(key.created) if key.created else "unknown"
    cells = (tag("td", cell) for cell in (key.role, key.opens, short(key.by, 80) or "unknown", added, revoke))
    return tag("tr", tag("th", short(key.name, 80), scope="row"), *cells)


def revoke_plan(name: str, deployment: str, visitor: Visitor) -> Html:
    hidden = [
        tag("input", type="hidden", name=field, value=value)
        for field, value in (("name", name), ("deployment", deployment), ("sure", "yes"))
    ]
    send = tag("button", f"Revoke {short(name, 80)}", type="submit", class_="danger")
    back = tag("a", "Cancel", href=f"{CONSOLE_PATH}/keys", class_="button")
    text = "New requests with it get 401 at once, and its pages of this console end. Answers under way are completed."
    return join(
        tag("h1", f"Revoke {short(name, 80)}?"), tag("p", text), form("keys/revoke", visitor, *hidden, send, " ", back)
    )
