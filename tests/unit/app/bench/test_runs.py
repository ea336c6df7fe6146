"""Runs by name, and in and out of files."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from fakes.measured import make_level, make_row, run
from sparkwright.adapters.run_files import formats
from sparkwright.adapters.sqlite.runs import SqliteRuns
from sparkwright.app.bench import runs as use
from sparkwright.app.bench.report import compared, judge_stored_runs
from sparkwright.domain.errors import UsageError
from sparkwright.loadgen.gates import parse


@pytest_asyncio.fixture
async def saved_runs(tmp_path: Path) -> AsyncIterator[SqliteRuns]:
    """Three runs, r-1b the newest, r-2a tagged `base`."""
    store = SqliteRuns(tmp_path / "runs.sqlite")
    for at, (name, tags) in enumerate([("r-1a", ("base",)), ("r-2a", ("base",)), ("r-1b", ())]):
        one = run(make_level([make_row(0.1)] * 3), make_level([make_row(0.1)] * 3, 1), name=name, tags=tags)
        await store.add(replace(one, began=float(at)))
    yield store
    await store.aclose()


@pytest.mark.parametrize(
    ("word", "wanted"), [("r-1a", "r-1a"), ("r-2", "r-2a"), ("base", "r-2a"), ("last", "r-1b"), ("r-1b", "r-1b")]
)
async def test_a_run_has_several_names(saved_runs: SqliteRuns, word: str, wanted: str) -> None:
    """Its id, the beginning of it, its tag where it is the newest that has it, and `last`."""
    assert (await use.chosen(saved_runs, word)).id == wanted


@pytest.mark.parametrize(("word", "why"), [("r-1", "may be any of r-1b, r-1a"), ("x", "no run x"), ("", "may be any")])
async def test_a_name_of_none_or_many_is_refused(saved_runs: SqliteRuns, word: str, why: str) -> None:
    """A wrong run deleted, or gated, is worse than a question."""
    with pytest.raises(UsageError, match=why):
        await use.chosen(saved_runs, word)


async def test_without_any_run_the_way_to_one_is_reported(tmp_path: Path) -> None:
    """`runs show last` is the first thing that somebody types."""
    store = SqliteRuns(tmp_path / "none.sqlite")
    with pytest.raises(UsageError, match="nothing was measured on this machine yet"):
        await use.chosen(store, "last")
    await store.aclose()


async def test_lists_are_narrowed(saved_runs: SqliteRuns) -> None:
    """Lists are narrowed by workload, with or without its version, and by tag."""
    assert len(await use.listed(saved_runs, "check", "")) == len(await use.listed(saved_runs, "check@1", "")) == 3
    assert await use.listed(saved_runs, "check@2", "") == ()
    assert [one.id for one in await use.listed(saved_runs, "", "base")] == ["r-2a", "r-1a"]


async def test_tags_come_and_go(saved_runs: SqliteRuns) -> None:
    """Each once, whatever is given twice."""
    assert (await use.tagged(saved_runs, "r-1a", ("x", "x", "base"), False)).tags == ("x", "base")
    assert (await use.tagged(saved_runs, "r-1a", ("base",), True)).tags == ("x",)
    assert (await use.chosen(saved_runs, "x")).id == "r-1a"


async def test_one_wrong_name_deletes_nothing(saved_runs: SqliteRuns) -> None:
    """All runs are found before the first of them goes."""
    with pytest.raises(UsageError):
        await use.deleted(saved_runs, ("r-1a", "nothing"))
    assert len(await saved_runs.list()) == 3


async def test_one_bad_file_adds_nothing(saved_runs: SqliteRuns, tmp_path: Path) -> None:
    """All files are read before the first run is saved; the same run twice is one too many."""
    good = str(tmp_path / "good.json")
    formats.write(formats.bytes_of(await use.loaded(saved_runs, "r-1a"), formats.form_of(good)), good)
    await saved_runs.delete("r-1a")
    with pytest.raises(UsageError):
        formats.read(str(tmp_path / "none.json"))
    read = (good, formats.read(good))
    with pytest.raises(UsageError, match="r-1a is here already"):
        await use.imported(saved_runs, (read, read), ())
    assert len(await saved_runs.list()) == 2
    (back,) = await use.imported(saved_runs, (read,), ("base", "moved"))
    assert back.tags == ("base", "moved")
    assert (await saved_runs.load("r-1a")).levels == back.levels


async def test_runs_that_cannot_be_compared_are_no_baseline(saved_runs: SqliteRuns) -> None:
    """A gate against another workload would pass or fail for no reason: it fails with the reason."""
    await saved_runs.add(run(make_level([make_row(0.1)]), name="r-9", version=2))
    gates = parse("ttft <= baseline")
    _, (against,) = await compared(saved_runs, "r-1a", ("r-2a",), gates, False)
    assert [one.passed for one in against.results] == [True]
    judged = await judge_stored_runs(saved_runs, ["r-9"], gates, "r-1a", False)
    assert (judged.summaries[0].run.id, [one.passed for one in judged.results]) == ("r-9", [False])
    assert judged.refused == ("the workloads differ: check@1 and check@2",)
