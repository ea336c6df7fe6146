"""The compatibility table as it is written: one YAML file per engine in data/, checked when it is read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from sparkwright.domain.codec import from_tree
from sparkwright.engines.version import bounds

VERDICTS = ("works", "blocked", "degraded", "unknown")
_DATE = re.compile(r"20\d\d-[01]\d(-[0-3]\d)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
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
class Table:
    """A file. vLLM's is also of vLLM on Ray: `engines` of a row distinguishes them."""

    engine: str
    rows: tuple[Row, ...]


def table(tree: Mapping[str, Any]) -> Table:
    """Of a file whose values are texts, lists and mappings. Raises ValueError."""
    return Table(tree["engine"], tuple(map(row, tree["rows"])))


def row(tree: Mapping[str, Any]) -> Row:
    """Raises ValueError, also for a key that no row has."""
    if unknown := sorted(set(tree) - {one.name for one in fields(Row)}):
        raise ValueError(f"no row has {', '.join(unknown)}")
    return from_tree(Row, {**tree, "pull_request": int(tree.get("pull_request", 0))})
