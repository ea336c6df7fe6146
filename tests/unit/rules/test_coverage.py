"""docs/rules/coverage.md: every known fault of the nodes has its rule, and every rule of the nodes its place."""

import re
from pathlib import Path

from sparkwright.cli.explain_pages import pages
from sparkwright.rules.catalog import PREFLIGHT

PAGE = (Path(__file__).resolve().parents[3] / "docs/rules/coverage.md").read_text()
ROWS = re.findall(r"^\| (\S[^|]*?) \|(.*)\|$", PAGE, re.MULTILINE)
CODES = set(re.findall(r"\b(?:[A-Z]{3,})[0-9]{3}\b", PAGE))


def test_every_code_named_exists() -> None:
    """Guards that the page sends nobody to a rule that is not there."""
    assert not CODES - set(pages())


def test_every_rule_of_the_nodes_is_named() -> None:
    """Guards that a rule that is added is also said to be there."""
    assert {rule.CODE for rule in PREFLIGHT} <= CODES


def test_no_item_is_left_out() -> None:
    """Guards that every known failure of host and network has a row that names a rule or says why none does."""
    items = [item for item, _ in ROWS]
    assert [item for item in items if re.fullmatch(r"E[0-9]+", item)] == [f"E{n}" for n in range(1, 51)]
    for letter, last in (("A", 7), ("B", 6)):
        sections = {int(found[1]) for item in items if (found := re.match(rf"{letter}([0-9])\b", item))}
        assert sections == set(range(letter == "B", last + 1))
    for item, rest in ROWS[1:]:
        assert any(cell.strip() for cell in rest.split("|")[-2:]), item


def test_no_row_stands_twice() -> None:
    """Guards that an item is looked up in one place."""
    items = [item for item, _ in ROWS if item not in ("item", "---")]
    assert len(items) == len(set(items))
