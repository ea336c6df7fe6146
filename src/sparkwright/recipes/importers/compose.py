"""Compose files: the service that starts an engine, with `.env` and the variables of its form for two nodes."""

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from sparkwright.domain.engine import CUSTOM
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.values import dataclass
from sparkwright.recipes.importers.container import OURS, ContainerCall, put_container, started_by
from sparkwright.recipes.importers.draft import Draft, ImportOptions
from sparkwright.recipes.importers.shell import Growth, env_file

_MOST = 2  # services among which one that is no known engine is taken, unless it is named
_KNOWN = "known: vllm serve, sglang.launch_server, trtllm-serve, llama-server"
_READ = "image command entrypoint environment env_file volumes ports shm_size"
_VARIABLE = re.compile(r"\$(?:(\$)|\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}|([A-Za-z_]\w*))")
_BRACED = re.compile(r"(\w+)(:?[-+?])?(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Values:
    """known: variables of `.env`. grown: how much they have filled in."""

    known: Mapping[str, str]
    grown: Growth


def is_compose(tree: Mapping[str, Any]) -> bool:
    return isinstance(tree.get("services"), Mapping)


def from_compose(
    tree: Mapping[str, Any], source: str, options: ImportOptions, beside: Callable[[str], str | None]
) -> Draft:
    """The draft of a Compose file. beside: text of a file next to it. Raises RecipeError for several engines, or
    none."""
    values = Values({**_env_files(".env", beside, wanted=False), **options.values}, Growth(source))
    services = {str(name): _filled(row, values) for name, row in tree["services"].items() if isinstance(row, Mapping)}
    name = _service(services, source, options)
    draft, service = Draft(), services[name]
    env = {**_files(service, beside, source), **_environment(service.get("environment"))}
    for key in ("extends", "build"):
        if service.get(key):
            draft.note(f"{name}.{key}: left out; " + ("write what it adds into the service" if key == "extends" else
                       "an image is named, or built with `sparkwright build`"))  # fmt: skip
    left = [key for key in service if key not in (*_READ.split(), *OURS.split(), "extends", "build")]
    others = [other for other in services if other != name]
    container = ContainerCall(
        str(service.get("image") or ""),
        (*_command(service.get("entrypoint"), source), *_command(service.get("command"), source)),
        env,
        tuple(_volume(row) for row in service.get("volumes") or ()),
        tuple(
            f"{row.get('published')}:{row.get('target')}" if isinstance(row, Mapping) else str(row)
            for row in service.get("ports") or ()
        ),
        str(service.get("shm_size") or ""),
        left=tuple(f"{name}.{key}" for key in left),
    )
    put_container(draft, container, source, options)
    draft.put("name", name if name not in ("vllm", "sglang", "app", "server", "llm") else "")
    for other in others:
        engine = _engine(services[other], source)
        more = f"it starts {engine}, too: import it with --service {other}"
        known = engine not in ("", CUSTOM) and not _same(service, services[other])
        draft.note(f"service {other}: left out; {more if known else 'sparkwright starts the engine only'}")
    return draft


def _service(services: Mapping[str, Mapping[str, Any]], source: str, options: ImportOptions) -> str:
    if options.service:
        if options.service in services:
            return options.service
        raise RecipeError(
            f"{source}: no service {options.service!r}; it has {', '.join(services)}", hint="name another"
        )
    found = {name: engine for name, row in services.items() if (engine := _engine(row, source))}
    known = [name for name, engine in found.items() if engine != CUSTOM]
    engines = known or (list(found) if len(services) <= _MOST else [])
    started = [name for name in engines if not services[name].get("profiles")] or engines
    if not engines:
        why = "no service starts an engine that is known" if found else "no service starts an engine"
        raise RecipeError(f"{source}:1: {why}: {', '.join(services)}", hint=f"{_KNOWN}; or name one with --service")
    if len(started) == 1 or all(_same(services[started[0]], services[name]) for name in started[1:]):
        return started[0]
    shown = "; ".join(f"{name} ({found[name]}, {services[name].get('image') or 'built'})" for name in started)
    why = f"{len(started)} services start an engine, and not as ranks of one: {shown}"
    hint = f"import each by its name: --service {started[0]}; `up` of several recipes serves them side by side"
    raise RecipeError(f"{source}:1: {why}", hint=hint)


_RANK = re.compile(r"--node[-_]rank[ =]\S+|--headless|-r \d+|--host[ =]\S+|--port[ =]\S+")


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """True if two services are ranks of one engine: the same words but for the rank."""
    texts = [_RANK.sub("", " ".join(_command(row.get("command"), ""))).split() for row in (one, other)]
    return texts[0] == texts[1] and one.get("image") == other.get("image")


def _engine(row: Mapping[str, Any], source: str) -> str:
    """The engine that a service starts, `custom` for a server that is not known; ''."""
    words = (*_command(row.get("entrypoint"), source), *_command(row.get("command"), source))
    try:
        env = _environment(row.get("environment"))
        return started_by(str(row.get("image") or ""), words, source, env).engine
    except RecipeError:
        return ""


def _command(value: Any, source: str) -> tuple[str, ...]:
    """A text is split as Compose does it, without a shell."""
    if isinstance(value, list):
        return tuple(map(str, value))
    try:
        return tuple(shlex.split(str(value or "")))
    except ValueError as error:
        raise RecipeError(f"{source}: command: {error}", hint="close the quote") from None


def _filled(value: Any, values: Values) -> Any:
    """Variables as Compose fills them; those without a value stay as `${NAME}`."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: "$" if match[1] else _value(match[2] or match[3], values), value)
    if isinstance(value, Mapping):
        return {key: _filled(one, values) for key, one in value.items()}
    return [_filled(one, values) for one in value] if isinstance(value, list) else value


def _value(inside: str, values: Values) -> str:
    match = _BRACED.fullmatch(inside)
    if not match:
        return f"${{{inside}}}"
    name, how, other = match[1], match[2] or "", match[3]
    found = values.known.get(name)
    if how.endswith("+"):
        return _filled(other, values) if found else ""
    if found is not None and (found or not how.startswith(":")):
        return values.grown.by(found)
    return _filled(other, values) if how.endswith("-") else f"${{{name}}}"


def _env_files(name: str, beside: Callable[[str], str | None], wanted: bool) -> dict[str, str]:
    text = beside(name)
    if text is None and wanted:
        raise RecipeError(f"{name}: is not next to the Compose file, which names it", hint="copy it there")
    return dict(env_file(text, name)) if text else {}


def _files(service: Mapping[str, Any], beside: Callable[[str], str | None], source: str) -> dict[str, str]:
    given = service.get("env_file") or ()
    rows = [given] if isinstance(given, str | Mapping) else given
    found: dict[str, str] = {}
    for row in rows:
        path = str(row.get("path") if isinstance(row, Mapping) else row).removeprefix("./")
        required = not (isinstance(row, Mapping) and row.get("required") is False)
        found |= _env_files(path, beside, wanted=required and path != ".env")
    return found


def _environment(given: Any) -> dict[str, str]:
    if isinstance(given, Mapping):
        rows = {str(name): f"${{{name}}}" if value is None else _plain(value) for name, value in given.items()}
    else:
        words = [str(word) for word in given or ()]
        rows = {w.partition("=")[0]: w.partition("=")[2] if "=" in w else f"${{{w}}}" for w in words}
    return {name: value for name, value in rows.items() if name}


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _volume(row: Any) -> str:
    if isinstance(row, Mapping):
        return f"{row.get('source', '')}:{row.get('target', '')}" + (":ro" if row.get("read_only") else "")
    return str(row)
