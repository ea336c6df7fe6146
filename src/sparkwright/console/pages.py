"""The common parts of all pages: the frame, the sign-in form, and the files next to them."""

from hashlib import sha256
from importlib.resources import files

from sparkwright.console.figures import without_controls
from sparkwright.console.sessions import Visitor
from sparkwright.gateway.caddy import CONSOLE_PATH
from sparkwright.report.markup import Html, html_tag, join_html

_ASSETS = files("sparkwright.console") / "assets"
STYLE, SCRIPT = (_ASSETS.joinpath(name).read_bytes() for name in ("console.css", "console.js"))
_MARK = sha256(STYLE + SCRIPT).hexdigest()[:10]
ASSETS = {
    "console.css": (STYLE, "text/css; charset=utf-8"),
    "console.js": (SCRIPT, "text/javascript; charset=utf-8"),
}
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
_LINKS = (
    ("", "Overview"),
    ("requests", "Requests"),
    ("chat", "Chat"),
    ("connect", "Connect"),
    ("logs", "Logs"),
    ("incidents", "Incidents"),
    ("runs", "Runs"),
    ("usage", "Usage"),
    ("keys", "Keys"),
)
_REFRESH = "5"


def whole_page(title: str, visitor: Visitor | None, body: Html, live: str = "", at: str = "") -> Html:
    """live: where the events of this page come from, '' for a page that stays as it is. at: which link is current."""
    head = [
        html_tag("meta", charset="utf-8"),
        html_tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        html_tag("meta", name="color-scheme", content="light dark"),
        html_tag("title", f"{title} · sparkwright"),
        html_tag("link", rel="stylesheet", href=f"{CONSOLE_PATH}/assets/console.css?{_MARK}"),
        html_tag("link", rel="icon", href="data:,"),
        html_tag("script", src=f"{CONSOLE_PATH}/assets/console.js?{_MARK}", defer=True),
    ]
    if live:
        head.append(html_tag("noscript", html_tag("meta", http_equiv="refresh", content=_REFRESH)))
    lost = html_tag("p", "", id="lost", role="status", hidden=True)
    main = html_tag("main", lost, body, id="main", data_live=live or None, tabindex="-1")
    skip = html_tag("a", "Skip to content", href="#main", class_="skip")
    document = html_tag("html", html_tag("head", *head), html_tag("body", skip, _top(visitor, at), main), lang="en")
    return without_controls(join_html(Html("<!doctype html>"), document))


def _top(visitor: Visitor | None, at: str) -> Html:
    brand = html_tag("a", "sparkwright", href=f"{CONSOLE_PATH}/", class_="brand")
    if visitor is None:
        return html_tag("header", brand)
    shown = [(to, name) for to, name in _LINKS if to not in ("keys", "chat") or visitor.operates]
    links = (
        html_tag("a", name, href=f"{CONSOLE_PATH}/{to}", aria_current="page" if to == at else None)
        for to, name in shown
    )
    leave = session_form("logout", visitor, html_tag("button", "Sign out", type="submit", class_="plain"))
    who = html_tag("span", f"{visitor.key.name} · {visitor.key.role}", class_="who")
    return html_tag("header", brand, html_tag("nav", *links, aria_label="Pages"), who, leave)


def session_form(action: str, visitor: Visitor, *inside: str, **attributes: str) -> Html:
    """A form that only this session can send."""
    hidden = html_tag("input", type="hidden", name="token", value=visitor.token)
    return html_tag("form", hidden, *inside, method="post", action=f"{CONSOLE_PATH}/{action}", **attributes)


def login_page(why: str = "", gone: bool = False) -> Html:
    said = why or ("Your session has ended: its key was revoked, or a week has passed." if gone else "")
    field = [
        html_tag("input", name="username", autocomplete="username", value="sparkwright", hidden=True),
        html_tag("label", "Key", for_="key"),
        html_tag("input", id="key", name="key", type="password", autocomplete="current-password", required=True),
        html_tag("button", "Sign in", type="submit", class_="primary"),
    ]
    hint = html_tag(
        "p",
        "An operator's or a viewer's key. The key ",
        html_tag("code", "default"),
        " of the first ",
        html_tag("code", "up"),
        " is an operator's: it is in the file that ",
        html_tag("code", "up"),
        " names. Another one: ",
        html_tag("code", "sparkwright keys add NAME --role viewer"),
    )
    body = [
        html_tag("h1", "Sign in"),
        html_tag("p", said, role="alert", class_="alert") if said else "",
        html_tag("form", *field, method="post", action=f"{CONSOLE_PATH}/login"),
        hint,
    ]
    return whole_page("Sign in", None, html_tag("div", *body, class_="login"))


def message(title: str, visitor: Visitor | None, text: str) -> Html:
    return whole_page(title, visitor, join_html(html_tag("h1", title), html_tag("p", text)))


def region(body: Html) -> Html:
    """The part of a page that its events replace."""
    return html_tag("div", body, id="live")
