"""The last judgement over the lines of a log: which of them are failures, and which are only worth a note.

| the line is printed by                      | a sign of a cause in it   | an error without one      | a stated end |
|---------------------------------------------|---------------------------|---------------------------|--------------|
| an engine, its libraries or launcher, Caddy | failure                   | failure                   | failure      |
| a kernel                                    | failure                   | note                      | failure      |
| another program, as a plain line            | failure, if it stopped    | failure, if it stopped    | failure      |
| another program, as a record with its time  | failure, if it stopped    | note, but before an end   | failure      |

Information, warnings and hints are notes everywhere. So is what is no message (causes/passages.py), and what stands
before readiness, success or a retry (causes/state.py). A program stopped unless ordinary lines follow; a stated end
behind the line counts more than those.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property

from sparkwright.causes.candidates import has_bad_word, is_exception, is_line, line_pattern, split_prefix
from sparkwright.causes.evidence import is_quiet
from sparkwright.causes.passages import indentation, is_record, passages, table_rows
from sparkwright.domain.diagnosis import Proof

_FEW = 12  # lines
_WORK = 3  # ordinary lines behind a complaint: the program went on
_NEAR = 3  # lines around a program's usage in which a complaint makes it an end
_VARIES = re.compile(r"(?:/[\w.@:+-]{1,80}){1,12}/?|'[^']{1,80}'|\"[^\"]{1,80}\"|\d+")
_LETTER = re.compile(r"[^\W\d_]")
_OF_A_RANK = re.compile(r"rank \d")  # our name of a source: an engine's, whatever it prints


class SourceOutcome:
    """The outcome of one source: whose lines they are, and whether its program went on after one of them.

    lines: those that were kept, as (number, text); tail: the last ones; stated: an end is stated elsewhere, by the node
    or the supervisor.
    """

    def __init__(self, name: str, lines: Sequence[tuple[int, str]], tail: Sequence[Proof], stated: bool) -> None:
        self._name, self._lines, self._tail, self._stated = name, lines, tail, stated
        self._passages = passages(lines)
        self._left_out: Set[int] = self._passages

    @cached_property
    def _given_rows(self) -> Set[int]:
        """The rows of a few lines: somebody gave that table for what it states."""
        return table_rows(self._lines) if len(self._lines) <= _FEW else frozenset()

    @cached_property
    def without_signs(self) -> Set[int]:
        """The lines that are no messages and no rows either: no sign of a cause counts there."""
        return self._passages - table_rows(self._lines)

    @property
    def passages(self) -> Set[int]:
        """The lines that are no messages."""
        return self._passages

    def leave_out(self, rows: Set[int], bad: Set[int]) -> None:
        """Take these rows of tables for a listing: a name or an amount there is no failure, but where it is bad."""
        self._left_out = (self._passages | rows) - bad

    @cached_property
    def is_known(self) -> bool:
        """True if an engine, its libraries, its launcher or the gateway prints it: each of their errors counts."""
        of_a_rank = _OF_A_RANK.match(self._name) is not None
        return of_a_rank or any(is_line("engine", text) for _, text in self._messages())

    def _messages(self) -> Iterable[tuple[int, str]]:
        return (line for line in self._lines if line[0] not in self._passages)

    @cached_property
    def _end(self) -> int:
        """The last line that states an end, 0 for none."""
        found = (number for number, text in self._messages() if is_stated_end(text))
        later = (line.number for line in self._tail if is_stated_end(line.text) and line.number not in self._passages)
        return max((*found, *later, *self._refusals()), default=0)

    @cached_property
    def _unit_end(self) -> int:
        """The last line by which a service manager states that a unit ended badly, 0 where work follows it."""
        texts = {**dict(self._messages()), **{line.number: line.text for line in self._tail}}
        last = max((number for number, text in texts.items() if line_pattern("unit_ends").search(text)), default=0)
        return last if sum(later > last for later, _ in self._work) < _WORK else 0

    def is_of_a_failed_unit(self, number: int) -> bool:
        """True if a unit ended badly behind that line."""
        return self._unit_end >= number

    def _refusals(self) -> Iterable[int]:
        """The lines at which a program shows its usage for a complaint about what it was called with."""
        lines = tuple(self._messages())
        shown = (at for at, (_, text) in enumerate(lines) if line_pattern("usage").search(text))
        near = ((lines[at][0], lines[max(0, at - _NEAR) : at + _NEAR + 1]) for at in shown)
        return (number for number, around in near if any(has_bad_word(text) for _, text in around))

    @cached_property
    def _asked(self) -> int:
        """The last line by which somebody asked the program to stop, 0 for none."""
        return max((number for number, text in self._messages() if line_pattern("asked").search(text)), default=0)

    def _survived(self, number: int) -> bool:
        """True if it printed a line of that form before, and ordinary ones after it."""
        first = self._forms.get(_form(self._kept.get(number, "")), number)
        return bisect_left(self._ordinary, number) - bisect_left(self._ordinary, first) >= _WORK

    @cached_property
    def _forms(self) -> dict[str, int]:
        """The first line of each form."""
        found: dict[str, int] = {}
        for number, text in self._lines:
            found.setdefault(_form(text), number)
        return found

    @cached_property
    def _ordinary(self) -> list[int]:
        return sorted(number for number, text in self._messages() if _is_ordinary(text))

    @cached_property
    def _work(self) -> tuple[tuple[int, int], ...]:
        """The ordinary lines among the last ones, as (number, indentation)."""
        texts = ((line.number, self._kept.get(line.number, line.text)) for line in self._tail)
        return tuple((number, _depth(text)) for number, text in texts if _is_ordinary(text))

    @cached_property
    def _kept(self) -> dict[int, str]:
        return dict(self._lines)

    def goes_on_after(self, number: int) -> bool:
        """True if the program went on after that line, or after an earlier one of its form, or until somebody asked it
        to stop, and nothing behind it says that it ended badly.

        Lines that are indented more than it belong to it, as do the next ones behind an exception that ends with a
        colon.
        """
        if self._stated or self._end >= number:
            return False
        if self._asked > number or self._survived(number):
            return True
        text = self._kept.get(number, "")
        its = _FEW if text.rstrip().endswith(":") and is_exception(split_prefix(text)[1].lstrip()) else 0
        depth = _depth(text)
        return sum(later > number + its and indented <= depth for later, indented in self._work) >= _WORK

    def has_failure(self, number: int, text: str, signed: bool) -> bool:
        """True if the line is a failure by the table above. signed: a sign of a cause is in it."""
        if is_quiet(text) or (number in self._left_out and not (signed and number in self._given_rows)):
            return False
        if self.is_known or is_stated_end(text):
            return True
        if line_pattern("kernel").search(text):
            return signed
        if self.goes_on_after(number):
            return False
        is_raised = line_pattern("raised").match(split_prefix(text)[1].lstrip()) is not None
        return signed or self._end >= number or not is_record(text) or is_raised


def is_stated_end(text: str) -> bool:
    """True if the line says that a process, a build, a unit or a machine ended badly."""
    return is_line("ends", text)


def is_loud(proof: Proof) -> bool:
    """True if the line is an error by its level or its form, and not only by what it says."""
    level = line_pattern("level").search(proof.text)
    return bool(level and level["bad"]) or is_exception(split_prefix(proof.text)[1]) or is_stated_end(proof.text)


def telling(proofs: Sequence[Proof]) -> Sequence[Proof]:
    """The lines that decide whether a sign of several lines is a failure: those that report something bad, if any."""
    return [one for one in proofs if has_bad_word(one.text) or is_stated_end(one.text)] or proofs


def _depth(text: str) -> int:
    """The indentation of what a line says, behind the name of its container."""
    return indentation(text if text[:1].isspace() else split_prefix(text)[1])


def _form(text: str) -> str:
    """The line without what differs each time: its time, numbers, paths and names in quotes."""
    return _VARIES.sub("", split_prefix(text)[1])


def _is_ordinary(text: str) -> bool:
    """True for a line of work: it says something, and neither complains nor is part of a traceback."""
    body = split_prefix(text)[1]
    if not _LETTER.search(body) or line_pattern("frame").search(body):
        return False
    return not (has_bad_word(text) or is_stated_end(text))


def has_failure(outcomes: Mapping[str, SourceOutcome], proof: Proof) -> bool:
    """True if a line with a sign of a cause is a failure; what the supervisor and the kernel were asked always is."""
    of_source = outcomes.get(proof.source)
    return of_source.has_failure(proof.number, proof.text, True) if of_source else not is_quiet(proof.text)
