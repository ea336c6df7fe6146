"""An engine that a definition describes: its commands, its log and its figures, with what is not known left out."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from sparkwright.domain.deployment import LogEvent, Phase
from sparkwright.domain.engine import EngineDefinition
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.ledger import KV_POOL, OVERHEAD
from sparkwright.domain.plan import Placement, RankFile, RankSpec
from sparkwright.domain.recipe import PhaseTime, Recipe, Runtime
from sparkwright.domain.units import counted
from sparkwright.engines.definitions import bare_name, meaning_of, read_definition
from sparkwright.engines.dialect import Dialect, make_dialect
from sparkwright.engines.engine import RenderContext, Stop, files_at, served_name
from sparkwright.engines.environment import LOOPBACK, OFFLINE, check_distributed, fabric
from sparkwright.engines.findings import ENG
from sparkwright.engines.mounts import HUB_AT, caches, container_folder, model_word, rank_spec
from sparkwright.engines.options import merge_options, option_name, option_words
from sparkwright.engines.patterns import safe_pattern
from sparkwright.engines.tables import SEPARATE
from sparkwright.engines.traits import Cache, Claim, Traits
from sparkwright.engines.traits_data import told_traits
from sparkwright.engines.version import version_key

KEY_FILE = "api-key"
WORD = re.compile(r"\{(\{|\w{1,40}\})|\}\}")
# Keys of a recipe that a definition's `options` may turn into words.
OPTIONS = frozenset(("context", "sequences", "batched_tokens", "kv_dtype", "memory_fraction", "chat_template"))
OPTIONS = OPTIONS.union(("tool_parser", "reasoning_parser", "draft_method", "draft_tokens", "tp", "pp", "dp"))
PLACEHOLDERS = OPTIONS.union(
    ("model", "model_id", "served_name", "host", "port", "rank", "world", "head", "address", "interface"),
    ("master_port", "python", "key_file"),
)
_SHOWN = 8  # names in a finding
_NO_OPTION = "most engines end at once over an option that they do not have"
USUAL_ROUTES = (
    "GET /v1/models",
    "GET /v1/models/{id}",
    "POST /v1/chat/completions",
    "POST /v1/completions",
    "POST /v1/responses",
    "POST /v1/embeddings",
    "POST /v1/rerank",
    "POST /v1/score",
    "POST /v1/messages",
    "POST /v1/messages/count_tokens",
    "POST /v1/audio/transcriptions",
    "POST /v1/audio/translations",
    "POST /v1/audio/speech",
)
# Nobody knows how long an unknown engine is silent while it loads; its answer or the end of its process tells.
USUAL_PHASES: Mapping[Phase, PhaseTime] = {
    **dict.fromkeys(Phase, PhaseTime(0.0, 1800.0)),
    Phase.ANSWER: PhaseTime(10.0, 300.0),
}


def traits_of(definition: EngineDefinition) -> Traits:
    """The traits of a described engine for planning. Without any of memory it takes what it needs, at its start, and
    nothing else is known."""
    told = told_traits(definition)
    usual: dict[str, Any] = {"batches": False, "kv_option": "", "claim": Claim.NONE, "cache": Cache.SEQUENCES}
    if not told.keys() & {"claim", "whole"}:
        usual |= {"outside": lambda recipe: (OVERHEAD, KV_POOL), "opaque": True}
    return Traits(**usual | told)


def phase_times_of(definition: EngineDefinition) -> Mapping[Phase, PhaseTime]:
    """Its own where it has any, else none is usual and half an hour of silence counts as stuck."""
    own = {Phase(name): PhaseTime(*(float(one) for one in times)) for name, times in definition.phases.items()}
    return {**USUAL_PHASES, **own}


def dialect_of(log: Mapping[str, Any], file: str, compiled: Callable[[str], re.Pattern[str]] = safe_pattern) -> Dialect:
    """The log's rules with safe patterns; without any, nothing is understood. Raises ValueError: file and rule."""
    return make_dialect(file, {"begins": "(?!x)x", "exceptions": True, "rule": [], **log}, compiled)


class DataEngine:
    """One definition as an Engine."""

    def __init__(self, definition: EngineDefinition) -> None:
        self.definition = definition
        self.name = definition.name
        self.metrics_page = definition.metrics_page.lstrip("/")
        self.stop = Stop(definition.stop_signal, definition.stop_grace)

    @cached_property
    def traits(self) -> Traits:
        return traits_of(self.definition)

    @cached_property
    def _dialect(self) -> Dialect:
        return dialect_of(self.definition.log, self.definition.source or self.name)

    def check(self, recipe: Recipe) -> Iterator[Finding]:
        yield from check_distributed(recipe, self.definition.per_rank)
        yield from _check_words(self.definition, recipe)
        yield from _check_flags(self.definition, recipe)
        yield from _check_variables(self.definition, recipe)

    def render(self, recipe: Recipe, placement: Placement, context: RenderContext) -> tuple[RankSpec, ...]:
        return tuple(_rank(self.definition, recipe, placement, context, rank) for rank in range(placement.world))

    def read(self, line: str) -> LogEvent | None:
        return self._dialect.read(line)


def fill_placeholders(word: str, values: Mapping[str, str]) -> str:
    """The word with its placeholders filled in; `{{` and `}}` are braces."""

    def one(match: re.Match[str]) -> str:
        name = match[1] or "}"
        return name if name in "{}" else values.get(name.rstrip("}"), "")

    return WORD.sub(one, word)


def placeholders(word: str) -> frozenset[str]:
    return frozenset(match[1].rstrip("}") for match in WORD.finditer(word) if match[1] not in (None, "{"))


def all_words(definition: EngineDefinition) -> tuple[str, ...]:
    """Every word and value that may hold a placeholder and is always there."""
    return (*definition.command, *definition.worker, *definition.several, *definition.env.values())


def _given(definition: EngineDefinition, recipe: Recipe) -> Mapping[str, str]:
    """The recipe's values of OPTIONS, as text and as this engine writes them."""
    serving, split = recipe.serving, recipe.parallelism
    found: Mapping[str, object] = {
        "context": serving.context,
        "sequences": serving.sequences,
        "batched_tokens": serving.batched_tokens,
        "kv_dtype": serving.kv_dtype,
        "memory_fraction": serving.memory_fraction,
        "tool_parser": recipe.parsers.tool,
        "reasoning_parser": recipe.parsers.reasoning,
        "chat_template": recipe.parsers.chat_template,
        "draft_method": recipe.speculation.method,
        "draft_tokens": recipe.speculation.tokens,
        **{name: size for name, size in (("tp", split.tp), ("pp", split.pp), ("dp", split.dp)) if size > 1},
    }
    texts = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in found.items() if value}
    return {name: definition.values.get(name, {}).get(text, text) for name, text in texts.items()}


def _values(
    definition: EngineDefinition, recipe: Recipe, placement: Placement, context: RenderContext, rank: int
) -> dict[str, str]:
    node, several = placement.nodes[rank], placement.world > 1
    docker = recipe.engine.runtime is Runtime.DOCKER
    here, head = (placement.fabric[one] if several else None for one in (node, placement.head))
    return {
        **_given(definition, recipe),
        "model": _model_path(recipe, node, context),
        "model_id": model_word(recipe, node, context),
        "served_name": served_name(recipe),
        "host": context.bind if rank == 0 else LOOPBACK,
        "port": str(context.port),
        "rank": str(rank),
        "world": str(placement.world),
        "head": head.address if head else LOOPBACK,
        "address": here.address if here else LOOPBACK,
        "interface": here.interface if here else "lo",
        "master_port": str(recipe.serving.master_port),
        "python": "python3" if docker else context.python(recipe, node),
        "key_file": f"{files_at(recipe, context, node, rank)}/{KEY_FILE}",
    }


def _model_path(recipe: Recipe, node: str, context: RenderContext) -> str:
    """The folder or file of the weights as the rank sees it; '' where the engine brings its own."""
    path = context.models.get(node, "") or recipe.model.path
    if recipe.engine.runtime is not Runtime.DOCKER or not path:
        return path
    if context.from_hub:
        return f"{HUB_AT}/{PurePosixPath(path).relative_to(context.paths[node].hub)}"
    return container_folder(path)


def _rank(
    definition: EngineDefinition, recipe: Recipe, placement: Placement, context: RenderContext, rank: int
) -> RankSpec:
    values = _values(definition, recipe, placement, context, rank)
    node, several, given = placement.nodes[rank], placement.world > 1, _given(definition, recipe)
    words = list(definition.worker if rank and definition.worker else definition.command)
    words += definition.several if several else ()
    for name, added in definition.options.items():
        words += added if name in given else ()
    words += definition.key_words if context.api_key and rank == 0 else ()
    argv = [*(fill_placeholders(word, values) for word in words), *option_words(merge_options({}, recipe.flags))]
    env = {
        **OFFLINE,
        **caches(recipe, node, context, definition.caches),
        **(fabric(placement.fabric[node]) if several else {}),
        **{name: fill_placeholders(text, values) for name, text in definition.env.items()},
        **{name: str(value) for name, value in recipe.env.items()},
    }
    key = context.api_key if rank == 0 else None
    spec = replace(
        rank_spec(recipe, placement, context, rank, env),
        argv=tuple(argv),
        secrets={definition.key_env: key} if key and definition.key_env else {},
        files=(RankFile(KEY_FILE, secret=key),) if key and definition.key_words else (),
        listens=_listens(definition, recipe, placement, context, rank),
    )
    if recipe.engine.runtime is Runtime.PROCESS:
        return replace(spec, argv=_process_words(recipe, spec.argv), gpu=spec.gpu)
    program, *rest = spec.argv
    return replace(spec, argv=tuple(rest), entrypoint=recipe.engine.program or (program,))


def _process_words(recipe: Recipe, argv: tuple[str, ...]) -> tuple[str, ...]:
    """The program of the venv where the recipe names one: a bare name is looked for there."""
    venv, program = recipe.engine.venv.rstrip("/"), argv[0]
    if recipe.engine.entrypoint:
        return (*recipe.engine.program, *argv[1:])
    return (f"{venv}/bin/{program}", *argv[1:]) if venv and "/" not in program else argv


def _listens(
    definition: EngineDefinition, recipe: Recipe, placement: Placement, context: RenderContext, rank: int
) -> tuple[tuple[str, int], ...]:
    if rank:
        return ()
    meets = placement.world > 1 and any("master_port" in placeholders(word) for word in all_words(definition))
    own = ((placement.fabric[placement.head].address, recipe.serving.master_port),) if meets else ()
    return ((context.bind, context.port), *own)


def _check_words(definition: EngineDefinition, recipe: Recipe) -> Iterator[Finding]:
    words = all_words(definition)
    used = frozenset().union(*map(placeholders, words))
    if recipe.nodes > 1 and not definition.worker and "rank" not in used:
        yield ENG["ENG014"].on(
            "engine",
            f"nodes: {recipe.nodes}; no {{rank}} in {' '.join(definition.command)[:200]}",
            title=f"the ranks of {definition.name} cannot be told apart",
            cause="every node would start the same server, and none would know of the others",
            fix="give {rank}, {world} and {head} in the command, or a command for `worker`; or set nodes: 1",
        )
    if definition.most_nodes and recipe.nodes > definition.most_nodes:
        yield ENG["ENG014"].on(
            "nodes",
            f"nodes: {recipe.nodes}; {definition.name} runs on {definition.most_nodes} at most",
            fix=f"set nodes: {definition.most_nodes} or fewer",
        )
    if "host" not in used:
        yield ENG["ENG036"].on(
            "engine.command",
            f"no {{host}} in {' '.join(definition.command)[:200]}",
        )
    if recipe.serving.api_key_env and not (definition.key_env or definition.key_words):
        yield ENG["ENG037"].on(
            "serving.api_key_env",
            f"api_key_env: {recipe.serving.api_key_env}; {definition.name} has neither key_env nor key_words",
        )


def _check_flags(definition: EngineDefinition, recipe: Recipe) -> Iterator[Finding]:
    """Options of the recipe that the definition does not list, or lists for other versions: a warning, never a block.

    Who keeps the file may not have read the newest version.
    """
    own = (words[0] for words in (*definition.options.values(), *definition.words.values()) if words)
    known: dict[str, tuple[str, ...]] = {}
    known |= {bare_name(word): () for word in own if word.startswith("-") and definition.flags}
    known |= {option_name(name): versions for name, versions in definition.flags.items()}
    version = version_key(definition.name, recipe.engine.version)
    for name in recipe.flags if known else ():
        bare = option_name(name)
        found = known.get(bare.partition(".")[0])
        if found is None:
            near = get_close_matches(bare, known, 1, 0.75)
            word, because = right_word(definition, bare)
            advice = f"write {word}: {because}" if word else f"did you mean {near[0]}?" if near else ""
            yield ENG["ENG009"].on(
                f"flags.{name}",
                f"{name}; {_listed(known, 'option')}",
                title=f"{definition.name}: option --{bare} is not among the known ones",
                cause=_NO_OPTION,
                fix=advice or "keep it if this version has it",
            )
        elif version and _outside(definition.name, version, *found):
            yield ENG["ENG009"].on(
                f"flags.{name}",
                f"{name}; {_when(found)}; the recipe has {recipe.engine.version}",
                title=f"{definition.name} {recipe.engine.version} may not have --{bare}",
                cause=_NO_OPTION,
                fix="leave it out, or take a version that has it",
            )


def right_word(definition: EngineDefinition, name: str) -> tuple[str, str]:
    """This engine's option for an old name or another engine's, and where that comes from; '' if there is none."""
    if name in definition.renamed:
        return definition.renamed[name], "renamed"
    own = {meaning: words[:1] for meaning, words in definition.options.items()} | dict(definition.words)
    for engine in SEPARATE:
        words = own.get(meaning_of(read_definition(engine), (name,)), ())
        if words and words[0].startswith("-"):
            return words[0].partition("=")[0], f"--{name} is {engine}'s word"
    return "", ""


def _check_variables(definition: EngineDefinition, recipe: Recipe) -> Iterator[Finding]:
    """Variables with a prefix of its own that the definition does not list, or lists for other versions: a warning."""
    version, known = version_key(definition.name, recipe.engine.version), definition.variables
    own = (name for name in recipe.env if known and name.startswith(definition.prefixes))
    for name in own:
        found = known.get(name)
        near = get_close_matches(name, known, 1, 0.85)
        if found is None:
            yield ENG["ENG008"].on(
                f"env.{name}",
                f"{name}; {_listed(known, 'variable')}",
                title=f"{definition.name}: variable {name} is not among the known ones",
                cause="a variable that is misspelt is ignored without a word",
                fix=f"did you mean {near[0]}?" if near else "keep it if this version reads it",
                severity=Severity.WARN,
            )
        elif version and _outside(definition.name, version, *found):
            yield ENG["ENG008"].on(
                f"env.{name}",
                f"{name}; {_when(found)}; the recipe has {recipe.engine.version}",
                title=f"{definition.name} {recipe.engine.version} may not read {name}",
                fix="leave it out, or take a version that reads it",
                severity=Severity.WARN,
            )


def _listed(known: Collection[str], what: str) -> str:
    return f"known: {', '.join(known)}" if len(known) <= _SHOWN else f"{counted(len(known), what)} known"


def _when(found: Sequence[str]) -> str:
    return " ".join(f"{word} {one}" for word, one in zip(("since", "until"), found, strict=False) if one)


def _outside(name: str, version: tuple[int, ...], since: str = "", until: str = "") -> bool:
    early = bool(since) and version < version_key(name, since)
    return early or (bool(until) and version >= version_key(name, until))
