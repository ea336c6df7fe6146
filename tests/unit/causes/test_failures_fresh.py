"""The recorded failures that no rule has seen: each log has its truth, and the scorer reads them."""

from pathlib import Path

import diagnose_fresh
import pytest
from diagnose_fresh_page import fresh_page
from record_failures.scenario import data_half, scenarios

from sparkwright.causes.load import families

NEWER = diagnose_fresh.load(diagnose_fresh.NEWER)
CASES = [*diagnose_fresh.load(), *NEWER]
CATALOGUE = {cause.key for causes in families().values() for cause in causes}


def test_every_recorded_log_has_its_truth() -> None:
    """Guards that no log lies around unscored and no row points to a log that is gone."""
    recorded = {path for folder in (diagnose_fresh.DATA, diagnose_fresh.NEWER) for path in folder.glob("*/*")}
    assert recorded == {case.folder / name for case in CASES for name in case.logs}


def test_there_are_enough_of_them() -> None:
    """Guards the size of the evidence: 200 cases of ten programs, a third of them at least in each half."""
    unseen = [case for case in CASES if case.half == "unseen"]
    assert len(CASES) >= 200
    assert len({case.program for case in CASES}) >= 10
    assert len(CASES) / 3 < len(unseen) < len(CASES) * 2 / 3


def test_the_explaining_line_is_in_the_log() -> None:
    """Guards the truth against a wrong line: it is in one of the logs, not only in the command typed."""
    lacking = [
        case.id
        for case in CASES
        if not any(
            case.line in line and not line.startswith("$ ")
            for _, content in case.text()
            for line in content.decode("utf-8", "replace").split("\n")
        )
    ]
    assert lacking == []


def test_the_true_keys_are_of_the_catalogue() -> None:
    """Guards the truth against mistyped keys and families, and the halves against being moved."""
    wrong = [case.id for case in CASES if not set(case.keys) <= CATALOGUE or case.family not in families()]
    assert wrong == []
    assert [case.id for case in CASES if case.half != data_half(case.id)] == []


def test_every_case_can_be_recorded_again() -> None:
    """Guards `make record-failures`: the table reads, and the scenario equals the recorded row."""
    table = {one.id: (one.keys, one.family, one.line) for one in scenarios(seed=1)}
    assert {case.id: (case.keys, case.family, case.line) for case in CASES}.items() <= table.items()


def test_no_log_names_the_machine_that_recorded_it() -> None:
    """Guards against private places and keys in recordings."""
    texts = [content for case in CASES for _, content in case.text()]
    for word in (b"/tmp/record-failures", b"PRIVATE KEY-----", b"/root/."):
        assert not [text for text in texts if word in text], word


@pytest.mark.parametrize("program", ["openssh", "docker", "sglang"])
def test_the_scorer_reads_them(program: str) -> None:
    """Guards `make diagnose-fresh`: a score names what was found and compares it with the truth."""
    case = min(
        (case for case in CASES if case.program == program), key=lambda case: sum(len(c) for _, c in case.text())
    )
    score = diagnose_fresh.score_case(case)
    assert score["id"] == case.id
    assert score["first"] <= score["three"]
    assert score["known"] == bool(case.keys)


def test_the_page_shows_the_first_score() -> None:
    """Guards that docs/reference/diagnose-fresh.md is what first.jsonl gives, for every case."""
    first, newer = diagnose_fresh.first_scores(), diagnose_fresh.first_scores(diagnose_fresh.NEWER)
    assert [{one["id"] for one in first}, {one["id"] for one in newer}] == [
        {case.id for case in diagnose_fresh.load()},
        {case.id for case in NEWER},
    ]
    page = fresh_page(first, diagnose_fresh.load(), newer)
    assert Path(diagnose_fresh.PAGE).read_text() == page, "make diagnose-fresh ARGS=--page"
