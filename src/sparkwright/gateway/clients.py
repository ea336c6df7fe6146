"""Settings of clients, from what is known of each (clients.toml) and of the endpoint that serves."""

import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from sparkwright.domain.errors import UsageError
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.values import dataclass, field

PROTOCOLS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
FORMATS = ("", "json", "toml", "yaml")
_MOST_OUTPUT = 32768
_HOLE = re.compile(r"<<(\w+)(\|text)?>>")
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}")
_URL = re.compile(r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?(?:/[A-Za-z0-9._~/-]*)?")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_UNKNOWN = object()
_EDITORS = dict.fromkeys(("vscode", "vs-code", "code", "vscodium"), ("cline", "continue"))


@dataclass(frozen=True, slots=True)
class Client:
    """A row of clients.toml, whose head explains the fields."""

    name: str
    title: str
    protocol: str
    see: str
    needs: Sequence[str] = ()
    least: int = 0
    run: str = ""
    file: str = ""
    format: str = ""
    content: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    snippet: str = ""
    notes: Sequence[str] = ()

    @property
    def path(self) -> str:
        return PROTOCOLS[self.protocol]


@dataclass(frozen=True, slots=True)
class ServedModel:
    """The offer of an endpoint. url: with /v1. key_file, authority: paths here, '' for none. context: tokens, 0 if it
    does not report them."""

    url: str
    model: str
    key_file: str = ""
    authority: str = ""
    context: int = 0

    @property
    def root(self) -> str:
        return self.url.removesuffix("/v1")

    @property
    def output(self) -> int:
        """A quarter of the context, at most 32,768: no server reports a limit; 0 where the context is not known."""
        return min(self.context // 4, _MOST_OUTPUT)


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """env: names and shell text. file: where it belongs, with ~; text: its content; tree: the same as a value."""

    env: tuple[tuple[str, str], ...]
    file: str = ""
    text: str = ""
    snippet: str = ""
    tree: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def exports(self) -> str:
        return "".join(f"export {name}={value}\n" for name, value in self.env)


@cache
def clients() -> Mapping[str, Client]:
    """The clients by name. Raises TypeError for a key that a row must not have."""
    text = (files("sparkwright.gateway") / "clients.toml").read_text(encoding="utf-8")
    return {name: Client(name=name, **row) for name, row in tomllib.loads(text).items()}


def client(name: str) -> Client:
    """Raises UsageError with those that there are."""
    if found := clients().get(name):
        return found
    if editors := _EDITORS.get(name.lower()):
        ways = " or ".join(f"`sparkwright connect {one}`" for one in editors)
        raise UsageError(f"{name} reaches an endpoint through an extension", ways)
    near = get_close_matches(name, clients(), n=1, cutoff=0.5)
    known = f"known: {', '.join(clients())}; for another one, openai-python shows what every client needs"
    raise UsageError(f"no settings for a client {name!r}", f"did you mean {near[0]}? {known}" if near else known)


def served(url: str, model: str, **more: Any) -> ServedModel:
    """The endpoint as reported by a node and by itself. Raises UsageError for values unfit for files and commands."""
    if not _URL.fullmatch(url):
        raise UsageError(f"{url[:200]!r} is no address of an endpoint", "expected https://HOST:PORT/v1")
    if not _MODEL.fullmatch(model):
        raise UsageError(f"{model[:200]!r} is no name that settings can hold", "give it a serving.name in its recipe")
    bare = url.rstrip("/")
    return ServedModel(bare if bare.endswith("/v1") else f"{bare}/v1", model, **more)


def settings(client: Client, at: ServedModel) -> ClientSettings:
    """The client's settings; unknown values of the endpoint are left out."""
    values: dict[str, Any] = {
        "url": at.url,
        "root": at.root,
        "model": at.model,
        "ca": at.authority,
        "key_file": at.key_file,
        "key_command": f"cat {shlex.quote(at.key_file)}" if at.key_file else "",
        "context": at.context,
        "output": at.output,
    }
    tree = _filled(client.content, values)
    filled = {name: _filled(value, values) for name, value in client.env.items()}
    env = tuple((name, _shell(client.env[name], text)) for name, text in filled.items() if text is not _UNKNOWN)
    return ClientSettings(
        env,
        client.file,
        _written(client.format, tree),
        "".join(f"{line}\n" for line in _lines(client.snippet, values)),
        tree,
        tuple(line for note in client.notes for line in _lines(note, values)),
    )


def _lines(text: str, values: Mapping[str, Any]) -> Iterator[str]:
    filled = (_filled(line, values) for line in text.strip("\n").split("\n") if text)
    yield from (str(line) for line in filled if line is not _UNKNOWN)


def _shell(template: str, text: Any) -> str:
    return f'"$({text})"' if template == "<<key_command>>" else shlex.quote(str(text))


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    """_UNKNOWN for text with a hole whose value is not known: a table does without it, a list is then unknown as a

    whole, and so is the table around it.
    """
    if isinstance(value, str):
        return _text(value, values)
    if isinstance(value, Mapping):
        pairs = ((_filled(name, values), _filled(one, values)) for name, one in value.items())
        found = {name: one for name, one in pairs if one is not _UNKNOWN}
        lists = (name for name, one in value.items() if isinstance(one, list))
        return _UNKNOWN if (value and not found) or any(name not in found for name in lists) else found
    if isinstance(value, list):
        every = [_filled(one, values) for one in value]
        return _UNKNOWN if _UNKNOWN in every else every
    return value


def _text(text: str, values: Mapping[str, Any]) -> Any:
    holes = _HOLE.findall(text)
    if any(not values[name] for name, _ in holes):
        return _UNKNOWN
    if len(holes) == 1 and text == f"<<{holes[0][0]}>>":
        return values[holes[0][0]]
    return _HOLE.sub(lambda hole: str(values[hole[1]]), text)


def _written(form: str, tree: Mapping[str, Any]) -> str:
    if form == "json":
        return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"
    if form == "yaml":
        return str(yaml.safe_dump(dict(tree), sort_keys=False, allow_unicode=True))
    return "".join(f"{line}\n" for line in _toml(tree)) if form else ""


def _toml(tree: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[str]:
    """Plain values first; strings as JSON has them, which TOML reads the same way."""
    if path and any(not isinstance(value, Mapping) for value in tree.values()):
        yield f"\n[{'.'.join(map(_key, path))}]"
    for name, value in tree.items():
        if not isinstance(value, Mapping):
            yield f"{_key(name)} = {json.dumps(value, ensure_ascii=False)}"
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _toml(value, (*path, name))


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name)


def merged(client: Client, before: str, new: ClientSettings) -> str:
    """The file with our settings in it. Raises UsageError where that would lose what somebody wrote."""
    if not before.strip() or before == new.text:
        return new.text
    hint = f"`sparkwright connect {client.name}` prints what to add by hand"
    if client.format != "json":
        raise UsageError(f"{client.file} is there already, and {client.format} with comments is not changed", hint)
    try:
        tree = read_json(before)
    except ValueError as error:
        raise UsageError(f"{client.file} is no plain JSON: {error}", hint) from None
    if not isinstance(tree, dict):
        raise UsageError(f"{client.file} holds no JSON object", hint)
    return _written("json", _joined(tree, new.tree))


def _joined(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    both = {name: _joined(old[name], new[name]) for name in new if _tables(old.get(name), new[name])}
    return {**old, **new, **both}


def _tables(old: Any, new: Any) -> bool:
    return isinstance(old, Mapping) and isinstance(new, Mapping)
