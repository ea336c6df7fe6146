"""The table of splits in `plan`; the whole of it is saved in tests/data/plans/splits.txt (UPDATE_PLANS=1)."""

import os
from dataclasses import asdict
from pathlib import Path

from sparkwright.cli.plan_outlook import advice_text
from sparkwright.domain.plan import Advice, Split
from sparkwright.domain.recipe import Parallelism
from sparkwright.planner.parallelism import advise
from unit.planner.test_parallelism import MINIMAX, NARROW, recipe

KEPT = Path(__file__).parents[2] / "data" / "plans" / "splits.txt"


def test_the_table() -> None:
    """Guards what the user compares: own split marked, figures aligned, reasons where one is impossible."""
    text = "\n\n".join(advice_text(advise(made, {})) for made in (recipe(MINIMAX, 2), recipe(NARROW, 2))) + "\n"
    if os.environ.get("UPDATE_PLANS"):
        KEPT.write_text(text)
    assert text == KEPT.read_text()


def test_nothing_to_choose_is_no_table() -> None:
    """Guards short plans: one node, or a model of which nothing is known."""
    assert advice_text(advise(recipe(MINIMAX, 1), {})) == ""
    assert advice_text(advise(recipe(None, 2), {})) == ""


def test_what_is_not_known_is_written_down() -> None:
    """Guards that a missing dimension is named under the table."""
    text = advice_text(Advice("x", splits=(Split(Parallelism(2)), Split(Parallelism(1, 2))), why="nothing says vocab"))
    assert text.count("not known") == 2 and text.endswith("nothing says vocab")


def test_machines_get_the_same() -> None:
    """Guards the JSON: the recipe's own split first, bytes and seconds as numbers."""
    first = asdict(advise(recipe(MINIMAX, 2), {}))["splits"][0]
    assert first["parallelism"] == {"tp": 2, "pp": 1, "dp": 1, "ep": False}
    assert first["cost"]["collectives"] == 124 and len(first["cost"]["step"]) == 2
