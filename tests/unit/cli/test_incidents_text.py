"""Incidents as text: nothing is made up where something is missing."""

import re
from dataclasses import replace

import pytest

from sparkwright.app.diagnose.incidents import Remembered, ShownIncident
from sparkwright.cli.incidents import list_text, shown_text
from sparkwright.domain.incident import Incident, IncidentEvent

OPEN = Incident("twin", "frozen", "no token for 31 s", 1000.0, number=4)
OVER = replace(
    OPEN,
    closed_at=1064.0,
    serving_at=1063.0,
    outcome="serving again",
    cause="a worker died",
    code="RAY009",
    fix=("a", "b"),
)


def test_without_a_diagnosis_no_cause_is_named() -> None:
    """An open incident is not called over, either."""
    text = shown_text(ShownIncident("spark-1", OPEN, ()))
    assert "cause     none that is known" in text and "its evidence is no longer kept" in text
    assert "open      it is being worked on" in text and "ended" not in text


def test_the_cause_comes_from_the_row_where_the_file_is_gone() -> None:
    """Both steps of the fix below each other; where it serves again they are not what has to be done."""
    text = shown_text(ShownIncident("spark-1", OVER, ()))
    assert "cause     a worker died [RAY009]" in text
    assert "  by hand   a\n            b\n" in text
    given_up = replace(OVER, serving_at=0.0, outcome="given up")
    assert "  fix       a\n            b\n" in shown_text(ShownIncident("spark-1", given_up, ()))
    assert "serving again, clients got nothing for 63 s" in text


@pytest.mark.parametrize(
    "diagnosis", [{"causes": 3}, {"causes": [3]}, {"diagnosis": []}, {"diagnosis": {"causes": []}}]
)
def test_a_diagnosis_of_another_version_is_passed_over(diagnosis: dict[str, object]) -> None:
    """The row's cause is shown instead."""
    assert "a worker died [RAY009]" in shown_text(ShownIncident("spark-1", OVER, (), diagnosis))


def test_what_was_done_has_the_time_since_the_fault() -> None:
    """A phase that its sentence already names is not reported twice."""
    events = (
        IncidentEvent(1001.0, "draining", "draining (capture): frozen"),
        IncidentEvent(1002.5, "stopped", "all gone"),
    )
    lines = shown_text(ShownIncident("spark-1", replace(OVER, events=events), ())).splitlines()
    assert "       +1.0 s  draining (capture): frozen" in lines and "       +2.5 s  stopped: all gone" in lines


def test_what_changed_is_told_once() -> None:
    """The last difference that was noted: a node may have come back with another kernel since the first."""
    events = tuple(IncidentEvent(1001.0, "changed", f"changed since twin last served (2026-11-18): {n}") for n in "ab")
    lines = shown_text(ShownIncident("spark-1", replace(OVER, events=events), ())).splitlines()
    assert lines[0].startswith("incident 4") and lines[1].startswith("  cause     a worker died")
    told = [line for line in lines if "last served" in line]
    assert told == ["  changed   since twin last served (2026-11-18): b"]


def test_the_list_has_a_line_each() -> None:
    """Number, when, whose, what, how it ended, why; a simulated one reports it."""
    first, second = list_text(Remembered((("a", replace(OPEN, simulated=True)), ("a", OVER)))).splitlines()
    assert "SIMULATED  frozen" in first and "open" in first and "no token for 31 s" in first
    assert "serving again, 63 s away" in second and second.endswith("no token for 31 s; cause: a worker died")


def test_a_restart_of_our_own_programs_has_no_number() -> None:
    """Guards a `-` in the column of numbers, which `incidents show` does not take."""
    restart = IncidentEvent(1e9, "gateway", "the key check was restarted")
    (line,) = list_text(Remembered((), restarts=(("a", "twin", restart),))).splitlines()
    assert re.fullmatch(r"\s*\d{4}-\d\d-\d\d .*  twin  gateway  +the key check was restarted", line), line
