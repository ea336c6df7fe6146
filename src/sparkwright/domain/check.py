"""A check: its row in a family's CHECKS table, the context that it reads, and what it finds."""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypedDict, Unpack

from sparkwright.domain.checkpoint import Checkpoint, Published
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.fabric_facts import DeepMeasurements
from sparkwright.domain.facts import NodeFacts, Unknown
from sparkwright.domain.finding import Finding, Fix, Severity
from sparkwright.domain.ledger import MemoryLedger
from sparkwright.domain.plan import Advice, RankSpec
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.service import GatewayFacts
from sparkwright.domain.values import dataclass, field, fields, replace


@dataclass(frozen=True, slots=True)
class Context:
    """Everything known when checks run. facts and checkpoints: by node name, only of nodes that answered.

    images: node -> bytes of the image as the daemon knows it, 0 when it is absent; no entry: not asked. published: what
    the hub has of a model that no node has, where the plan was made with it.
    measured: by `check --deep`. gateway: where a gateway is made ready, nowhere else.
    `check` without a recipe has only cluster and facts; `plan` and `up` have everything.
    """

    cluster: Cluster
    facts: Mapping[str, NodeFacts] = field(default_factory=dict)
    recipe: Recipe | None = None
    deployment: str = ""
    specs: tuple[RankSpec, ...] = ()
    ledgers: tuple[MemoryLedger, ...] = ()
    checkpoints: Mapping[str, Checkpoint | Unknown] = field(default_factory=dict)
    images: Mapping[str, int] = field(default_factory=dict)
    advice: Advice | None = None
    published: Published | None = None
    measured: DeepMeasurements | None = None
    gateway: GatewayFacts | None = None
    beside: tuple[str, ...] = ()  # other deployments that may run on the same nodes

    def facts_of(self, spec: RankSpec) -> NodeFacts | None:
        return self.facts.get(spec.node)


@dataclass(frozen=True, slots=True)
class Found:
    """One defect as a check function yields it; what it leaves out is taken from the check's row.

    evidence: the line or figure that proves it. subject: filled in by `per_node`. fix: the command for this case.
    repair: the change that `check --fix` makes.
    """

    evidence: str = ""
    title: str | None = None
    cause: str | None = None
    fix: str | None = None
    severity: Severity | None = None
    subject: str = ""
    repair: Fix | None = None


def _nothing(context: Context) -> Iterable[Found]:
    return ()


class FindingFields(TypedDict, total=False):
    """The optional arguments of `on`; the docstring of Found has their meanings."""

    title: str
    cause: str
    fix: str
    severity: Severity
    repair: Fix | None


@dataclass(frozen=True, slots=True)
class CheckTexts:
    """The texts of a code, from its table in the TOML file.

    detects, why, see (URLs): for `explain`. cause, fix: what findings have that give none of their own; `{node}`
    is the finding's subject. status: `stable` or `preview`.
    """

    detects: str
    why: str = ""
    cause: str = ""
    fix: str = ""
    see: tuple[str, ...] = ()
    status: str = "stable"


@dataclass(frozen=True, slots=True)
class Check:
    """One row of a CHECKS table: a code, and the function that finds the defect.

    find: left out where planner, engines or supervision find it while they work. It never raises, whatever the context
    lacks. source: the TOML file with the code's texts.
    """

    code: str
    severity: Severity
    title: str
    find: Callable[[Context], Iterable[Found]] = _nothing
    source: Path = Path()

    @property
    def texts(self) -> CheckTexts:
        """Read when a finding or `explain` first needs the family. Raises ValueError: `FILE:LINE: what is wrong`."""
        return texts_of(self.source)[self.code]

    def on(self, subject: str, evidence: str = "", **given: Unpack[FindingFields]) -> Finding:
        """The finding about that subject, for those that no check function makes."""
        return self.finding(Found(evidence, subject=subject, **given))

    def findings(self, context: Context) -> Iterator[Finding]:
        return map(self.finding, self.find(context))

    def finding(self, found: Found) -> Finding:
        texts = self.texts
        return Finding(
            self.code,
            found.severity or self.severity,
            found.subject,
            self.title if found.title is None else found.title,
            found.evidence,
            texts.cause if found.cause is None else found.cause,
            texts.fix.replace("{node}", found.subject) if found.fix is None else found.fix,
            found.repair,
        )


def explained(module: str, *checks: Check) -> tuple[Check, ...]:
    """A family's table. module: its Python file; the texts are in the TOML file of the same name."""
    source = Path(module).with_suffix(".toml")
    return tuple(replace(check, source=source) for check in checks)


@cache
def texts_of(source: Path) -> Mapping[str, CheckTexts]:
    """Code -> its texts, line breaks folded. Raises ValueError: `FILE:LINE: what is wrong`."""
    text = source.read_text(encoding="utf-8")
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        raise ValueError(f"{source.name}:{line[1] if line else text.count(chr(10))}: {error}") from None
    return {code: _texts(source.name, text, code, table) for code, table in tables.items()}


def _texts(name: str, text: str, code: str, table: Any) -> CheckTexts:
    start = text.find(f"[{code}]")
    known = {one.name: list if one.name == "see" else str for one in fields(CheckTexts)}
    wrong = [key for key, value in table.items() if type(value) is not known.get(key)] if type(table) is dict else [""]
    if wrong or not table.get("detects"):
        what = f"{code}: {wrong[0]!r} is unknown or of another type" if wrong else f"{code} has no detects"
        place = text.find(f"\n{wrong[0]} =", start) + 1 if wrong else start
        raise ValueError(f"{name}:{1 + text.count(chr(10), 0, place or start)}: {what}")
    texts: dict[str, Any] = {key: re.sub(r"\n *", " ", value) for key, value in table.items() if key != "see"}
    return CheckTexts(see=tuple(table.get("see", ())), **texts)


def by_code(checks: Iterable[Check]) -> Mapping[str, Check]:
    return {check.code: check for check in checks}
