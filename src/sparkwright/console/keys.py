"""The page of keys: listed, added, revoked after a second question."""

import time
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlencode

from sparkwright.app.setup import keys as key_work
from sparkwright.console.board import DeploymentWatch
from sparkwright.console.figures import shortened, time_ago
from sparkwright.console.head import ShownKeys, services
from sparkwright.console.pages import session_form
from sparkwright.console.sessions import Visitor
from sparkwright.domain.errors import UsageError
from sparkwright.domain.values import dataclass
from sparkwright.gateway.caddy import CONSOLE_PATH
from sparkwright.gateway.keys import Key, Role
from sparkwright.report.markup import Html, html_tag, join_html

_DIGITS = 12
_LIMITS = {"per_minute": "Requests a minute", "at_once": "Requests at once", "tokens_a_day": "Tokens a day (UTC)"}
_ROLES = {
    Role.CLIENT: "client: uses the API",
    Role.VIEWER: "viewer: sees this console",
    Role.OPERATOR: "operator: uses the API, and operates here",
}


@dataclass(frozen=True, slots=True)
class WantedKey:
    """The form for a new key."""

    name: str
    role: Role
    deployment: str
    limits: Mapping[str, int]


def wanted(given: Mapping[str, str], visitor: Visitor, deployments: Sequence[str]) -> WantedKey:
    """Raises UsageError. A key for one deployment makes keys for that one only."""
    try:
        role = Role(given.get("role", str(Role.CLIENT)))
    except ValueError:
        raise UsageError("There is no such role.") from None
    deployment = visitor.key.deployment or given.get("deployment", "")
    if deployment and deployment not in deployments:
        raise UsageError(f"No deployment {shortened(deployment, 80)} is supervised here.")
    return WantedKey(given.get("name", ""), role, deployment, limits_of(given))


def limits_of(given: Mapping[str, str]) -> dict[str, int]:
    """Empty: no limit. Raises UsageError for what is no number."""
    found = {name: given.get(name, "").strip().replace(",", "") or "0" for name in _LIMITS}
    for name, text in found.items():
        if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
            raise UsageError(f"{_LIMITS[name]}: expected a number of at most {_DIGITS} digits")
    return {name: int(text) for name, text in found.items()}


async def add_key(watch: DeploymentWatch, visitor: Visitor, new: WantedKey) -> str:
    """The key itself. Raises SparkwrightError."""
    shown = ShownKeys()
    async with services(watch, visitor.key.name, shown) as made:
        await key_work.create_key(made, new.name, new.deployment, new.role, **new.limits)
    return shown.kept[0]


async def limit_key(watch: DeploymentWatch, visitor: Visitor, name: str, limits: Mapping[str, int]) -> None:
    """Raises SparkwrightError."""
    async with services(watch, visitor.key.name) as made:
        await key_work.limit_key(made, name, **limits)


async def revoke_key(watch: DeploymentWatch, visitor: Visitor, name: str, deployment: str) -> None:
    async with services(watch, visitor.key.name) as made:
        await key_work.revoke(made, name, deployment)


def keys_page(
    keys: Sequence[Key], visitor: Visitor, deployments: Sequence[str], said: str = "", fresh: str = ""
) -> Html:
    """deployments: that a new key may be for."""
    rows = (_key_row(key, visitor) for key in keys)
    heads = ("name", "role", "opens", "limits", "added", "")
    table = html_tag(
        "table",
        html_tag(
            "thead", html_tag("tr", *(html_tag("th", head, scope="col") if head else html_tag("td") for head in heads))
        ),
        html_tag("tbody", *rows),
    )
    options = (html_tag("option", text, value=str(role)) for role, text in _ROLES.items())
    fields = [
        html_tag(
            "div",
            html_tag("label", "Name", for_="name"),
            html_tag("input", id="name", name="name", required=True, maxlength="63"),
        ),
        html_tag("div", html_tag("label", "Role", for_="role"), html_tag("select", *options, id="role", name="role")),
        html_tag("div", html_tag("label", "Opens", for_="deployment"), _opens(visitor, deployments)),
        *_limit_fields(Key("", "")),
        html_tag("button", "Add key", type="submit", class_="primary"),
    ]
    new = html_tag(
        "p", "The new key, shown this once: ", html_tag("code", fresh, class_="fresh"), class_="fresh", role="status"
    )
    return join_html(
        html_tag("h1", "Keys"),
        html_tag("p", said, class_="alert", role="alert") if said else "",
        new if fresh else "",
        html_tag("div", table, class_="scroll keys", tabindex="0", role="region", aria_label="Keys"),
        html_tag("section", html_tag("h2", "Add a key"), session_form("keys/add", visitor, *fields, class_="fields")),
    )


def _opens(visitor: Visitor, deployments: Sequence[str]) -> Html:
    every = {} if visitor.key.deployment else {"": "all deployments"}
    choices = every | {name: f"only {name}" for name in deployments}
    options = (html_tag("option", text, value=name) for name, text in choices.items())
    return html_tag("select", *options, id="deployment", name="deployment")


def _limit_fields(key: Key) -> Iterator[Html]:
    for name, label in _LIMITS.items():
        value = getattr(key, name)
        field = html_tag(
            "input",
            id=name,
            name=name,
            inputmode="numeric",
            maxlength=f"{_DIGITS}",
            placeholder="no limit",
            value=f"{value}" if value else None,
        )
        yield html_tag("div", html_tag("label", label, for_=name), field)


def limits_form(key: Key, visitor: Visitor) -> Html:
    """The form that changes the limits of a key."""
    about = html_tag("input", type="hidden", name="name", value=key.name)
    send = html_tag("button", "Set limits", type="submit", class_="primary")
    back = html_tag("a", "Cancel", href=f"{CONSOLE_PATH}/keys", class_="button")
    text = "An empty field is no limit. Requests under way are completed; who asks for more gets 429 with the wait."
    inside = session_form("keys/limit", visitor, about, *_limit_fields(key), send, back, class_="fields")
    return join_html(html_tag("h1", f"Limits of {shortened(key.name, 80)}"), html_tag("p", text), inside)


def _key_row(key: Key, visitor: Visitor) -> Html:
    own = key.sha256 == visitor.key.sha256
    about = html_tag("input", type="hidden", name="name", value=key.name)
    where = html_tag("input", type="hidden", name="deployment", value=key.deployment)
    press = html_tag("button", "Revoke …", type="submit", class_="plain", aria_label=f"Revoke {key.name}")
    revoke = (
        html_tag("span", "yours", class_="soft") if own else session_form("keys/revoke", visitor, about, where, press)
    )
    when = f"{time_ago(key.created, time.time())} " if key.created else ""
    added = f"{when}by {shortened(key.by, 80)}" if key.by else when or "unknown"
    change = html_tag(
        "a",
        "change",
        href=f"{CONSOLE_PATH}/keys/limit?{urlencode({'name': key.name})}",
        aria_label=f"change limits of {key.name}",
    )
    limits = html_tag("td", key.limits or "none", " ", change, class_="wraps")
    cells = (
        *(html_tag("td", cell) for cell in (key.role, key.opens)),
        limits,
        html_tag("td", added),
        html_tag("td", revoke),
    )
    return html_tag("tr", html_tag("th", shortened(key.name, 80), scope="row"), *cells)


def revoke_plan(name: str, deployment: str, visitor: Visitor) -> Html:
    hidden = [
        html_tag("input", type="hidden", name=field, value=value)
        for field, value in (("name", name), ("deployment", deployment), ("sure", "yes"))
    ]
    send = html_tag("button", f"Revoke {shortened(name, 80)}", type="submit", class_="danger")
    back = html_tag("a", "Cancel", href=f"{CONSOLE_PATH}/keys", class_="button")
    text = "New requests with it get 401 at once, and its pages of this console end. Answers under way are completed."
    return join_html(
        html_tag("h1", f"Revoke {shortened(name, 80)}?"),
        html_tag("p", text),
        session_form("keys/revoke", visitor, *hidden, send, " ", back),
    )
