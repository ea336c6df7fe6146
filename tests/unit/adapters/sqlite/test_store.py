"""The store: numbers, what is remembered of an incident, and what happens when the file is not as it should be."""

import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from sparkwright.adapters.sqlite import database
from sparkwright.adapters.sqlite import store as module
from sparkwright.adapters.sqlite.database import Damaged, migrations
from sparkwright.adapters.sqlite.store import LEFT_OPEN, SqliteStore
from sparkwright.domain.codec import from_json
from sparkwright.domain.incident import DeploymentRecord, Incident, IncidentEvent

FROZEN = Incident("twin", "frozen", "no token for 31 s", 1000.0, evidence=("4 running, 0 tokens",))


class StoreFolder:
    """A store in a folder, and what it reported."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.said: list[str] = []
        self.stores: list[SqliteStore] = []

    def open(self, now: float = 2000.0) -> SqliteStore:
        self.stores.append(SqliteStore(self.state, self.said.append, lambda: now))
        return self.stores[-1]

    async def close(self, store: SqliteStore) -> None:
        self.stores.remove(store)
        await store.aclose()

    def rows(self, text: str) -> list[tuple[object, ...]]:
        connection = sqlite3.connect(self.state / "store.sqlite")
        try:
            return connection.execute(text).fetchall()
        finally:
            connection.close()

    def record(self, incident: Incident) -> Incident:
        return from_json(Incident, (Path(incident.folder) / "incident.json").read_bytes())


@pytest_asyncio.fixture
async def stored(tmp_path: Path) -> AsyncIterator[StoreFolder]:
    made = StoreFolder(tmp_path / "state")
    yield made
    for store in made.stores:
        await store.aclose()


async def test_an_incident_is_the_same_in_its_row_and_in_its_folder(stored: StoreFolder) -> None:
    """Either can be read without the other."""
    store = stored.open()
    opened = await store.open(FROZEN)
    await store.note("twin", IncidentEvent(1001.0, "captured", "all logs saved"), opened.number)
    await store.explain(opened.number, "worker_died", "RAY009", ("look at rank 1",))
    await store.close(opened.number, 1090.0, "serving again", 1089.0)
    told = stored.record(opened)
    assert (told.number, told.cause, told.outcome, told.away) == (1, "worker_died", "serving again", 89.0)
    assert told.events == (IncidentEvent(1001.0, "captured", "all logs saved"),)
    assert stored.rows("SELECT number, kind, cause, fix, closed_at, serving_at FROM incidents") == [
        (1, "frozen", "worker_died", '["look at rank 1"]', 1090.0, 1089.0)
    ]
    assert stored.rows("SELECT incident, kind, text FROM events") == [(1, "captured", "all logs saved")]
    assert stored.said == []


async def test_what_is_kept_is_for_its_owner_only(stored: StoreFolder) -> None:
    """Logs hold prompts."""
    opened = await stored.open().open(FROZEN)
    folder = Path(opened.folder)
    modes = [path.stat().st_mode & 0o77 for path in (folder, folder / "incident.json", stored.state / "store.sqlite")]
    assert modes == [0, 0, 0]


async def test_an_open_incident_is_gone_on_with(stored: StoreFolder) -> None:
    """A supervisor that was killed before it remembered the number opens no second one; after its end a new one is."""
    first = await stored.open().open(FROZEN)
    again = stored.open()
    assert (await again.open(replace(FROZEN, opened_at=1005.0))).number == first.number
    await again.close(first.number, 1010.0, "serving again")
    assert (await again.open(replace(FROZEN, opened_at=1100.0))).number == 2
    assert await again.counts("twin") == (2, 2)


async def test_an_incident_that_got_a_number_without_a_folder_keeps_it(stored: StoreFolder) -> None:
    """The disk was full at the fault, and has room at the next start that fails: one incident, not two."""
    store = stored.open()
    stored.state.mkdir(mode=0o700)
    (stored.state / "incidents").write_text("no folder")
    opened = await store.open(FROZEN)
    assert (opened.number, opened.folder) == (1, "")
    (stored.state / "incidents").unlink()
    again = await store.open(replace(FROZEN, kind="launch-failed", number=1))
    assert (again.number, Path(again.folder).is_dir()) == (1, True)
    assert stored.record(again).number == 1
    Path(again.folder, "incident.json").write_text("")  # cut short by a full disk
    assert (await store.open(replace(FROZEN, number=1))).folder == again.folder
    assert len(stored.said) == 1


async def test_an_incident_on_a_full_disk_is_written_when_there_is_room(stored: StoreFolder) -> None:
    """Opened, explained and closed meanwhile: the record and the row have all of it."""
    store = stored.open()
    stored.state.mkdir(mode=0o700)
    (stored.state / "incidents").write_text("no folder")
    (stored.state / "store.sqlite").mkdir()
    opened = await store.open(FROZEN)
    await store.explain(opened.number, "the disk is full", "LIVE013", ("df -h",))
    await store.note("twin", IncidentEvent(9.0, "ready"), opened.number)
    await store.close(opened.number, 12.0, "serving again", 12.0)
    (stored.state / "incidents").unlink()
    (stored.state / "store.sqlite").rmdir()
    store.wrong()
    assert await store.counts("twin") == (1, 1)
    (row,) = stored.rows("SELECT code, outcome FROM incidents")
    assert row == ("LIVE013", "serving again")
    (record,) = (stored.state / "incidents/twin/1").glob("incident.json")
    found = from_json(Incident, record.read_bytes())
    assert (found.code, found.outcome, found.events[0].kind) == ("LIVE013", "serving again", "ready")


async def test_a_closed_incident_stays_as_it_was_closed(stored: StoreFolder) -> None:
    """A supervisor that goes on after a restart may close it twice."""
    store = stored.open()
    opened = await store.open(FROZEN)
    await store.close(opened.number, 1010.0, "given up")
    await store.close(opened.number, 1020.0, "serving again", 1020.0)
    assert stored.record(opened).outcome == "given up"
    assert stored.rows("SELECT outcome, serving_at FROM incidents") == [("given up", 0.0)]


async def test_a_new_start_closes_what_was_left_open(stored: StoreFolder) -> None:
    """It is nobody's any more, and must not swallow the next fault."""
    store = stored.open()
    left = await store.open(FROZEN)
    await store.began(DeploymentRecord("twin", 1500.0, "twin", nodes=("a", "b")))
    await store.began(DeploymentRecord("twin", 1600.0, "twin", nodes=("a", "b")))
    assert stored.record(left).outcome == LEFT_OPEN
    assert (await store.open(replace(FROZEN, opened_at=1700.0))).number == 2
    await store.ended("twin", 1800.0, "down")
    assert stored.rows("SELECT at, ended_at, ended FROM deployments") == [
        (1500.0, 1600.0, "another start"),
        (1600.0, 1800.0, "down"),
    ]


async def test_what_is_open_at_the_end_is_closed_with_it(stored: StoreFolder) -> None:
    """`down` in the middle of a relaunch: no incident stays open for ever."""
    store = stored.open()
    mine, other = await store.open(FROZEN), await store.open(replace(FROZEN, deployment="other"))
    await store.ended("twin", 1800.0, "taken down")
    assert (stored.record(mine).outcome, stored.record(other).is_open) == ("taken down", True)
    assert stored.rows("SELECT closed_at FROM incidents ORDER BY number") == [(1800.0,), (0.0,)]


async def test_odd_bytes_of_a_log_are_no_trouble(stored: StoreFolder) -> None:
    """Evidence is what an engine wrote, in whatever encoding."""
    store = stored.open()
    odd = b"caf\xe9 \xff".decode("utf-8", "surrogateescape")
    opened = await store.open(replace(FROZEN, what=odd, evidence=(odd, "a\0b")))
    await store.note("twin", IncidentEvent(1.0, "draining", odd), opened.number)
    await store.explain(opened.number, odd, "LOG1", (odd,))
    await store.close(opened.number, 2.0, "serving again")
    told = stored.record(opened)
    assert {told.what, told.cause, *told.fix, told.events[0].text, told.evidence[0]} == {"caf? ?"}
    assert stored.rows("SELECT what, cause FROM incidents") == [("caf? ?", "caf? ?")] and stored.said == []


async def test_an_incident_holds_no_key_that_an_engine_printed(stored: StoreFolder) -> None:
    """Guards tokens: people send incidents to each other."""
    store, key = stored.open(), "hf_" + "aB3dE" * 7
    opened = await store.open(replace(FROZEN, what=f"401 for {key}", evidence=(f"Authorization: Bearer {key}",)))
    await store.note("twin", IncidentEvent(1.0, "noticed", key), opened.number)
    await store.explain(opened.number, key, "LOG1", (f"HF_TOKEN={key}",))
    told = stored.record(opened)
    assert (told.what, told.cause, *told.fix) == ("401 for hf_***", "hf_***", "HF_TOKEN=hf_***")
    assert (told.events[0].text, *told.evidence) == ("hf_***", "Authorization: Bearer hf_***")


async def test_numbers_are_unique_on_a_head(stored: StoreFolder) -> None:
    """`incidents show 2` needs no deployment's name."""
    store = stored.open()
    numbers = [(await store.open(replace(FROZEN, deployment=name))).number for name in ("a", "b", "c")]
    assert numbers == [1, 2, 3]
    assert await store.counts("b") == (1, 2)


async def test_without_its_folder_a_row_still_gives_the_number(stored: StoreFolder) -> None:
    """Old folders go, numbers are never given twice."""
    store = stored.open()
    opened = await store.open(FROZEN)
    await store.close(opened.number, 1010.0, "serving again")
    Path(opened.folder, "incident.json").unlink()
    Path(opened.folder).rmdir()
    assert (await store.open(FROZEN)).number == 2


async def test_a_store_of_a_newer_version_is_left_alone(stored: StoreFolder) -> None:
    """One sentence, and the incident is saved in its folder all the same."""
    stored.state.mkdir(parents=True)
    connection = sqlite3.connect(stored.state / "store.sqlite")
    connection.execute("PRAGMA user_version=99")
    connection.close()
    before = (stored.state / "store.sqlite").read_bytes()
    store = stored.open()
    opened = await store.open(FROZEN)
    await store.close(opened.number, 1010.0, "serving again")
    assert (await store.open(FROZEN)).number == 2
    assert await store.counts("twin") == (2, 2)
    assert (stored.state / "store.sqlite").read_bytes() == before
    assert len(stored.said) == 1 and "version 99" in stored.said[0] and "supervision goes on" in stored.said[0]
    assert "version 99" in store.wrong() and "move the file aside" in store.wrong()


async def test_what_is_wrong_with_the_store_is_over_once_it_is_fixed(stored: StoreFolder) -> None:
    """A person who follows the hint need not start anything again."""
    stored.state.mkdir(parents=True)
    connection = sqlite3.connect(stored.state / "store.sqlite")
    connection.execute("PRAGMA user_version=99")
    connection.close()
    store = stored.open()
    assert store.wrong() == ""
    await store.open(FROZEN)
    (stored.state / "store.sqlite").rename(stored.state / "newer.sqlite")
    assert "version 99" in store.wrong()
    await store.save(1, {})  # what was begun by then has been done
    assert store.wrong() == ""
    assert stored.rows("SELECT number FROM incidents") == [(1,)]


@pytest.mark.parametrize("damage", ["no database", "cut", "scribbled"])
async def test_a_damaged_store_is_set_aside_and_incidents_come_from_their_folders(
    stored: StoreFolder, damage: str
) -> None:
    """Saved under another name, one sentence, and nothing that a folder reports is lost."""
    store = stored.open()
    opened = await store.open(FROZEN)
    await store.close(opened.number, 1010.0, "serving again", 1009.0)
    await stored.close(store)
    path = stored.state / "store.sqlite"
    data = bytearray(path.read_bytes())
    data[4096:12288] = b"\xa5" * 8192
    path.write_bytes({"no database": b"not a database, " * 999, "cut": data[:5000], "scribbled": data}[damage])
    store = stored.open()
    assert await store.counts("twin") == (1, 1)
    assert stored.rows("SELECT outcome, serving_at FROM incidents") == [("serving again", 1009.0)]
    assert len(stored.said) == 1 and "was damaged" in stored.said[0] and "store.sqlite.damaged-" in stored.said[0]
    (aside,) = stored.state.glob("store.sqlite.damaged-*")
    assert f"inspect {aside.name}, then remove it" in store.wrong()
    aside.unlink()
    assert store.wrong() == ""


async def test_damage_that_shows_while_it_runs_costs_nothing(
    stored: StoreFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk may go bad under an open file: the write is made in a new one, which knows what the folders know."""
    store = stored.open()
    opened = await store.open(FROZEN)
    bad = iter([True])

    def goes_bad(incident: Incident) -> dict[str, str | int | float]:
        if next(bad, False):
            raise Damaged("database disk image is malformed")
        return row(incident)

    row = module._row
    monkeypatch.setattr(module, "_row", goes_bad)
    await store.close(opened.number, 1010.0, "serving again")
    assert stored.rows("SELECT number, outcome FROM incidents") == [(1, "serving again")]
    assert len(stored.said) == 1 and "was damaged" in stored.said[0]


async def test_what_cannot_be_written_is_reported_once(stored: StoreFolder) -> None:
    """A folder in the place of the file means any disk that reports no."""
    (stored.state / "store.sqlite").mkdir(parents=True)
    store = stored.open()
    for at in range(5):
        await store.note("twin", IncidentEvent(float(at), "ready"))
    opened = await store.open(FROZEN)
    assert (opened.number, Path(opened.folder).is_dir()) == (1, True)
    assert len(stored.said) == 1
    assert store.wrong().startswith("history is not written: ") and str(stored.state / "store.sqlite") in store.wrong()
    (stored.state / "store.sqlite").rmdir()
    assert await store.counts("twin") == (1, 1)
    assert stored.rows("SELECT number FROM incidents") == [(1,)]


async def test_old_rows_are_pruned(stored: StoreFolder) -> None:
    """Rows are pruned by age; an open incident stays, and the highest number, too."""
    store = stored.open(now=1000.0)
    first = await store.open(FROZEN)
    await store.note("twin", IncidentEvent(1000.0, "opened"), first.number)
    await store.close(first.number, 1001.0, "given up")
    await store.open(replace(FROZEN, deployment="other"))
    await stored.close(store)
    late = stored.open(now=1000.0 + 500 * 86400)
    Path(first.folder, "incident.json").unlink()  # or it would be adopted again
    await late.note("twin", IncidentEvent(1000.0 + 500 * 86400, "ready"))
    assert await late.counts("other") == (1, 2)
    assert stored.rows("SELECT number FROM incidents") == [(2,)]
    assert stored.rows("SELECT kind FROM events") == [("ready",)]


async def test_the_newest_incidents_stay(stored: StoreFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards a store that grows for years: closed incidents beyond the bound go while it is written, open ones stay."""
    monkeypatch.setattr(database, "_BOUNDS", (("incidents", "closed_at > 0", 3, 400),))
    monkeypatch.setattr(database, "_PRUNE_EVERY", 1)
    store = stored.open()
    await store.open(replace(FROZEN, deployment="other"))
    for number in range(6):
        opened = await store.open(FROZEN)
        await store.close(opened.number, 2000.0 + number, "serving again", 1999.0)
    await store.note("twin", IncidentEvent(2010.0, "ready"))
    assert stored.rows("SELECT number FROM incidents") == [(1,), (5,), (6,), (7,)]


async def test_a_record_has_the_first_and_the_last_events(stored: StoreFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that cannot be asked for a day makes an incident of a thousand steps; the rows have all of them."""
    monkeypatch.setattr(module, "_FIRST", 2)
    monkeypatch.setattr(module, "_LAST", 3)
    store = stored.open()
    opened = await store.open(FROZEN)
    for at in range(9):
        await store.note("twin", IncidentEvent(float(at), "waiting"), opened.number)
    await store.close(opened.number, 5000.0, "given up")
    assert [event.at for event in stored.record(opened).events] == [0.0, 1.0, 6.0, 7.0, 8.0]
    assert stored.rows("SELECT count(*) FROM events") == [(9,)]


@pytest.mark.full
async def test_only_the_newest_folders_stay(stored: StoreFolder) -> None:
    """The last 20 of a deployment; another deployment's are not counted with them."""
    store = stored.open()
    other = await store.open(replace(FROZEN, deployment="other"))
    for _ in range(23):
        opened = await store.open(FROZEN)
        await store.close(opened.number, 1010.0, "serving again")
        await store.save(opened.number, {})
    left = sorted(int(path.name) for path in (stored.state / "incidents" / "twin").iterdir())
    assert left == list(range(5, 25))
    assert Path(other.folder).is_dir()
    assert await store.counts("twin") == (23, 24)


def test_migrations_are_numbered_without_a_gap() -> None:
    """user_version counts them."""
    folder = Path(__file__).parents[4] / "src/sparkwright/adapters/sqlite/migrations"
    names = sorted(path.name for path in folder.glob("*.sql"))
    assert [int(name[:4]) for name in names] == list(range(1, len(migrations()) + 1))
