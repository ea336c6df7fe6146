"""A cause that logs show, and the causes that only a whole log shows."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from sparkwright.domain.diagnosis import Proof
from sparkwright.domain.finding import Severity
from sparkwright.domain.values import dataclass, field
from sparkwright.logscan.book import Book, Needs
from sparkwright.logscan.sign import Sign, Story, TableRows


@dataclass(frozen=True, slots=True)
class LogCause:
    """One cause, as its family's file has it. Severity INFO: harmless lines, never blamed.

    fix: `{name}` takes a group of the signature that matched or a word about the cluster, `{{` is a brace; see: URLs.
    consequences: keys of causes that only follow from this one. fires: logs whose first cause this is; silent: others'.
    """

    code: str
    key: str
    title: str
    severity: Severity
    why: str
    fix: tuple[str, ...] = ()
    see: tuple[str, ...] = ()
    consequences: tuple[str, ...] = ()
    signatures: tuple[Sign, ...] = ()
    fires: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    status: str = "stable"


@dataclass(frozen=True, slots=True)
class RuleVerdict:
    """The conclusion of a whole-log rule: its confidence, and its lines."""

    sure: float
    proof: tuple[Proof, ...]


@dataclass(frozen=True, slots=True)
class WholeLogRule:
    """A cause that no single line shows; its texts: whole_log/causes.toml. judge: reads all sources; never raises.

    MARKS: name -> pattern, the same in all rules; ROWS: name -> rows, counted as marks.
    """

    code: str
    judge: Callable[[tuple[Story, ...]], Iterable[RuleVerdict]]
    MARKS: Mapping[str, str] = field(default_factory=dict)
    ROWS: Mapping[str, TableRows] = field(default_factory=dict)


def book_of(
    causes: Iterable[LogCause],
    rules: Sequence[WholeLogRule] = (),
    once: Mapping[str, str] | None = None,
    needs: Mapping[str, Needs] | None = None,
) -> Book:
    """The book of all signs of the causes, and the marks whose first line alone counts."""
    marks = {name: pattern for rule in rules for name, pattern in rule.MARKS.items()}
    rows = {name: row for rule in rules for name, row in rule.ROWS.items()}
    return Book([(c.code, sign) for c in causes for sign in c.signatures], marks, rows, once or {}, needs or {})
