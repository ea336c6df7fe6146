"""The run store: what is put in comes out, and what is wrong with a file is reported."""

import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from fakes.measured import KNOWN, PLAN, failed, make_level, make_row, run, scrape
from sparkwright.adapters.sqlite import database
from sparkwright.adapters.sqlite.runs import RUNS, SqliteRuns
from sparkwright.domain.errors import StoreError, UsageError
from sparkwright.domain.run import Lag, Reads, Run, StatedFigures, Totals
from sparkwright.domain.workload import Agent, Arrival, Length, LevelPlan, Pace, RateSearch, Single, Slo

RICH = run(
    make_level(
        [
            make_row(0.125, 0.015625, session=3, cached_tokens=7, finish="stop", text="näher ☃"),
            failed("http-429", retry_after=1.5, status=429),
            make_row(reads=Reads((0.25, 0.5), (2, 7), exact=False), simulated=True, warmup=True, counted=False),
        ],
        lag=Lag(0.001, 0.002, 0.003, 0.4, 0.5, 2),
        scrapes=(scrape(0.5, {"spark-1": 5}, requests_waiting=3.0), scrape(1.5)),
        doubts=("odd",),
    ),
    make_level([make_row(0.25)], 1),
    make_level(
        [], 2, stated=(StatedFigures("ttft", 0.5, median=0.4, values=(0.3, 0.5)),), totals=Totals(3, 2, 9, {"error": 1})
    ),
    make_level([], plan=LevelPlan("agent", Agent(3, 1, 2, 3, 4, 5, 0.8, noise=2), Pace(Arrival.RAMP, 4, 1.0, 0, 9.0))),
    conditions=replace(KNOWN, flags=("--a", "b"), nodes=("spark-1: GB10",), engine="vllm", ours=True),
    slo=Slo(0.5, 0.1),
    search=RateSearch(1.0, 8.0),
    thinking=None,
    tags=("baseline",),
    note="first",
)


@pytest_asyncio.fixture
async def run_store(tmp_path: Path) -> AsyncIterator[SqliteRuns]:
    made = SqliteRuns(tmp_path / "state" / "runs.sqlite")
    yield made
    await made.aclose()


def round_reads(kept: Run) -> Run:
    """Reads as they are kept: to the microsecond."""

    def rounded(reads: Reads) -> Reads:
        return replace(reads, at=tuple(round(at, 6) for at in reads.at))

    levels = (
        replace(one, rows=tuple(replace(each, reads=rounded(each.reads)) for each in one.rows)) for one in kept.levels
    )
    return replace(kept, levels=tuple(levels))


async def test_a_run_is_the_same_again(run_store: SqliteRuns) -> None:
    """Every field of it: conditions, levels, failed requests, scrapes, reads to the microsecond."""
    await run_store.add(RICH)
    assert await run_store.load("r-1") == round_reads(RICH)


async def test_a_run_grows_as_it_is_measured(run_store: SqliteRuns) -> None:
    """Begun, rows as they end, ended: the same as one that is added whole. Until its end a level is cut short."""
    first = RICH.levels[0]
    await run_store.begin(replace(RICH, levels=(), state="running"))
    key = await run_store.add_level("r-1", replace(first, rows=(), lag=Lag(), scrapes=(), doubts=(), seconds=0.0))
    await run_store.add_rows(key, first.rows[:2])
    halfway = await run_store.load("r-1")
    assert (halfway.state, halfway.levels[0].complete, len(halfway.levels[0].rows)) == ("running", False, 2)
    await run_store.add_rows(key, first.rows[2:])
    await run_store.end_level(key, first)
    await run_store.end("r-1", "done", 2000.0)
    assert await run_store.load("r-1") == round_reads(replace(RICH, levels=(first,), ended=2000.0))


async def test_a_repeat_that_was_cut_short_makes_room_for_the_next_try(run_store: SqliteRuns) -> None:
    """Resumed: its rows go with it. A complete one is not measured twice."""
    await run_store.begin(replace(RICH, levels=()))
    await run_store.add_level("r-1", replace(RICH.levels[1], complete=False))
    key = await run_store.add_level("r-1", replace(RICH.levels[1], rows=()))
    assert [len(one.rows) for one in (await run_store.load("r-1")).levels] == [0]
    await run_store.end_level(key, RICH.levels[1])
    with pytest.raises(StoreError, match="UNIQUE"):
        await run_store.add_level("r-1", RICH.levels[1])


async def test_a_list_counts_without_loading(run_store: SqliteRuns) -> None:
    """Newest first, with what is needed to choose one."""
    await run_store.add(RICH)
    await run_store.add(replace(run(make_level([make_row()]), name="r-2"), began=5000.0))
    newest, older = await run_store.list()
    assert (newest.id, newest.requests, newest.errors, newest.tags) == ("r-2", 1, 0, ())
    assert (older.workload, older.model, older.engine) == ("check@1", "acme/model", "vllm")
    assert (older.requests, older.errors, older.done, older.planned) == (4, 1, 4, 6)
    assert (older.tags, older.note) == (("baseline",), "first")


async def test_tags_are_replaced_and_runs_deleted(run_store: SqliteRuns) -> None:
    """A deleted run leaves no request behind."""
    await run_store.add(RICH)
    await run_store.tag("r-1", ("a", "b"))
    assert (await run_store.list())[0].tags == ("a", "b")
    await run_store.delete("r-1")
    assert await run_store.list() == ()
    with pytest.raises(UsageError, match="no run r-1"):
        await run_store.load("r-1")


async def test_an_unfinished_run_of_the_same_workload_is_found(run_store: SqliteRuns) -> None:
    """The run found is resumed: not one of another workload, endpoint, or one that is done."""
    going = replace(RICH, id="r-3", state="running")
    for one in (RICH, going, replace(going, id="r-4", workload=replace(RICH.workload, seed=9))):
        await run_store.add(one)
    assert await run_store.unfinished(RICH.workload, KNOWN.endpoint) == "r-3"
    assert await run_store.unfinished(RICH.workload, "http://elsewhere") is None
    await run_store.end("r-3", "stopped", 1.0)
    assert await run_store.unfinished(RICH.workload, KNOWN.endpoint) == "r-3"


async def test_a_store_of_a_later_version_is_left_alone(run_store: SqliteRuns, tmp_path: Path) -> None:
    """One clear sentence; nothing in it is changed."""
    await run_store.add(RICH)
    path = tmp_path / "state" / "runs.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version=99")
    connection.close()
    later = SqliteRuns(path)
    with pytest.raises(StoreError, match="has version 99, from a later sparkwright; this one knows version 3"):
        await later.list()
    await later.aclose()


async def test_a_file_that_is_no_database_is_not_touched(tmp_path: Path) -> None:
    """Measurements are not set aside silently: the user is shown what to do."""
    path = tmp_path / "runs.sqlite"
    path.write_bytes(b"not a database, and longer than its header would be" * 10)
    store = SqliteRuns(path)
    with pytest.raises(StoreError, match="is damaged") as error:
        await store.list()
    await store.aclose()
    assert error.value.hint.endswith(f"mv {path} {path}.damaged")
    assert path.read_bytes().startswith(b"not a database")


async def test_two_stores_share_a_file(run_store: SqliteRuns, tmp_path: Path) -> None:
    """`runs list` next to a benchmark that writes."""
    other = SqliteRuns(tmp_path / "state" / "runs.sqlite")
    await run_store.begin(replace(RICH, levels=()))
    key = await run_store.add_level("r-1", replace(RICH.levels[0], rows=()))
    for each in RICH.levels[0].rows:
        await run_store.add_rows(key, [each])
        assert (await other.list())[0].id == "r-1"
    assert (await other.list())[0].requests == 3
    await other.aclose()


async def test_a_file_that_another_process_keeps_is_reported(
    run_store: SqliteRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not that the home folder is wrong: with the other one's end it is over."""
    monkeypatch.setattr(database, "_BUSY", 0.02)
    await run_store.add(RICH)
    other = sqlite3.connect(tmp_path / "state" / "runs.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="database is locked") as error:
        await run_store.tag("r-1", ("a",))
    other.close()
    assert error.value.hint.startswith("another process")


async def test_a_million_tokens_take_less_than_20_mb(run_store: SqliteRuns, tmp_path: Path) -> None:
    """A tenth of it here: 780 requests of 128 tokens, with all that is known of each."""
    one = make_row(
        0.123456, 0.0201234, tokens=128, session=123, headers=0.0456789, chunks=105, bytes=23456, finish="length"
    )
    await run_store.add(run(make_level([one] * 780, plan=PLAN)))
    size = sum(path.stat().st_size for path in (tmp_path / "state").glob("runs.sqlite"))
    assert size < 2_000_000


async def test_a_deleted_run_gives_its_room_back(run_store: SqliteRuns, tmp_path: Path) -> None:
    """The room goes back to the disk; not while a benchmark measures, which would have to wait for it."""
    big = run(make_level([make_row(tokens=500)] * 300))
    await run_store.add(big)
    await run_store.add(replace(RICH, id="r-2", state="running"))
    await run_store.delete("r-1")
    path = tmp_path / "state" / "runs.sqlite"

    def pages(what: str) -> int:
        with sqlite3.connect(path) as connection:
            found = connection.execute(f"PRAGMA {what}").fetchone()[0]
        connection.close()
        return int(found)

    assert pages("freelist_count") > 100
    await run_store.add(replace(RICH, id="r-3"))
    await run_store.end("r-2", "stopped", 1.0)
    await run_store.delete("r-3")
    assert pages("freelist_count") == 0
    assert [one.id for one in await run_store.list()] == ["r-2"]


async def test_halves_of_characters_harm_nothing(run_store: SqliteRuns) -> None:
    """Models send them: a chunk may end in the middle of one. Neither SQLite nor JSON takes them."""
    await run_store.add(run(make_level([make_row(text="ab\ud83d")]), conditions=replace(KNOWN, flags=("\udcff",))))
    found = await run_store.load("r-1")
    assert (found.levels[0].rows[0].text, found.conditions.flags) == ("ab?", ("?",))


async def test_what_a_later_version_adds_to_a_request_is_left_out(run_store: SqliteRuns, tmp_path: Path) -> None:
    """A field that is not known here does not make a run unreadable."""
    await run_store.add(run(make_level([make_row()])))
    with sqlite3.connect(tmp_path / "state" / "runs.sqlite") as connection:
        connection.execute("UPDATE requests SET data = json_set(data, '$.colour', 'blue')")
    connection.close()
    assert (await run_store.load("r-1")).levels[0].rows[0].first == 0.1


def test_every_shape_of_a_level_is_distinguished_when_it_is_read() -> None:
    """The fixture holds the shapes that this relies on."""
    assert {type(one.plan.shape) for one in RICH.levels} == {Single, Agent}
    assert RICH.levels[0].plan.shape == Single(Length(100, 100), Length(4, 4))


async def test_a_home_that_cannot_be_written_is_reported_with_the_way_out(tmp_path: Path) -> None:
    """The message is the system's own, without Python's."""
    (tmp_path / "home").write_text("")
    store = SqliteRuns(tmp_path / "home" / RUNS)
    with pytest.raises(StoreError) as error:
        await store.list()
    assert error.value.message.endswith(("Not a directory", "File exists")) and "HOME=FOLDER" in error.value.hint
    await store.aclose()
