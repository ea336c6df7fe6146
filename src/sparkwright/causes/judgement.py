"""The last judgement over the lines of a log: which of them are failures, and which are only worth a note.

| the line is printed by                      | a sign of a cause in it   | an error without one      | a stated end |
|---------------------------------------------|---------------------------|---------------------------|--------------|
| an engine, its libraries or launcher, Caddy | failure                   | failure                   | failure      |
| a kernel                                    | failure                   | note                      | failure      |
| another program, as a plain line            | failure, if it stopped    | failure, if it stopped    | failure      |
| another program, as a record with its time  | failure, if it stopped    | note, but before an end   | failure      |

Information, warnings and hints are notes everywhere. So is what stands before readiness, success or a retry
(causes/state.py). A program stopped unless ordinary lines follow; a stated end behind the line counts more than those.
"""

import re
from collections.abc import Mapping, Sequence, Set
from functools import cached_property

from sparkwright.causes.candidates import has_bad_word, is_exception, line_pattern, split_prefix
from sparkwright.causes.evidence import is_quiet
from sparkwright.domain.diagnosis import Proof

_WORK = 3  # ordinary lines behind a complaint: the program went on
_HEAD = 60  # characters in which a record's time or level stands
_LETTER = re.compile(r"[^\W\d_]")
_OF_A_RANK = re.compile(r"rank \d")  # our name of a source: an engine's, whatever it prints


class SourceOutcome:
    """The outcome of one source: whose lines they are, and whether its program went on after one of them.

    lines: those that were kept, as (number, text); tail: the last ones; stated: an end is stated elsewhere, by the node
    or the supervisor.
    """

    def __init__(self, name: str, lines: Sequence[tuple[int, str]], tail: Sequence[Proof], stated: bool) -> None:
        self._name, self._lines, self._tail, self._stated = name, lines, tail, stated
        self._left_out: Set[int] = frozenset()

    def leave_out(self, numbers: Set[int]) -> None:
        """Take these lines for a listing: a name or an amount there is no failure."""
        self._left_out = numbers

    @cached_property
    def is_known(self) -> bool:
        """True if an engine, its libraries, its launcher or the gateway prints it: each of their errors counts."""
        of_a_rank = _OF_A_RANK.match(self._name) is not None
        return of_a_rank or any(line_pattern("engine").search(text) for _, text in self._lines)

    @cached_property
    def _end(self) -> int:
        """The last line that states an end, 0 for none."""
        found = (number for number, text in self._lines if is_stated_end(text))
        later = (line.number for line in self._tail if is_stated_end(line.text))
        return max((*found, *later), default=0)

    @cached_property
    def _work(self) -> tuple[tuple[int, int], ...]:
        """The ordinary lines among the last ones, as (number, indentation)."""
        texts = ((line.number, self._kept.get(line.number, line.text)) for line in self._tail)
        return tuple((number, _indentation(text)) for number, text in texts if _is_ordinary(text))

    @cached_property
    def _kept(self) -> dict[int, str]:
        return dict(self._lines)

    def goes_on_after(self, number: int) -> bool:
        """True if the program went on after that line, and nothing behind it says that it ended badly.

        Lines that are indented more than it belong to it.
        """
        if self._stated or self._end >= number:
            return False
        depth = _indentation(self._kept.get(number, ""))
        return sum(later > number and indented <= depth for later, indented in self._work) >= _WORK

    def has_failure(self, number: int, text: str, signed: bool) -> bool:
        """True if the line is a failure by the table above. signed: a sign of a cause is in it."""
        if is_quiet(text) or number in self._left_out:
            return False
        if self.is_known or is_stated_end(text):
            return True
        if line_pattern("kernel").search(text):
            return signed
        if self.goes_on_after(number):
            return False
        return signed or self._end >= number or not _is_record(text) or is_exception(split_prefix(text)[1])


def is_stated_end(text: str) -> bool:
    """True if the line says that a process, a build, a unit or a machine ended badly."""
    return line_pattern("ends").search(text) is not None


def _is_ordinary(text: str) -> bool:
    """True for a line of work: it says something, and neither complains nor is part of a traceback."""
    if not _LETTER.search(text) or line_pattern("frame").search(text):
        return False
    return not (has_bad_word(text) or is_stated_end(text))


def _indentation(text: str) -> int:
    return len(text) - len(text.lstrip())


def _is_record(text: str) -> bool:
    """True if a line reports an event of a program that keeps a log: it has a time or a level of a log's form."""
    return line_pattern("record").search(text[:_HEAD]) is not None


def has_failure(outcomes: Mapping[str, SourceOutcome], proof: Proof) -> bool:
    """True if a line with a sign of a cause is a failure; what the supervisor and the kernel were asked always is."""
    of_source = outcomes.get(proof.source)
    return of_source.has_failure(proof.number, proof.text, True) if of_source else not is_quiet(proof.text)
