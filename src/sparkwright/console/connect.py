"""The page for clients: address, models, a request to paste, and the settings that `sparkwright connect` knows."""

import json
import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import segno

from sparkwright.console.board import DeploymentWatch
from sparkwright.console.figures import shortened, with_code
from sparkwright.domain.errors import UsageError
from sparkwright.domain.values import dataclass
from sparkwright.engines.engine import served_name
from sparkwright.gateway.caddy import CONSOLE_PATH
from sparkwright.gateway.clients import Client, ServedModel, clients, served, settings
from sparkwright.report.markup import Html, html_tag, join_html

_PATH = re.compile(r"/[A-Za-z0-9._/+-]{1,200}")
_FILE, _AUTHORITY = "sparkwright.key", "sparkwright-ca.crt"
FOLDER = "/home/me"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Where:
    """One deployment as clients reach it. folder: on the client's machine, with the key and the authority in files."""

    watch: DeploymentWatch
    folder: str = FOLDER

    @property
    def at(self) -> ServedModel | None:
        """None where settings cannot be made: no gateway, or a name that no file can hold."""
        desired = self.watch.desired
        if desired is None or not self.watch.endpoint:
            return None
        secure = self.watch.endpoint.startswith("https:")
        authority = f"{self.folder}/{_AUTHORITY}" if secure else ""
        context = desired.recipe.serving.context or 0
        more = {"key_file": f"{self.folder}/{_FILE}", "authority": authority, "context": context}
        try:
            return served(self.watch.endpoint, served_name(desired.recipe), **more)
        except UsageError:
            return None


def folder_of(given: Mapping[str, str]) -> str:
    """The folder in the form; the default for anything but a plain path."""
    folder = given.get("folder", "").strip().rstrip("/")
    return folder if _PATH.fullmatch(folder) and ".." not in folder else FOLDER


def connect_page(names: Sequence[str], where: Where) -> Html:
    """names: of the deployments that the visitor may see."""
    watch, at = where.watch, where.at
    links = (
        html_tag("a", name, href=f"{CONSOLE_PATH}/connect/{name}", aria_current="page" if name == watch.name else None)
        for name in names
    )
    head = [
        html_tag("h1", f"Connect to {watch.name}"),
        html_tag("nav", *links, aria_label="Deployments", class_="spans") if len(names) > 1 else "",
    ]
    if at is None:
        model = shortened(served_name(watch.desired.recipe), 120) if watch.desired else "unknown"
        why = "It has no gateway, or its model has a name that settings cannot hold"
        return join_html(
            *head, html_tag("p", f"{why}: {watch.endpoint or 'no address'}, model {model}.", class_="empty")
        )
    return join_html(
        *head, _address(at), _curl(at), _files(where, at), *(_client(one, at) for one in clients().values())
    )


def _address(at: ServedModel) -> Html:
    host = urlsplit(at.url).hostname or ""
    away = "Only this machine reaches it: a phone needs `serving.expose` in the recipe, or a tunnel."
    rows = [
        ("address", _copied(at.url)),
        ("model", _copied(at.model)),
        ("context", Html(f"{at.context:,} tokens") if at.context else Html("unknown")),
        (
            "key",
            Html("yours, or one of its own for each client: ") + html_tag("a", "Keys", href=f"{CONSOLE_PATH}/keys"),
        ),
    ]
    cells = (html_tag("div", html_tag("dt", name), html_tag("dd", Html(value))) for name, value in rows)
    console = f"{at.root}{CONSOLE_PATH}/"
    code = (
        html_tag("p", with_code(away), class_="soft")
        if host in _LOOPBACK
        else join_html(_qr(console), html_tag("p", "This console on a phone"))
    )
    return html_tag(
        "div", html_tag("dl", *cells, class_="conditions"), html_tag("div", code, class_="qr"), class_="address"
    )


def _qr(text: str) -> Html:
    """The QR code as SVG, without a picture from elsewhere."""
    made = segno.make(text, error="m", micro=False)
    return Html(made.svg_inline(scale=4, border=4, dark="#000", light="#fff", title=f"QR code of {text}"))


def _copied(text: str) -> Html:
    return html_tag("span", html_tag("code", text), " ", _button(), class_="copied")


def _button() -> Html:
    """Shown by the script, which copies what stands before it."""
    return html_tag("button", "Copy", type="button", class_="copy", hidden=True)


def _block(text: str) -> Html:
    return html_tag("div", html_tag("pre", text.strip("\n"), tabindex="0"), _button(), class_="copied block")


def _curl(at: ServedModel) -> Html:
    """Asks for the key, so that it is in no history."""
    chat = {"model": at.model, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 64}
    trust = f" --cacert {at.authority}" if at.authority else ""
    text = (
        "read -rsp 'Key: ' KEY; echo\n"
        f"curl{trust} {at.url}/chat/completions \\\n"
        "  -H \"Authorization: Bearer $KEY\" -H 'Content-Type: application/json' \\\n"
        f"  -d '{json.dumps(chat)}'"
    )
    return html_tag("section", html_tag("h2", "A first request"), _block(text))


def _files(where: Where, at: ServedModel) -> Html:
    """The settings name two files on the client's machine."""
    field = html_tag("input", id="folder", name="folder", value=where.folder, maxlength="200")
    form = html_tag(
        "form",
        html_tag("div", html_tag("label", "Folder on the client's machine", for_="folder"), field),
        html_tag("button", "Fill in", type="submit"),
        class_="filters",
        method="get",
    )
    trust = [
        ", and the authority of this gateway in ",
        html_tag("code", at.authority),
        " (",
        html_tag("a", "download", href=f"{CONSOLE_PATH}/ca.crt", download=_AUTHORITY),
        ")",
    ]
    text = html_tag(
        "p",
        "The settings below read the key from ",
        html_tag("code", at.key_file),
        *(trust if at.authority else ()),
        ".",
    )
    write = html_tag(
        "p",
        "With sparkwright on that machine: ",
        html_tag("code", f"sparkwright connect CLIENT {where.watch.name} --write"),
    )
    return html_tag("section", html_tag("h2", "Settings of clients"), text, write, form)


def _client(client: Client, at: ServedModel) -> Html:
    made = settings(client, at)
    parts: list[Html] = []
    if made.exports:
        parts += [html_tag("p", "Variables of its process:"), _block(made.exports)]
    if made.text:
        parts += [html_tag("p", "In ", html_tag("code", made.file or client.file), ":"), _block(made.text)]
    if made.snippet:
        parts.append(_block(made.snippet))
    if client.run:
        parts += [html_tag("p", "Start it with:"), _block(client.run)]
    needs = f"it needs about {client.least:,} tokens of context, and this deployment has {at.context:,}"
    said = [*([needs] if 0 < at.context < client.least else []), *made.notes]
    notes = html_tag("ul", *(html_tag("li", note) for note in said)) if said else ""
    more = html_tag("p", html_tag("a", "its own documentation", href=client.see, rel="noreferrer"))
    return html_tag("details", html_tag("summary", client.title), *parts, notes, more, class_="client")
