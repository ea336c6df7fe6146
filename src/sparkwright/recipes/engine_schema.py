"""An engine's definition as it is written, in a TOML file or in a recipe: pydantic models, used at this border only."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import Field

from sparkwright.domain.deployment import Phase
from sparkwright.domain.engine import EngineDefinition
from sparkwright.domain.recipe import Serving, Speculation
from sparkwright.engines.data_engine import OPTIONS, PLACEHOLDERS, dialect_of, placeholders
from sparkwright.engines.definitions import read_definition
from sparkwright.engines.dialect import Dialect, LineRule
from sparkwright.engines.patterns import safe_pattern
from sparkwright.engines.tables import SEPARATE, metric_names
from sparkwright.engines.traits_data import plain_traits
from sparkwright.recipes.problems import Complaint
from sparkwright.recipes.values import Matching, Part, Seconds, Text, Within, looks_secret, shown_value
from sparkwright.recipes.yaml_lines import Path

NAME = Matching(r"[a-z][a-z0-9-]{0,39}", "small letters, digits and `-`, at most 40, as in tensorfold")
ROUTE = Matching(
    r"(GET|POST|PUT|PATCH|DELETE) /v1(/(\{id\}|[A-Za-z0-9_~-][A-Za-z0-9._~-]*))+",
    "a method and a path below /v1, as in `POST /v1/load_lora_adapter`; `{id}` is any one segment",
)
_ROUTE = Matching(
    r"(GET|POST|PUT|PATCH|DELETE) /v1(/(\{id\}|\{path\}|[A-Za-z0-9_~-][A-Za-z0-9._~-]*))+",
    "a method and a path below /v1, as in `GET /v1/models/{path}`; `{id}` is any one segment, `{path}` one or more",
)
_FOLDER = Matching(r"[a-z0-9][a-z0-9_-]{0,39}", "the name of a folder, as in triton")
_PATH = Matching(r"/[\w./-]{0,200}", "a path of its server without query, as in /health")
_VARIABLE = Matching(r"[A-Za-z_][A-Za-z0-9_]{0,99}", "the name of an environment variable")
_METRIC = Matching(
    r"[A-Za-z_:][A-Za-z0-9_:]{0,199}(\{\w{1,60}=\"[^\"\n]{0,100}\"(,\w{1,60}=\"[^\"\n]{0,100}\"){0,5}\})?",
    "the name of a Prometheus metric, perhaps with labels, as in tensorfold:requests_total",
)
_FLAG = Matching(r"[A-Za-z0-9][\w-]{0,99}", "an option without dashes before it, as in kv-dtype")
_MEMBER = Matching(r"[A-Za-z_][\w.]{0,99}", "a member of a request's body, as in draft")
_VERSION = Matching(r"v?\d+(\.\d+)*[\w.+-]{0,30}", "one version, as in 0.6.4")
_URL = Matching(r"https://\S{1,300}", "the URL of a public source")
_IMAGE = Matching(r"[\w.-]+(:\d+)?(/[\w.-]+){0,5}", "an image without tag, as in avarok/atlas-gb10")
_ORDER = Literal["workers-first", "head-first", "last-to-first"]
_SIGNAL = Literal["SIGTERM", "SIGINT", "SIGQUIT", "SIGHUP"]
_NODES = Within(1, 64, "more nodes than anybody has wired up", zero=True)
_GRACE = Within(1, 600, "a server that needs longer to end hangs")
_WORD = Matching(r"[^\n\0]{1,2000}", "one word of a command line")
_PREFIX = Matching(r"[A-Z][A-Z0-9]{0,30}_", "the beginning of variables that only this engine has, as in TENSORFOLD_")
_TUNED = Matching(r"[a-z][a-z0-9-]{0,39}", "a name for the setting, as in batched-tokens")
_SETTING = Matching(
    r"(serving|speculation|flags|env)\.[A-Za-z_][\w-]{0,99}", "a key of the recipe, as in serving.sequences"
)
_NAME_PART = Matching(r"[a-z0-9][a-z0-9-]{1,39}", "a part of an image's name, as in llama-server")
_DAY = Matching(r"20\d\d-[01]\d-[0-3]\d", "a day, as in 2026-10-06")
_LOG_KEYS, _RULE_KEYS = (tuple(one.name for one in fields(kind)) for kind in (Dialect, LineRule))
_SECTIONS = {"serving": Serving, "speculation": Speculation}
_NAMED, _ODD_BRACE = re.compile(r"\{\{|\}\}|\{\w{1,40}\}"), re.compile(r"[{}]")  # of a rule's text
_Words = Annotated[list[Annotated[Text, _WORD]], Field(max_length=200)]
_Since = Annotated[list[Annotated[Text, _VERSION]], Field(max_length=2)]
_Times = Annotated[list[Seconds], Field(min_length=1, max_length=2)]


class TunePart(Part):
    """A setting that `sparkwright tune` tries."""

    key: Annotated[Text, _SETTING]
    values: Annotated[list[int | float | str], Field(min_length=1, max_length=20)]
    what: Text = ""
    goals: list[Literal["throughput", "latency", "agents"]] = []
    needs: Literal["", "speculation", "nodes"] = ""
    per: Literal["", "cores"] = ""
    by: Literal["", "start"] = ""


class ReleasePart(Part):
    """The meaning of an image's name: which engine, and which version of it."""

    first: Text = ""
    images: Annotated[list[Annotated[Text, _IMAGE]], Field(max_length=20)] = []
    words: Annotated[list[Annotated[Text, _NAME_PART]], Field(max_length=20)] = []
    seen: dict[Annotated[Text, _VERSION], Annotated[Text, _DAY]] = {}


class DescribedPart(Part):
    """The keys of a recipe with `engine: custom` besides its command."""

    title: Text = ""
    worker: _Words = []
    several: _Words = []
    options: dict[str, _Words] = {}
    env: dict[str, Text] = {}
    caches: dict[Annotated[Text, _VARIABLE], Annotated[Text, _FOLDER]] = {}
    per_rank: Annotated[list[Annotated[Text, _FLAG]], Field(max_length=200)] = []
    most_nodes: Annotated[int, _NODES] = 0
    start_order: _ORDER = "workers-first"
    stop_signal: _SIGNAL = "SIGTERM"
    stop_grace: Annotated[float, _GRACE] = 30.0
    health: Annotated[Text, _PATH] = ""
    key_env: Annotated[Text, _VARIABLE] = ""
    key_words: _Words = []
    serial: Annotated[dict[Annotated[Text, _MEMBER], Text | int | float | bool], Field(max_length=20)] = {}
    routes: Annotated[list[Annotated[Text, _ROUTE]], Field(max_length=200)] = []
    websockets: Annotated[list[Annotated[Text, _PATH]], Field(max_length=20)] = []
    metrics_page: Annotated[Text, _PATH] = ""
    metrics: dict[str, Annotated[Text, _METRIC]] = {}
    log: dict[str, Any] = {}
    traits: dict[str, Any] = {}
    phases: dict[str, _Times] = {}
    flags: Annotated[dict[Annotated[Text, _FLAG], _Since], Field(max_length=5000)] = {}
    variables: Annotated[dict[Annotated[Text, _VARIABLE], _Since], Field(max_length=5000)] = {}
    prefixes: Annotated[list[Annotated[Text, _PREFIX]], Field(max_length=20)] = []
    words: dict[Text, Annotated[list[Annotated[Text, _WORD]], Field(min_length=1, max_length=10)]] = {}
    renamed: Annotated[dict[Annotated[Text, _FLAG], Annotated[Text, _WORD]], Field(max_length=500)] = {}
    values: dict[Text, dict[Text, Annotated[Text, _WORD]]] = {}
    tune: Annotated[dict[Annotated[Text, _TUNED], TunePart], Field(max_length=50)] = {}
    quantizations: list[Text] = []
    owned_by: Text = ""
    versions: list[Annotated[Text, _VERSION]] = []
    tried: Text = ""
    see: list[Annotated[Text, _URL]] = []


class FilePart(DescribedPart):
    """The keys that every engine file has besides."""

    name: Annotated[Text, NAME]
    images: Annotated[list[Annotated[Text, _IMAGE]], Field(max_length=20)] = []
    release: ReleasePart = ReleasePart()


class BuiltInPart(FilePart):
    """The whole file of an engine whose ranks a module renders, and whose options are read from its releases."""

    closed: list[Annotated[Text, _FLAG]] = []


class DefinitionPart(FilePart):
    """The whole file of any other engine."""

    command: _Words


def definition_complaints(definition: EngineDefinition, at: Path = (), built_in: bool = False) -> Iterator[Complaint]:
    """The faults across the keys of a definition; at: its place in its file. built_in: it has no command."""
    yield from _words(definition, at)
    yield from () if built_in else _command(definition, at)
    yield from _names(definition, at)
    if definition.variables and not definition.prefixes:
        yield (*at, "variables"), "`variables` needs `prefixes`: only variables that begin with one of them are checked"
    for name, hint in definition.tune.items():
        section, _, key = hint.key.partition(".")
        if section in _SECTIONS and key not in {one.name for one in fields(_SECTIONS[section])}:
            near = get_close_matches(key, [one.name for one in fields(_SECTIONS[section])], 1)
            meant = f"; did you mean {section}.{near[0]}?" if near else ""
            yield (*at, "tune", name, "key"), f"`tune.{name}.key`: a recipe has no {hint.key}{meant}"
        if hint.per == "cores" and any(isinstance(value, str) for value in hint.values):
            yield (*at, "tune", name, "values"), f"`tune.{name}.values`: with `per: cores` each is a share, as in 0.5"
    if definition.log:
        yield from _log(definition, at, re.compile if built_in else safe_pattern)
    yield from _traits(definition, at)


def _traits(definition: EngineDefinition, at: Path) -> Iterator[Complaint]:
    for key, value in definition.traits.items():
        try:
            plain_traits({key: value})
        except ValueError as error:
            yield (*at, "traits", key), f"`traits`: {error}"


def _words(definition: EngineDefinition, at: Path) -> Iterator[Complaint]:
    own = {"command": definition.command, "worker": definition.worker, "several": definition.several}
    own |= {"key_words": definition.key_words}
    rows: list[tuple[Path, tuple[str, ...]]] = [((name,), words) for name, words in own.items()]
    rows += [(("options", name), words) for name, words in definition.options.items()]
    rows += [(("env", name), (text,)) for name, text in definition.env.items()]
    for path, words in rows:
        key = ".".join(map(str, path))
        for word in words:
            for name in sorted(placeholders(word) - PLACEHOLDERS):
                near = get_close_matches(name, PLACEHOLDERS, 1)
                meant = f"did you mean {{{near[0]}}}?" if near else f"known: {', '.join(sorted(PLACEHOLDERS))}"
                yield (*at, *path), f"`{key}`: no placeholder {{{name[:40]}}}; {meant} (a brace itself is `{{{{`)"
            if looks_secret(word):
                yield (*at, *path), f"`{key}`: a key must not be in a file (its value is not shown)"
            if "key_file" in placeholders(word) and path != ("key_words",):
                yield (*at, *path), f"`{key}`: {{key_file}} belongs into `key_words`: without a key there is no file"


def _command(definition: EngineDefinition, at: Path) -> Iterator[Complaint]:
    if not definition.command:
        yield (*at, "command"), "`command` is empty; it starts a rank"
    elif not any("port" in placeholders(word) for word in (*definition.command, *definition.env.values())):
        yield (*at, "command"), "`command` has no {port}: sparkwright could not tell the server where to listen"
    if definition.key_words and not any("key_file" in placeholders(word) for word in definition.key_words):
        yield (*at, "key_words"), "`key_words` has no {key_file}; a key on the command line is seen by everybody"


def _names(definition: EngineDefinition, at: Path) -> Iterator[Complaint]:
    words = sorted({word for name in SEPARATE for word in metric_names(name)})
    meanings = sorted({meaning for name in SEPARATE for meaning in read_definition(name).words} | OPTIONS)
    keys = sorted(OPTIONS)
    allowed: tuple[tuple[str, Iterable[str], list[str]], ...] = (
        ("options", definition.options, keys),
        ("metrics", definition.metrics, words),
        ("words", definition.words, meanings),
        ("values", definition.values, keys),
    )
    for key, found, known in (*allowed, ("phases", definition.phases, [str(phase) for phase in Phase])):
        yield from _unknown(dict.fromkeys(found), known, (*at, key), key)


def _log(definition: EngineDefinition, at: Path, compiled: Callable[[str], re.Pattern[str]]) -> Iterator[Complaint]:
    rules = definition.log.get("rule", [])
    if not isinstance(rules, list) or len(rules) > 500 or not all(isinstance(one, Mapping) for one in rules):
        yield (*at, "log", "rule"), "`log.rule`: expected at most 500 tables, as in [[log.rule]]"
        return
    found = list(_unknown(definition.log, _LOG_KEYS, (*at, "log"), "log"))
    for key, text in _log_patterns(definition.log):
        found += _pattern(text, (*at, "log", key), f"log.{key}", compiled)
    for number, rule in enumerate(rules):
        found += _rule(rule, (*at, "log", "rule", number), compiled)
    if found:
        yield from found
        return
    try:
        yield from _groups(dialect_of(definition.log, "log", compiled), at)
    except (ValueError, TypeError, AttributeError) as error:
        yield (*at, "log"), f"`log`: {error}"


def _log_patterns(log: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The patterns of a log besides its rules', by their key."""
    for key in ("begins", "prefix", "of_a_request"):
        yield from [(key, log[key])] if key in log else ()
    failures, bars = log.get("failures", ()), log.get("bars", ())
    yield from (("failures", text) for text in (failures if isinstance(failures, list | tuple) else (failures,)))
    for bar in bars if isinstance(bars, list | tuple) else (bars,):
        yield "bars", bar[0] if isinstance(bar, list | tuple) and bar else bar


def _rule(rule: Mapping[str, Any], at: Path, compiled: Callable[[str], re.Pattern[str]]) -> Iterator[Complaint]:
    yield from _unknown(rule, _RULE_KEYS, at, "log.rule")
    phase, known = rule.get("phase"), [str(one) for one in Phase]
    if phase not in known:
        yield (*at, "phase"), f"`log.rule.phase`: found {shown_value(phase)}; allowed: {', '.join(known)}"
    text = rule.get("text", "")
    if not isinstance(text, str) or _ODD_BRACE.search(_NAMED.sub("", text)):
        yield (*at, "text"), "`log.rule.text`: only {name} of a group of the pattern; a brace itself is `{{` or `}}`"
    yield from _pattern(rule.get("pattern"), (*at, "pattern"), "log.rule.pattern", compiled)


def _pattern(text: Any, at: Path, key: str, compiled: Callable[[str], re.Pattern[str]]) -> Iterator[Complaint]:
    if not isinstance(text, str):
        yield at, f"`{key}`: found {shown_value(text)}; expected a pattern in quotes"
        return
    try:
        compiled(text)
    except (ValueError, re.error) as error:
        yield at, f"`{key}`: {shown_value(text)}: {error}"


def _unknown(found: Mapping[str, Any], known: Collection[str], at: Path, key: str) -> Iterator[Complaint]:
    for name in found:
        if name not in known:
            near = get_close_matches(name, known, 1)
            meant = f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}"
            yield (*at, name), f"`{key}`: unknown key {shown_value(name)}; {meant}"


def _groups(dialect: Dialect, at: Path) -> Iterator[Complaint]:
    """A rule's text, facts and counts name groups that its pattern has."""
    for number, rule in enumerate(dialect.rule):
        used = {*rule.facts.values(), *filter(None, (rule.done, rule.total)), *placeholders(rule.text)}
        for name in sorted(used - set(rule.pattern.groupindex)):
            yield (
                (*at, "log", "rule", number),
                f"`log.rule`: no group {shown_value(name)} in {shown_value(rule.pattern.pattern)}",
            )
