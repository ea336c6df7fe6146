"""The compatibility table: what is known of engine x version x architecture x quantization x chip.

Only the file of the engine that is asked for is parsed, and only once.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from sparkwright.checks.compat.combination import GB10, Combination, combination
from sparkwright.domain.check import Context
from sparkwright.domain.codec import from_tree
from sparkwright.domain.recipe import RecipeState
from sparkwright.domain.values import dataclass, field, fields
from sparkwright.engines.catalog import ENGINES as DRIVEN
from sparkwright.engines.tables import DATA_OF, SEPARATE
from sparkwright.engines.version import bounds, within

VERDICTS = ("works", "blocked", "degraded", "unknown")
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # seven times as fast where PyYAML has libyaml
_DATE = re.compile(r"20\d\d-[01]\d(-[0-3]\d)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompatibilityRow:
    """One thing known. What a row leaves out holds for all: a recipe must meet everything that it states.

    architectures: as config.json names them. formats: of weights or experts (fp8, nvfp4, ...), or the name of the
    quantization method. versions, nodes: ranges. image, model: regular expressions on the image and on the model's id
    or path. flags, env: name -> values of which one must be there; '' is a name that is not given, '*' any value.
    otherwise: what other sources show against it; such a row only informs.
    date: of the source where it has one, else when it was read.
    """

    architectures: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    versions: str = ""
    chip: str = "sm_121"
    nodes: str = ""
    image: str = ""
    model: str = ""
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    env: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kv: tuple[str, ...] = ()
    drafts: tuple[str, ...] = ()
    pull_request: int = 0
    verdict: str
    reason: str
    alternative: str = ""
    otherwise: str = ""
    source: str
    date: str

    def __post_init__(self) -> None:
        """Raises ValueError."""
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict {self.verdict!r} is none of {', '.join(VERDICTS)}")
        if self.verdict in ("blocked", "degraded") and not self.alternative:
            raise ValueError(f"verdict {self.verdict} wants an alternative")
        if self.verdict == "blocked" and self.otherwise:
            raise ValueError("what other sources contradict is at most degraded")
        if not (self.reason and self.source and self.chip and _DATE.fullmatch(self.date)):
            raise ValueError(f"reason, source, chip and a date as 2026-11 belong to every row: {self.reason!r}")
        for wanted in (self.versions, self.nodes):
            bounds(wanted)


@dataclass(frozen=True, slots=True)
class CompatibilityTable:
    """A file. vLLM's is also of vLLM on Ray: `engines` of a row distinguishes them."""

    engine: str
    rows: tuple[CompatibilityRow, ...]


def parse_table(tree: Mapping[str, Any]) -> CompatibilityTable:
    """The table of a file whose values are texts, lists and mappings. Raises ValueError."""
    return CompatibilityTable(tree["engine"], tuple(map(parse_row, tree["rows"])))


def parse_row(tree: Mapping[str, Any]) -> CompatibilityRow:
    """Raises ValueError, also for a key that no row has."""
    if unknown := sorted(set(tree) - {one.name for one in fields(CompatibilityRow)}):
        raise ValueError(f"no row has {', '.join(unknown)}")
    return from_tree(CompatibilityRow, {**tree, "pull_request": int(tree.get("pull_request", 0))})


ENGINES = tuple(name.replace("-", "_") for name in SEPARATE)


@cache
def read_table(name: str) -> CompatibilityTable:
    """The table of a file. Raises ValueError on one that does not keep the schema."""
    path = files("sparkwright.checks.compat") / "data" / f"{name}.yaml"
    return parse_table(yaml.load(path.read_text(encoding="utf-8"), _LOADER))


def rows_of(engine: str) -> tuple[CompatibilityRow, ...]:
    """All rows of an engine; none for one without a table (the simulator)."""
    found = DRIVEN.get(engine)
    name = DATA_OF.get(engine, engine).replace("-", "_")
    return read_table(name).rows if found and not found.traits.plays else ()


def known_of(combination: Combination) -> tuple[CompatibilityRow, ...]:
    """The rows that a combination meets, in the order of the file."""
    return tuple(row for row in rows_of(combination.engine) if row_applies(combination, row))


def unheard(combination: Combination) -> bool:
    """Nothing at all is known of this engine with this architecture on GB10; False where it has no architecture."""
    rows = rows_of(combination.engine) if combination.chip == GB10 else ()
    named = any(combination.architecture in row.architectures for row in rows)
    return bool(rows and combination.architecture) and not named


def row_applies(one: Combination, row: CompatibilityRow) -> bool:
    """True if the row applies to the combination."""
    return (
        row.chip in ("*", one.chip)
        and (not row.engines or one.engine in row.engines)
        and (not row.architectures or one.architecture in row.architectures)
        and (not row.formats or bool(one.formats & set(row.formats)))
        and within(one.engine, one.version, row.versions)
        and within("nodes", str(one.nodes), row.nodes)
        and _found(row.image, one.image)
        and _found(row.model, one.model)
        and _given(one, row)
    )


def _given(one: Combination, row: CompatibilityRow) -> bool:
    """Flags, variables, type of the KV cache, way of drafting, the pull request that an image is built from."""
    return (
        all(_one_of(values, one.flag(name)) for name, values in row.flags.items())
        and all(_one_of(values, one.env.get(name, "")) for name, values in row.env.items())
        and _one_of(row.kv, one.kv)
        and _one_of(row.drafts, one.drafts)
        and row.pull_request in (0, *one.pull_requests)
    )


def _one_of(values: Iterable[str], value: str) -> bool:
    wanted = [text.lower() for text in values]
    return not wanted or value.lower() in wanted or (bool(value) and "*" in wanted)


def _found(pattern: str, text: str) -> bool:
    return not pattern or re.search(pattern, text, re.IGNORECASE) is not None


def rows_with(context: Context, verdict: str) -> Iterator[tuple[Combination, CompatibilityRow]]:
    """The rows of that verdict that the recipe meets; none for a refused recipe (REC001)."""
    asked = combination(context)
    if asked and asked.recipe.state is not RecipeState.REFUSED:
        yield from ((asked, row) for row in known_of(asked) if row.verdict == verdict)


def describe_combination(asked: Combination) -> str:
    """`sglang 0.5.12 with DeepseekV4ForCausalLM (fp8, mxfp4) on sm_121`."""
    formats = f" ({', '.join(sorted(asked.formats))})" if asked.formats else ""
    return f"{asked.engine} {asked.version} with {asked.architecture or asked.model}{formats} on {asked.chip}"


def row_text(row: CompatibilityRow) -> str:
    """The reason, the other side where there is one, and who reports it."""
    other = f"; other side: {row.otherwise}" if row.otherwise else ""
    return f"{row.reason}{other} [{row.source}, {row.date}]"
