"""The score that the in-sample one hides: answers without the signatures that only one case supports, to logs that were
changed a little, and to logs of engines that serve."""

from __future__ import annotations

import random
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from unittest.mock import patch

from diagnose_report_cases import ROOT, YEAR, DiagnoseCase, Named, answer, name_causes

from sparkwright.app.diagnose.examine import examine
from sparkwright.causes.cause import LogCause
from sparkwright.causes.diagnose import Reader, diagnosis, line_causes, log_book, with_explanation
from sparkwright.causes.explanation import reason
from sparkwright.causes.similarity import CauseIndex, words_of
from sparkwright.domain.diagnosis import LogSource
from sparkwright.logscan.book import Signed
from sparkwright.logscan.logline import Excerpt
from sparkwright.logscan.matcher import Hit
from sparkwright.logscan.sign import Story

DROPPED = 0.1
COLUMNS = 80
ALIKE = 0.5  # of the words of an example: with more in the log it is the same report
CAPTURES = ROOT.parent / "shared" / "captures"
ERROR = re.compile(
    r"error|exception|fail|fatal|cannot|could not|unable|refused|denied|killed|not found|timed? ?out|warn", re.I
)
# Of recordings of engines that serve, by the beginning of their names: all others failed, or were made to.
SERVES = ("b-", "m2-", "s-ngram", "sg-a", "sg-b", "sg-m2-worker", "t-agent", "v4-")


@dataclass(frozen=True, slots=True)
class Without:
    """A reader in which some signatures count as not there."""

    reader: Reader
    left_out: frozenset[Signed]

    @property
    def name(self) -> str:
        return self.reader.name

    @property
    def year(self) -> int:
        return self.reader.year

    @property
    def excerpt(self) -> Excerpt:
        return self.reader.excerpt

    @property
    def hits(self) -> tuple[Hit, ...]:
        return tuple(hit for hit in self.reader.hits if hit.signed not in self.left_out)

    @property
    def answered(self) -> int:
        return self.reader.answered

    def story(self) -> Story:
        return self.reader.story()

    def source(self, shift: float = 0.0) -> LogSource:
        return self.reader.source(shift)


def left_one_out(cases: Sequence[DiagnoseCase]) -> list[Named]:
    """Each case answered without the signatures that match no other of the cases, and without what they alone show."""
    readers = [_read(case) for case in cases]
    support = Counter(hit.signed for reader in readers for hit in reader.hits)
    alone = [frozenset(hit.signed for hit in reader.hits if support[hit.signed] == 1) for reader in readers]
    return [_answered_without(case, reader, mine) for case, reader, mine in zip(cases, readers, alone, strict=True)]


def _answered_without(case: DiagnoseCase, reader: Reader, mine: frozenset[Signed]) -> Named:
    """Neither their letters nor the examples that they alone match, or that resemble the case, are compared with it."""
    causes = [_without(cause, mine, case.log) if cause.key == case.key else cause for cause in line_causes().values()]
    less = Without(reader, mine)
    with patch("sparkwright.causes.diagnose.cause_index", lambda: CauseIndex(causes)):
        return answer(case, with_explanation(diagnosis([less], {}), [less], {}, described=True))  # type: ignore[list-item]


def _without(cause: LogCause, mine: frozenset[Signed], log: str) -> LogCause:
    gone = {signed.sign for signed in mine}
    signatures = tuple(sign for sign in cause.signatures if sign not in gone)
    asked = set(words_of(log))
    other = (text for text in cause.fires if not gone or any(hit.signed not in mine for hit in _example(cause, text)))
    fires = tuple(text for text in other if len(asked & set(words_of(text))) <= ALIKE * len(set(words_of(text))))
    return replace(cause, signatures=signatures, fires=fires)


@cache
def _example(cause: LogCause, text: str) -> tuple[Hit, ...]:
    return tuple(hit for hit in _of(text).hits if hit.signed.code == cause.code)


def _read(case: DiagnoseCase) -> Reader:
    return _of(case.log, case.id)


def _of(text: str, name: str = "example") -> Reader:
    reader = Reader(log_book(), name, YEAR)
    reader.feed(text.encode("utf-8", "replace"))
    reader.close()
    return reader


def _dropped(case: DiagnoseCase) -> str:
    dice = random.Random(case.id)
    return "".join(part for part in re.split(r"(\s+)", case.log) if part.isspace() or dice.random() >= DROPPED)


def _bare(case: DiagnoseCase) -> str:
    return re.sub(r"[\"'`\u2018\u2019\u201c\u201d()\[\]{}<>]", "", case.log)


def _wrapped(case: DiagnoseCase) -> str:
    lines = case.log.splitlines()
    return "\n".join(part for line in lines for part in (textwrap.wrap(line, COLUMNS) or [""]))


def _last_error(case: DiagnoseCase) -> str:
    """The last line that reports an error by its words; the last line of all where none does."""
    lines = [line for line in case.log.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if ERROR.search(line)), lines[-1] if lines else "")


CHANGES: Mapping[str, Callable[[DiagnoseCase], str]] = {
    f"{DROPPED:.0%} of the words dropped": _dropped,
    "no quotes, no brackets": _bare,
    f"wrapped at {COLUMNS} columns": _wrapped,
    "the last error line alone": _last_error,
}


def changed(cases: Sequence[DiagnoseCase]) -> dict[str, list[Named]]:
    """The answers by change; each belongs to the case as it was."""
    return {
        title: [replace(name_causes(replace(case, log=change(case)), False), case=case) for case in cases]
        for title, change in CHANGES.items()
    }


def explained_lines(cases: Sequence[DiagnoseCase]) -> tuple[int, int]:
    """(logs whose explaining line is one that the true cause rests on, logs) of programs' output with a proof."""
    right = number = 0
    for case in cases:
        raw = case.log.encode("utf-8", "replace")
        found = examine([(case.id, [raw])], YEAR, {})
        proof = {line.number for one in found.causes if one.key == case.key for line in one.proof}
        if case.kind in ("prose", "metric") or not proof:
            continue
        why = reason({case.id: enumerate(raw.split(b"\n"), 1)}, YEAR, {}).why
        number, right = number + 1, right + bool(why and why.line.number in proof)
    return right, number


def serving() -> dict[str, tuple[str, ...]]:
    """The causes named in recordings of engines that serve, by file: none would be right. Empty without recordings."""
    files = [path for path in sorted(CAPTURES.glob("*/*.log")) if path.name.startswith(SERVES)]
    return {path.stem: _causes(path) for path in files}


def _causes(path: Path) -> tuple[str, ...]:
    found = examine([(path.name, [path.read_bytes()])], YEAR, {})
    return tuple(f"{cause.key} {cause.confidence:.2f}" for cause in found.causes)
