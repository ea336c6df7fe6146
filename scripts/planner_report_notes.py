"""Hand-written explanations of rows beyond their limit (planner_report_notes.yaml), found by row and quantity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import yaml
from planner_report_answers import Answer

FILE = Path(__file__).with_name("planner_report_notes.yaml")


@dataclass(frozen=True, slots=True)
class Note:
    """rows: ids, `*` allowed. of: quantities. contradicts: the data contradict themselves or lack a condition that
    decides; such a figure is shown and left out of the figures that targets are compared with."""

    rows: tuple[str, ...]
    of: tuple[str, ...]
    why: str
    contradicts: bool = False

    def about(self, answer: Answer) -> bool:
        return answer.quantity in self.of and any(fnmatchcase(answer.id, row) for row in self.rows)


def load_notes(path: Path = FILE) -> tuple[Note, ...]:
    """Raises KeyError or TypeError on an entry of another form."""
    listed = (yaml.safe_load(path.read_text()) or []) if path.exists() else []
    return tuple(
        Note(tuple(one["rows"]), tuple(one["of"]), " ".join(one["why"].split()), one.get("contradicts", False))
        for one in listed
    )


def note(notes: Sequence[Note], answer: Answer) -> Note | None:
    return next((one for one in notes if one.about(answer)), None)


def judged(notes: Sequence[Note], answers: Sequence[Answer]) -> list[Answer]:
    """Without those whose row contradicts itself on that quantity."""
    found = ((a, note(notes, a)) for a in answers)
    return [a for a, said in found if said is None or not said.contradicts]
