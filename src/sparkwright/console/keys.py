"""The page of keys: listed, added, revoked after a second question."""

import time
from collections.abc import Sequence

from sparkwright.app import keys as key_work
from sparkwright.console.board import Watch
from sparkwright.console.figures import ago, short
from sparkwright.console.head import Shown, services
from sparkwright.console.pages import form
from sparkwright.console.sessions import Visitor
from sparkwright.gateway.caddy import CONSOLE_PATH
from sparkwright.gateway.keys import Key, Role
from sparkwright.report.markup import Html, join, tag

_ROLES = {
    Role.CLIENT: "client: uses the API",
    Role.VIEWER: "viewer: sees this console",
    Role.OPERATOR: "operator: uses the API, and operates here",
}


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
    heads = ("name", "role", "opens", "limits", "added", "")
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
        tag("div", table, class_="scroll keys", tabindex="0", role="region", aria_label="Keys"),
        tag("section", tag("h2", "Add a key"), form("keys/add", visitor, *fields, class_="fields")),
    )


def _key_row(key: Key, visitor: Visitor) -> Html:
    own = key.sha256 == visitor.key.sha256
    about = tag("input", type="hidden", name="name", value=key.name)
    where = tag("input", type="hidden", name="deployment", value=key.deployment)
    press = tag("button", "Revoke …", type="submit", class_="plain", aria_label=f"Revoke {key.name}")
    revoke = tag("span", "yours", class_="soft") if own else form("keys/revoke", visitor, about, where, press)
    when = f"{ago(key.created, time.time())} " if key.created else ""
    added = f"{when}by {short(key.by, 80)}" if key.by else when or "unknown"
    limits = tag("td", key.limits or "none", class_="wraps")
    cells = (*(tag("td", cell) for cell in (key.role, key.opens)), limits, tag("td", added), tag("td", revoke))
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
