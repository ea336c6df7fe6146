"""The journal of a search: what a killed process leaves is read again, what is no journal is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkwright.adapters import tune_journal
from sparkwright.domain.errors import UsageError
from sparkwright.domain.tuning import Trial, Tried

ONE = Trial((0, 2), 0, Tried.MEASURED, (1.5, 2.5), "", 3.0, 9.0, "r-1", ("tool-call",))
TWO = Trial((1, 0), 1, Tried.NOT_STARTED, detail="it did not\nstart")


def test_what_was_added_is_there(tmp_path: Path) -> None:
    """Header and trials survive, also when the process was killed in the middle of a line."""
    journal = tune_journal.begin_journal(tmp_path / "tune", {"hash": "abc"})
    journal.add(ONE)
    with journal.path.open("a") as file:
        file.write('{"point": [0], "ru')
    again = tune_journal.find_journal(tmp_path / "tune", "last")
    again.add(TWO)
    assert (again.id, again.header(), again.trials()) == (journal.id, {"hash": "abc"}, (ONE, TWO))
    assert tune_journal.find_journal(tmp_path / "tune", journal.id) == again


def test_two_processes_do_not_continue_one_search(tmp_path: Path) -> None:
    """Guards two `tune --resume` at once, which would measure under each other and mix their trials."""
    journal = tune_journal.begin_journal(tmp_path, {})
    with journal.locked(), pytest.raises(UsageError, match=f"search {journal.id} goes on in another process"):
        tune_journal.find_journal(tmp_path, "last")
    assert tune_journal.find_journal(tmp_path, "last") == journal


def test_no_journal(tmp_path: Path) -> None:
    """None of that name, none at all, and a file that was changed by hand."""
    with pytest.raises(UsageError, match="no search last"):
        tune_journal.find_journal(tmp_path, "last")
    journal = tune_journal.begin_journal(tmp_path, {})
    with pytest.raises(UsageError, match="no search"):
        tune_journal.find_journal(tmp_path, "../x")
    with journal.path.open("a") as file:
        file.write('{"point": "x"}\n')
    with pytest.raises(UsageError, match=":2:"):
        journal.trials()
