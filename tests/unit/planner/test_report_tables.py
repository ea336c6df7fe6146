"""The report reports how far answers are from published figures, and judges only what can be judged."""

from dataclasses import replace
from fnmatch import fnmatchcase

import planner_report_stats as stats
import pytest
import yaml
from planner_report_answers import PlannerAnswer, relative
from planner_report_notes import Note, judged, load_notes, note_about
from planner_report_tables import report_page

from unit.planner.report_samples import ROOT

WEIGHTS = "weights_gib"


def answer(row: str = "a", published: float = 100.0, predicted: float | None = 102.0, **more: object) -> PlannerAnswer:
    found = PlannerAnswer(
        row, WEIGHTS, "GQA, MHA", published, predicted, 90.0, 110.0, reason="" if predicted else "no size"
    )
    return replace(found, **more)  # type: ignore[arg-type]


def fits_answer(row: str, published: bool, predicted: bool) -> PlannerAnswer:
    return PlannerAnswer(row, "fits", "GQA, MHA", published, predicted)


def test_errors_are_relative_and_signed() -> None:
    """Too much is positive; a verdict is 1 in the unsafe direction and -1 in the other."""
    assert relative(90.0, 100.0) == pytest.approx(-0.1)
    assert (relative(True, False), relative(False, True), relative(True, True)) == (1.0, -1.0, 0.0)
    assert relative(None, 100.0) is None


@pytest.mark.parametrize(("count", "ninety"), [(1, 1), (9, 9), (10, 9), (11, 10), (20, 18)])
def test_the_ninetieth_percentile_is_a_value_that_occurs(count: int, ninety: int) -> None:
    """The smallest value that at least nine in ten do not exceed."""
    assert stats.percentile(list(range(1, count + 1)), 0.9) == ninety


def test_targets_hold_for_what_was_predicted() -> None:
    """Nine of ten below three percent meet the weights' target, eight do not; no answer is no verdict."""
    target, close, far = stats.TARGETS[WEIGHTS], [answer(str(n)) for n in range(9)], answer("far", predicted=120.0)
    assert stats.targets_met(target, stats.figures([*close, far])) is True
    assert stats.targets_met(target, stats.figures([*close[:8], far, replace(far, id="too")])) is False
    assert stats.targets_met(target, stats.figures([answer(predicted=None)])) is None


def test_a_row_counts_once() -> None:
    """A curve of nine points weighs as much as one figure: the median is over rows."""
    found = stats.figures([answer("curve", predicted=150.0)] * 9 + [answer("b"), answer("c", published=120.0)])
    assert (found.answered, found.rows, found.ninety) == (11, 3, pytest.approx(0.5))
    assert (found.median, found.inside) == (pytest.approx(0.15), pytest.approx(2 / 3))


def test_one_unsafe_verdict_fails_and_a_few_refusals_do_not() -> None:
    """A yes to a run that dies in loading is the worse error: not one is allowed."""
    target, right = stats.TARGETS["fits"], [fits_answer(str(n), True, True) for n in range(39)]
    assert stats.targets_met(target, stats.figures([*right, fits_answer("x", True, False)])) is True
    assert stats.targets_met(target, stats.figures([*right, fits_answer("x", False, True)])) is False
    assert stats.targets_met(target, stats.figures([*right[:9], fits_answer("x", True, False)])) is False


def test_speeds_are_judged_by_their_interval() -> None:
    """A speed beyond its limit is one outside the interval that the planner gave."""
    inside = answer(quantity="decode_tps", predicted=60.0)
    outside = replace(inside, published=111.0)
    assert stats.beyond_limit([inside]) == []
    assert stats.beyond_limit([outside]) == [outside]


def test_contradictions_are_shown_and_not_judged() -> None:
    """A row that contradicts itself stays on the page, with its reason, and out of the figures."""
    off = answer("bad-row", predicted=300.0)
    notes = (Note(("bad-*",), (WEIGHTS,), "GB and GiB mixed up", contradicts=True),)
    assert judged(notes, [answer(), off]) == [answer()]
    text = report_page([answer(), off], notes)
    assert "| bad-row | weights_gib | 100.00 | 300.00 | +200.0% | GB and GiB mixed up |" in text
    assert "| Weights, GiB a rank | 90 % < 3%, 85% inside | 1 (1) |" in text


def test_every_row_beyond_the_limit_has_its_reason_on_the_page() -> None:
    """The page has a note's words, or states without one that nobody explained it."""
    far = answer("far", predicted=150.0, conditions={"depth": 4096})
    assert "| not explained |" in report_page([far], ())
    assert "| far | 100.00 (depth 4,096) | 150.00 | +50.0% | a rounded figure |" in report_page(
        [far], (Note(("far",), (WEIGHTS,), "a rounded figure"),)
    )


def test_what_was_not_predicted_is_counted_with_the_reason() -> None:
    """Silence is not hidden in a better median."""
    text = report_page([answer(), answer("b", predicted=None)], ())
    assert "| weights_gib | 1 | no size |" in text
    assert (
        "| Weights, GiB a rank | 90 % < 3%, 85% inside | 1 (1) | 2.0% | 2.0% | 100% (x1.22) | yes | 2.0%, 2.0%, 1 | 1 |"
        in text
    )


def test_the_other_estimator_is_next_to_ours() -> None:
    """Its errors are on the same rows, where it answers at all."""
    text = report_page([answer(peer=150.0), answer("b")], ())
    assert "| all | 2 (2) | 2.0% | 2.0% | 100% (x1.22) | 1 | 50.0% | 50.0% |" in text


def test_our_notes_can_be_read_and_are_about_quantities_that_exist() -> None:
    """A note of another form, or about a quantity that is spelled otherwise, would silently explain nothing."""
    notes = load_notes()
    assert notes
    assert {name for one in notes for name in one.of} <= set(stats.TARGETS)
    assert all(len(one.why) > 20 for one in notes)


def test_no_note_of_ours_is_hidden_by_one_before_it() -> None:
    """The first that is about a row counts: one behind it would never be read."""
    notes = load_notes()
    hidden = [
        (row, name)
        for at, one in enumerate(notes)
        for row in one.rows
        for name in one.of
        if any(name in other.of and any(fnmatchcase(row, wide) for wide in other.rows) for other in notes[:at])
    ]
    assert hidden == []


def test_wide_intervals_are_reported() -> None:
    """A hit is easy with an interval that holds everything: its width is next to the share of hits."""
    assert stats.figures([answer(), answer(low=10.0, high=1000.0), answer(low=0.0)]).width == 100.0
    assert "100% (x100.00)" in report_page([answer(low=10.0, high=1000.0)], ())


def test_the_first_note_that_fits_counts() -> None:
    """A note about one row is before one about all of its author's."""
    notes = (Note(("lab-7",), (WEIGHTS,), "this one"), Note(("lab-*",), (WEIGHTS,), "all"))
    found = [note_about(notes, answer(row)) for row in ("lab-7", "lab-8", "other")]
    assert [one.why if one else "" for one in found] == ["this one", "all", ""]


def test_the_page_depends_on_nothing_but_the_answers() -> None:
    """No date, no path, no order of a set: the same answers give the same page."""
    answers = [answer(), answer("b", predicted=None), fits_answer("c", True, True)]
    assert report_page(answers, ()) == report_page(list(answers), ())
    assert str(ROOT) not in report_page(answers, ())


def test_the_first_run_on_new_rows_comes_first() -> None:
    """Guards the honest figure: what the planner said before anything was changed for the rows, of the newest first."""
    shown = report_page([], [])
    heads = [line for line in shown.splitlines() if line.startswith("## ")]
    newest = yaml.safe_load((ROOT / "scripts/planner/planner_report_fresh.yaml").read_text())[-1]["figures"][0]
    first_row = next(line for line in shown.splitlines() if line.startswith(f"| {newest['quantity']} |"))
    assert heads[0] == "## At a glance" and f"| {newest['first']} |" in first_row
    assert "| quantity | first run |" in shown
