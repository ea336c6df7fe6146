"""Hand-written explanations of rows beyond their limit (planner_report_notes.yaml), found by row and quantity."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml
from planner_report_answers import PlannerAnswer

_SIGNS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
_ROUNDED = 0.005
FILE = Path(__file__).with_name("planner_report_notes.yaml")


@dataclass(frozen=True, slots=True)
class Note:
    """rows: ids, `*` allowed. of: quantities. contradicts: the data contradict themselves, as the arithmetic in `shows`
    proves for rows that are named one by one; such a figure is left out of the figures that targets are compared with.
    """

    rows: tuple[str, ...]
    of: tuple[str, ...]
    why: str
    contradicts: bool = False
    shows: tuple[str, ...] = ()

    def about(self, answer: PlannerAnswer) -> bool:
        return answer.quantity in self.of and any(fnmatchcase(answer.id, row) for row in self.rows)


def load_notes(path: Path = FILE) -> tuple[Note, ...]:
    """Raises KeyError or TypeError on an entry of another form, ValueError on an excuse that its arithmetic lacks."""
    listed = (yaml.safe_load(path.read_text()) or []) if path.exists() else []
    return tuple(_note(one) for one in listed)


def _note(one: Mapping[str, Any]) -> Note:
    shows = tuple(one.get("shows", ()))
    made = Note(tuple(one["rows"]), tuple(one["of"]), " ".join(one["why"].split()), "contradicts" in one, shows)
    if made.contradicts and (not shows or any("*" in row for row in made.rows)):
        raise ValueError(f"{made.rows[0]}: an excuse names its rows one by one and shows its arithmetic")
    for line in shows:
        found, said = computed(line)
        if abs(found - said) > _ROUNDED * abs(said):
            raise ValueError(f"{made.rows[0]}: {line}: it is {found:.6g}")
    return made


def computed(line: str) -> tuple[float, float]:
    """`2 * GIB / 3 = 715827883` -> values of the left and the right side. Raises ValueError."""
    left, _, right = line.rpartition(" = ")
    return _value(ast.parse(left, mode="eval").body), float(right)


def _value(node: ast.expr) -> float:
    if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
        return _SIGNS[type(node.op)](_value(node.left), _value(node.right))
    if isinstance(node, ast.Name) and node.id == "GIB":
        return float(1 << 30)
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    raise ValueError(f"only numbers, GIB and + - * / are read: {ast.unparse(node)}")


def note_about(notes: Sequence[Note], answer: PlannerAnswer) -> Note | None:
    return next((one for one in notes if one.about(answer)), None)


def judged(notes: Sequence[Note], answers: Sequence[PlannerAnswer]) -> list[PlannerAnswer]:
    """The answers without those whose row contradicts itself on that quantity."""
    found = ((a, note_about(notes, a)) for a in answers)
    return [a for a, said in found if said is None or not said.contradicts]
