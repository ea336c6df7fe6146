"""A server that sparkwright does not know, as `engine: custom`: its command with the port and the model filled in."""

import re
from collections.abc import Iterator, Mapping, Sequence

from sparkwright.domain.errors import RecipeError
from sparkwright.recipes.importers.draft import Draft
from sparkwright.recipes.importers.shell import unresolved
from sparkwright.recipes.vocabulary import flag_word

_PORTS = frozenset(("port", "http_port", "server_port", "listen_port", "api_port", "serving_port"))
_HOSTS = frozenset(("host", "bind", "listen", "address", "addr", "hostname", "http_host", "server_host", "ip"))
_MODELS = frozenset(("model", "model_path", "model_id", "model_name_or_path", "checkpoint", "model_from_path", "m"))
_NAMES = frozenset(("served_model_name", "served_name", "model_alias", "alias"))
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_WITH_PORT = re.compile(r"([\w.-]*|\[[\da-f:]+\]):(\d{2,5})")
_PORT_VARIABLE = re.compile(r"(?:\w+_)?PORT")
_HOST_VARIABLE = re.compile(r"(?:\w+_)?(?:HOST|BIND)")
_ANY_HOST = ("0.0.0.0", "127.0.0.1", "localhost", "::")


def any_server(words: Sequence[str], env: Mapping[str, str]) -> bool:
    """True if a command says which model it serves, and where it listens: all that `engine: custom` needs."""
    options = dict(_pairs(words))
    port = bool(_PORTS & set(options)) or any(_WITH_PORT.fullmatch(options.get(name, "")) for name in _HOSTS)
    port = port or any(_PORT_VARIABLE.fullmatch(name) and value.isdigit() for name, value in env.items())
    return port and bool(_model_of(words))


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Name and first value of each option."""
    for at, word in enumerate(words):
        if word.startswith("-"):
            name, equals, value = word.partition("=")
            following = words[at + 1] if at + 1 < len(words) else ""
            yield flag_word(name), value if equals else following


def _model_of(words: Sequence[str]) -> str:
    """The model that an option names, else the first bare word that is a hub id or a path of weights."""
    options = dict(_pairs(words))
    named = next((options[name] for name in _MODELS if options.get(name) and not unresolved(options[name])), "")
    bare = (word for at, word in enumerate(words) if at and not word.startswith("-") and words[at - 1][:1] != "-")
    return named or next((word for word in bare if _HUB_ID.fullmatch(word) or word.endswith(".gguf")), "")


def put_any_server(draft: Draft, words: Sequence[str]) -> None:
    """engine.command with placeholders for port, host, model and its name; the rest word by word."""
    if not draft.get("model.id") and not draft.get("model.path"):
        model = _model_of(words)
        draft.put("model.id" if _HUB_ID.fullmatch(model) else "model.path", model)
    known = {str(draft.get(f"model.{key}")): f"{{model{tail}}}" for key, tail in (("id", "_id"), ("path", ""))}
    found, before = list[str](), ""
    for word in words:
        option, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
        name = flag_word(option if equals else before)
        value = value if equals or not word.startswith("-") else ""
        filled = _filled(draft, name, value, known) if value else ""
        found.append(option + equals + filled if filled else word.replace("{", "{{").replace("}", "}}"))
        before = word if word.startswith("-") and not equals else ""
    draft.put("engine.command", found)
    draft.note(
        f"engine: {found[0]} is no engine that sparkwright knows; it is started as `custom`. Its memory, log and "
        "options are not known: read docs/guides/adding-an-engine.md"
    )


def _filled(draft: Draft, name: str, value: str, known: Mapping[str, str]) -> str:
    """The placeholder for a value that has one; ''."""
    if name in _PORTS and value.isdigit():
        draft.put("serving.port", int(value))
        return "{port}"
    if name in _HOSTS and (match := _WITH_PORT.fullmatch(value)):
        draft.put("serving.port", int(match[2]))
        return "{host}:{port}"
    if name in _HOSTS and value in _ANY_HOST:
        return "{host}"
    if name in _NAMES and not unresolved(value):
        draft.put("model.served_name", value)
        return "{served_name}"
    return known.get(value, "")


def settle_any_server(draft: Draft) -> None:
    """Moves port and host of the environment to placeholders. Raises RecipeError for a server without a port."""
    env = dict(draft.get("env") or {})
    said = " ".join(draft.get("engine.command") or ())
    more = dict[str, str]()
    for name, value in env.items():
        if _PORT_VARIABLE.fullmatch(name) and str(value).isdigit() and "{port}" not in (said, *more.values()):
            draft.put("serving.port", int(value))
            more[name] = "{port}"
        elif _HOST_VARIABLE.fullmatch(name) and value in _ANY_HOST:
            more[name] = "{host}"
    if "{port}" not in said and "{port}" not in more.values():
        raise RecipeError(
            f"command: {said[:60]!r} starts no engine that is known, and does not say on which port it listens",
            hint="add the option or the variable for its port, then import again",
        )
    if more:
        draft.put("env", {name: value for name, value in env.items() if name not in more})
        draft.put("engine.definition.env", more)
