"""`make unit` runs the unit tests in several processes: together they are all of them."""

from pathlib import Path

import pytest
import test_all

UNIT = Path(__file__).parent


@pytest.mark.parametrize("processors", [1, 2, 3, 64])
def test_each_file_is_in_one_share(monkeypatch: pytest.MonkeyPatch, processors: int) -> None:
    """Guards that no test is left out or run twice, whatever the machine has."""
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(processors)))
    shares = test_all.shares_of(next(part for part in test_all.PARTS if part.split))
    dealt = [test_all.ROOT / word for share in shares for word in share.commands[0] if word.startswith("tests/")]
    files = [file for top in dealt for file in (sorted(top.rglob("test_*.py")) if top.is_dir() else [top])]
    assert sorted(files) == sorted(UNIT.rglob("test_*.py"))
    assert len(shares) == min(processors, test_all.MOST_SHARES)
    assert len({share.name for share in shares}) == len(shares)
