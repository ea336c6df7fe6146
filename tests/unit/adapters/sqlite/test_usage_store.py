"""The usage of keys through a power cut: a damaged file costs its own content and nothing more."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sparkwright.adapters.sqlite.usage import FILE, UsageStore, requests_since, used_since
from sparkwright.domain.history import RequestRecord
from sparkwright.gateway.usage import Tokens

ROW = ("2026-11-24", "ci", "tiny")


def spend_tokens(store: UsageStore) -> int:
    store.begin(ROW)
    store.end(ROW, "finished", Tokens(6, 4))
    return store.today(ROW[0], ROW[1])


def damage(path: Path) -> None:
    """Damages the file as a power cut does: pages that were never written."""
    for end in ("-wal", "-shm"):
        Path(f"{path}{end}").unlink(missing_ok=True)
    path.write_bytes(b"\0" * 4096 + path.read_bytes()[4096:])


@pytest.mark.parametrize("when", ["before it is opened", "while it is open"])
def test_a_damaged_file_is_set_aside(tmp_path: Path, when: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Limits hold again at once, what was counted before is kept next to it, and the log says so."""
    store, path = UsageStore(tmp_path), tmp_path / FILE
    assert spend_tokens(store) == 10
    if when == "before it is opened":
        store._close()
        damage(path)
        store = UsageStore(tmp_path)
    else:
        assert store._link
        store._link.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        store._link.execute("PRAGMA mmap_size = 0")
        store._link.execute("PRAGMA cache_size = 0")
        path.write_bytes(b"no database" * 2000)
    assert [spend_tokens(store), spend_tokens(store)] == [10, 20]
    assert (store.trouble, len(list(tmp_path.glob(f"{FILE}.damaged-*Z")))) == ("", 1)
    assert "was damaged" in capsys.readouterr().err
    assert sum(one.completion for one in used_since(tmp_path, ROW[0])) == 8
    assert path.stat().st_mode & 0o077 == 0


def test_a_power_cut_cannot_damage_it(tmp_path: Path) -> None:
    """SQLite promises that of WAL with NORMAL, and not of OFF."""
    store = UsageStore(tmp_path)
    assert store._link and store._link.execute("PRAGMA synchronous").fetchone() == (1,)


def test_what_cannot_be_counted_is_a_trouble_until_it_can(tmp_path: Path) -> None:
    """A folder in its place: nothing is raised, and it is tried again after a while."""
    at = [100.0]
    (tmp_path / FILE).mkdir()
    store = UsageStore(tmp_path, lambda: at[0])
    assert (spend_tokens(store), "usage is not counted" in store.trouble) == (0, True)
    (tmp_path / FILE).rmdir()
    assert spend_tokens(store) == 0, "tried for each request"
    at[0] += 60.0
    assert (spend_tokens(store), store.trouble) == (10, "")
    with closing(sqlite3.connect(tmp_path / FILE)) as link:
        assert link.execute("SELECT requests FROM usage").fetchall() == [(1,)]


def test_the_requests_of_a_day_are_kept_without_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Newest first, bounded by age and by number; names from outside are cut."""
    monkeypatch.setattr("sparkwright.adapters.sqlite.usage._KEPT_REQUESTS", 300)
    store = UsageStore(tmp_path)
    assert requests_since(tmp_path, 0.0, 10) == ()
    store.record(RequestRecord(1.0, "old", "tiny", "/v1/completions", 200, "finished", 1.0))
    for number in range(601):
        store.record(
            RequestRecord(1e6 + number, "k" * 999, "tiny", "/v1/completions", 200, "finished", 2.0, 0.5, 9, 3, 4)
        )
    found = requests_since(tmp_path, 0.0, 1000)
    assert [one.at for one in found[:2]] == [1e6 + 600, 1e6 + 599] and 300 <= len(found) <= 500
    assert (len(found[0].key), found[0].per_token) == (200, pytest.approx(0.5))
    assert len(requests_since(tmp_path, 1e6 + 595, 1000)) == 6 and len(requests_since(tmp_path, 0.0, 5)) == 5
