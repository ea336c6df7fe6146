"""Levels and widths are fitted without the rows that they are then compared with."""

import json
from pathlib import Path

import planner_report_folds as folds
import pytest
from planner_report_answers import PlannerAnswer
from planner_report_notes import computed, load_notes
from planner_report_rows import PlannerCase, load

from unit.planner.report_samples import FACTS, published_row


def load_cases(folder: Path) -> tuple[PlannerCase, ...]:
    (folder / "models.jsonl").write_text(json.dumps(FACTS))
    rows = [published_row(id=name, source=f"github {name}/runs x") for name in "abcdefghijkl"]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return load(folder / "rows.jsonl")


def answer(name: str, published: float, quantity: str = "decode_tps") -> PlannerAnswer:
    return PlannerAnswer(name, quantity, "GQA, MHA", published, 100.0, 50.0, 200.0)


def test_a_level_follows_the_other_sources(tmp_path: Path) -> None:
    """The level rises if two of the others have twice and the left-out row alone holds the median down."""
    published = {"a": 100.0, "b": 100.0, "c": 200.0, "d": 200.0}
    found = folds.left_out(load_cases(tmp_path), [answer(name, it) for name, it in published.items()], folds.by_source)
    assert found[0].predicted == pytest.approx(100.0 * 2**0.5)


def test_a_width_is_that_of_the_others(tmp_path: Path) -> None:
    """Eleven others within a tenth give ranges of a tenth, and the left-out row at nearly twice is outside.

    Of four sources nobody sees what one in ten does: no range is narrowed for them.
    """
    given = [*(answer(name, 110.0) for name in "abcdefghijk"), answer("l", 190.0)]
    found = folds.left_out(load_cases(tmp_path), given, folds.by_source)
    assert found[-1].inside is False and given[-1].inside is True
    few = folds.left_out(load_cases(tmp_path), [*given[:3], given[-1]], folds.by_source)
    assert few[-1].inside is True


def test_a_source_with_many_rows_is_one_source(tmp_path: Path) -> None:
    """Guards that eight rows of one machine do not set the level of all others."""
    many = [published_row(id=f"z{n}", source="github z/runs") for n in range(8)]
    (tmp_path / "models.jsonl").write_text(json.dumps(FACTS))
    rows = [*(published_row(id=name, source=f"github {name}/runs") for name in "abc"), *many]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    given = [*(answer(name, 100.0) for name in "abc"), *(answer(f"z{n}", 200.0) for n in range(8))]
    found = folds.left_out(load(tmp_path / "rows.jsonl"), given, folds.by_source)
    assert [one.predicted for one in found[:3]] == pytest.approx([100.0] * 3)


def test_counts_of_tokens_have_nothing_to_fit(tmp_path: Path) -> None:
    """They follow from code and dimensions: they stay as they are."""
    given = [answer(name, 150.0, "kv_tokens_given_gib") for name in "abcd"]
    assert folds.left_out(load_cases(tmp_path), given, folds.by_model) == given


@pytest.mark.parametrize("text", ["2 ** 8 = 256", "x * 2 = 4", "open('f') = 1"])
def test_an_excuse_is_plain_arithmetic(text: str) -> None:
    """Anything but numbers is refused."""
    with pytest.raises(ValueError, match="only numbers"):
        computed(text)


def test_an_excuse_has_to_be_right(tmp_path: Path) -> None:
    """No wildcard, no excuse without arithmetic, none whose arithmetic is wrong."""
    good = {"rows": ["a"], "of": ["fits"], "why": "own figures", "contradicts": True, "shows": ["2 * GIB = 2147483648"]}
    file = tmp_path / "notes.yaml"
    for change, said in (
        ({"rows": ["a-*"]}, "one by one"),
        ({"shows": []}, "one by one"),
        ({"shows": ["2*2 = 5"]}, "4"),
    ):
        file.write_text(json.dumps([good | change]))
        with pytest.raises(ValueError, match=said):
            load_notes(file)
    file.write_text(json.dumps([good]))
    assert load_notes(file)[0].contradicts
