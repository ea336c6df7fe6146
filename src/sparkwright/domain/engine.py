"""An engine as data: what one TOML file, or the `engine` section of a recipe, says of it."""

from collections.abc import Mapping
from typing import Any

from sparkwright.domain.values import dataclass, field

CUSTOM = "custom"  # the engine's name in a recipe that brings its own definition
# Orders in which ranks are started: all workers at once, then the head; the other way; the last rank first, each alone.
WORKERS_FIRST, HEAD_FIRST, LAST_TO_FIRST = "workers-first", "head-first", "last-to-first"


@dataclass(frozen=True, slots=True)
class ReleaseNames:
    """The meaning of an image's name. first: numbers before it in a tag are the image's own. images: repositories where
    a tag that is a version holds that release and nothing else. words: parts of a name that only images with this
    engine have. seen: first day, as 2026-06-07, on which a build of that release or of what came after it was
    published; a nightly of a later day has at least the options of that release."""

    first: str = ""
    images: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    seen: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TuneHint:
    """A setting that `tune` tries. key: of the recipe, as serving.sequences. values: tried next to the recipe's own.

    goals: () are all. needs: `speculation` or `nodes` (more than one). per: `cores` makes the values shares of the
    head's. by: `start` compares times to ready, once at the end; else answers.
    """

    key: str
    values: tuple[int | float | str, ...]
    what: str = ""
    goals: tuple[str, ...] = ()
    needs: str = ""
    per: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class EngineDefinition:
    """command: words that start the head, and every rank where `worker` is empty; placeholders as `{port}`. () for an
    engine of sparkwright's own, whose ranks its module renders.

    several: words that follow where there are two ranks or more. options: key of a recipe's serving section -> words
    that it adds where the recipe gives it. env: variables of every rank, with placeholders. caches: variable -> folder
    below the compile cache, which outlives the rank. per_rank: options that no recipe may give, for each rank has its
    own.
    start_order: one of the three above. serial: members of a request that switch speculation off for it, {} if it has
    none.
    health: a path of its server, '' if it has none. key_env: the variable that hands over the API key; key_words: words
    for it in a file (`{key_file}`). Without both the engine has no key.
    routes: `METHOD /v1/path` for the gateway, `{id}` for one segment, `{path}` for one or more; () are the usual ones
    of OpenAI's API. websockets: paths that a client may upgrade. metrics_page: '' if it has none. metrics: our word ->
    the name on that page; a name that the engine does not have is left out, one with labels means those alone.
    log: the tables of engines/dialect.py; traits: those of engines/traits_data.py, {} if nothing is known. phases:
    phase -> (usual seconds, seconds of silence that count as stuck).
    flags: options with the version since which, and until which they are there; {} where they are not known.
    variables: the same for environment variables; prefixes: those that only this engine's have.
    words: meaning -> options that have it, the better first; what follows a name is written with it. renamed: names of
    guides and old versions -> what to write. values: key of the recipe -> a value as other engines write it -> its own.
    closed: options that take no other name than those known, whatever their type. tune: by a name for the setting.
    release: what an image's name tells of it.
    quantizations: () if not known. most_nodes: 0 if not known. images: repositories whose images start the first word
    of `command` themselves.
    owned_by: as its list of models names it.
    versions: those it was written for, oldest first. tried: where it was run for real, '' if it never was.
    see: public sources. source: the file as messages name it.
    """

    name: str
    command: tuple[str, ...] = ()
    title: str = ""
    worker: tuple[str, ...] = ()
    several: tuple[str, ...] = ()
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    caches: Mapping[str, str] = field(default_factory=dict)
    per_rank: tuple[str, ...] = ()
    most_nodes: int = 0
    start_order: str = WORKERS_FIRST
    stop_signal: str = "SIGTERM"
    stop_grace: float = 30.0
    health: str = ""
    key_env: str = ""
    key_words: tuple[str, ...] = ()
    serial: Mapping[str, Any] = field(default_factory=dict)
    routes: tuple[str, ...] = ()
    websockets: tuple[str, ...] = ()
    metrics_page: str = ""
    metrics: Mapping[str, str] = field(default_factory=dict)
    log: Mapping[str, Any] = field(default_factory=dict)
    traits: Mapping[str, Any] = field(default_factory=dict)
    phases: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    variables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    prefixes: tuple[str, ...] = ()
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    closed: tuple[str, ...] = ()
    tune: Mapping[str, TuneHint] = field(default_factory=dict)
    release: ReleaseNames = field(default_factory=ReleaseNames)
    quantizations: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    owned_by: str = ""
    versions: tuple[str, ...] = ()
    tried: str = ""
    see: tuple[str, ...] = ()
    source: str = ""
