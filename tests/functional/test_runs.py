"""The run store against kills and a full disk, and `runs`, `compare` and `gate` as a user's shell starts them."""

import asyncio
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from fakes.measured import KNOWN, failed, make_level, make_row, run
from functional.command import UserShell
from sparkwright.adapters.sqlite.runs import RUNS, SqliteRuns
from sparkwright.cli.main import run as command
from sparkwright.domain.errors import Busy, StoreError
from sparkwright.domain.run import Run
from sparkwright.loadgen.stats import summarize

# Measures as `bench` does and says how many rows the store has taken.
WRITER = """
import asyncio, sys
from dataclasses import replace
from pathlib import Path
from fakes.measured import make_level, make_row, run
from sparkwright.adapters.sqlite.runs import SqliteRuns

async def main(path):
    store = SqliteRuns(Path(path))
    await store.begin(replace(run(make_level([])), levels=(), state="running"))
    for repeat in range(10_000):
        one = make_level([make_row(tokens=64)] * 5, repeat)
        key = await store.add_level("r-1", replace(one, rows=()))
        for each in one.rows:
            await store.add_rows(key, [each])
            print("row", flush=True)
        await store.end_level(key, one)
        print("level", flush=True)

asyncio.run(main(sys.argv[1]))
"""
TESTS = Path(__file__).parents[1]


@contextmanager
def writing(path: Path) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-c", WRITER, str(path)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environ) as process:
        try:
            yield process
        finally:
            process.kill()


async def load_run(path: Path) -> Run:
    store = SqliteRuns(path)
    try:
        return await store.load("r-1")
    finally:
        await store.aclose()


@pytest.mark.parametrize("round_", range(4))
def test_a_benchmark_that_is_killed_keeps_what_it_measured(tmp_path: Path, round_: int) -> None:
    """SIGKILL at any instruction: every row that the store took is there, at most the last level is cut short, and it

    is resumed there.
    """
    path = tmp_path / RUNS
    with writing(path) as process:
        assert process.stdout is not None
        printed = [process.stdout.readline()]
        time.sleep(random.Random(round_).uniform(0.0, 0.4))
        process.send_signal(signal.SIGKILL)
        printed += process.stdout.read().splitlines(keepends=True)
    found = asyncio.run(load_run(path))
    assert sum(len(one.rows) for one in found.levels) >= printed.count("row\n")
    assert sum(one.complete for one in found.levels) >= printed.count("level\n")
    assert all(one.complete and len(one.rows) == 5 for one in found.levels[:-1])
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    asyncio.run(resume_run(path, found))


async def resume_run(path: Path, found: Run) -> None:
    """Continues like --resume: the first repeat that is not complete is measured again."""
    store = SqliteRuns(path)
    assert await store.unfinished(found.workload, found.conditions.endpoint) == "r-1"
    assert await store.take_up("r-1") == found
    repeat = sum(one.complete for one in found.levels)
    whole = make_level([make_row()] * 5, repeat)
    await store.end_level(await store.add_level("r-1", whole), whole)
    await store.end("r-1", "done", 1.0)
    again = await store.load("r-1")
    assert [one.repeat for one in again.levels] == list(range(repeat + 1))
    assert all(one.complete and len(one.rows) == 5 for one in again.levels)
    await store.aclose()


def test_others_read_while_one_writes(tmp_path: Path) -> None:
    """`runs list` and `runs show` next to a benchmark: no wait, and each time a whole state. Nobody else measures
    it."""
    path = tmp_path / RUNS
    with writing(path) as process:
        assert process.stdout is not None
        seen: list[int] = []
        while len(seen) < 5 or seen[-1] == seen[0]:  # lines may be older than what is read beside them
            assert process.stdout.readline()
            seen.append(asyncio.run(requests(path)))
        found = asyncio.run(load_run(path))
        asyncio.run(refused(path))
    assert seen == sorted(seen)
    assert sum(len(one.rows) for one in found.levels) >= seen[-1] > seen[0]
    assert all(len(one.rows) == 5 for one in found.levels[:-1])


async def refused(path: Path) -> None:
    """Asserts that calls which would mix its rows with others, or take them from it, are refused."""
    store = SqliteRuns(path)
    for disturb in (store.take_up, store.delete):
        with pytest.raises(Busy, match="r-1 is being measured by another process"):
            await disturb("r-1")
    (going,) = await store.list()
    measured = await store.load(going.id)
    assert await store.unfinished(measured.workload, measured.conditions.endpoint) is None
    await store.aclose()


async def requests(path: Path) -> int:
    store = SqliteRuns(path)
    (one,) = await store.list()
    await store.aclose()
    return one.requests


@contextmanager
def small_disk(at: Path) -> Iterator[None]:
    at.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(at)]
    if os.geteuid() or subprocess.run(words, capture_output=True).returncode:
        pytest.skip("hardware: mounting a small file system takes root")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(at)], check=True)


async def test_a_full_disk_is_reported_and_costs_nothing_that_was_kept(tmp_path: Path) -> None:
    """One clear error with the hint; what was measured before is there, and with room again it goes on."""
    disk = tmp_path / "disk"
    with small_disk(disk):
        store = SqliteRuns(disk / RUNS)
        await store.begin(replace(run(make_level([])), levels=()))
        key = await store.add_level("r-1", make_level([]))
        await store.add_rows(key, [make_row()])
        (disk / "ballast").write_bytes(b"b" * 300_000)
        with pytest.raises(StoreError, match="cannot be used") as error:
            for _ in range(1000):
                await store.add_rows(key, [make_row(tokens=2000)])
        assert error.value.hint == "free some space; what was measured until now is kept"
        assert (await load_run(disk / RUNS)).levels[0].rows[0].first == 0.1
        (disk / "ballast").unlink()
        await store.add_rows(key, [make_row(0.75)])
        assert (await load_run(disk / RUNS)).levels[0].rows[-1].first == 0.75
        await store.aclose()


@pytest.fixture
def user_shell(tmp_path: Path) -> Iterator[UserShell]:
    made = UserShell(tmp_path)
    yield made
    made.clean()


class Here:
    """The same in this process, which need not load everything for each call."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._said = capsys

    def run(self, *words: str) -> tuple[int, str, str]:
        code = command(list(words), color=False)
        return code, *self._said.readouterr()


@pytest.fixture
def in_process(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Here:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return Here(tmp_path, capsys)


def add_runs(at: UserShell | Here, *found: Run) -> None:
    async def add() -> None:
        store = SqliteRuns(at.folder / ".local/state/sparkwright" / RUNS)
        for one in found:
            await store.add(one)
        await store.aclose()

    asyncio.run(add())


def run_of_ten(ttft: float, name: str, **given: object) -> Run:
    rows = [make_row(ttft + 0.0001 * n) for n in range(10)]
    return replace(run(make_level(rows), make_level(rows, 1), name=name, **given), began=1000.0 + ord(name[-1]))  # type: ignore[arg-type]


def run_json(here: UserShell | Here, *words: str) -> tuple[int, object]:
    code, out, err = here.run(*words, "--json")
    assert err == "", err
    return code, json.loads(out)


def test_runs_are_listed_shown_tagged_and_deleted(in_process: Here) -> None:
    """A run is found by id, the beginning of one, tag or `last`; a missing one is reported with the hint."""
    assert in_process.run("runs", "list") == (0, "no runs\n", "")
    add_runs(
        in_process,
        run_of_ten(0.1, "r-20261121-1a"),
        run_of_ten(0.2, "r-20261122-2b", conditions=replace(KNOWN, simulated=True)),
    )
    code, text, _ = in_process.run("runs", "list")
    first, second = text.splitlines()
    assert code == 0 and "r-20261122-2b" in first and "SIMULATED" in first and "20 requests" in second
    assert in_process.run("runs", "tag", "r-20261121", "baseline") == (0, "r-20261121-1a: baseline\n", "")
    code, shown = run_json(in_process, "runs", "show", "baseline")
    assert shown["run"]["run"]["id"] == "r-20261121-1a"  # type: ignore[index]
    assert shown["run"]["levels"][0]["metrics"]["ttft"]["count"] == 20  # type: ignore[index]
    assert "SIMULATED" in in_process.run("runs", "show", "last")[1]
    code, _, err = in_process.run("runs", "show", "r-2026112")
    assert code == 2 and "may be any of r-20261122-2b, r-20261121-1a" in err
    code, _, err = in_process.run("runs", "delete", "last")
    assert code == 2 and "--yes" in err
    assert in_process.run("runs", "delete", "last", "--yes")[:2] == (0, "deleted r-20261122-2b, 20 requests\n")
    assert [one["id"] for one in run_json(in_process, "runs", "list")[1]["runs"]] == ["r-20261121-1a"]  # type: ignore[index]
    code, _, err = in_process.run("runs", "show", "none")
    assert code == 2 and "error: no run none" in err and "hint:  sparkwright runs list" in err


def test_a_run_moves_to_another_machine(user_shell: UserShell) -> None:
    """Exported, deleted, imported: the same; a second time it is here already."""
    add_runs(user_shell, run_of_ten(0.1, "r-1a"))
    assert user_shell.run("runs", "export", "last", "run.json")[0] == 0
    before = run_json(user_shell, "runs", "show", "last")
    code, out, err = user_shell.run("runs", "import", "run.json")
    assert (code, out) == (2, "") and "the run r-1a is here already" in err
    user_shell.run("runs", "delete", "last", "--yes")
    assert user_shell.run("runs", "import", "run.json")[:2] == (0, "r-1a: 20 requests of acme/model\n")
    assert run_json(user_shell, "runs", "show", "last") == before


def test_an_export_goes_to_stdout_where_no_file_is_named(in_process: Here) -> None:
    """The export goes to a pipe; a file whose end reports nothing wants a format."""
    add_runs(in_process, run_of_ten(0.1, "r-1a"))
    code, out, _ = in_process.run("runs", "export", "r-1a", "--format", "csv")
    assert code == 0 and len(out.splitlines()) == 21
    assert json.loads(in_process.run("runs", "export", "r-1a")[1])["kind"] == "sparkwright-run"
    code, _, err = in_process.run("runs", "export", "r-1a", "run.xyz")
    assert code == 2 and "run.xyz: in which format?" in err


def test_community_numbers_are_compared_with_ours(in_process: Here) -> None:
    """A table out of a forum next to a run of the same prompt and output."""
    table = "| model | test | t/s | e2e_ttft (ms) |\n|:-|-:|-:|-:|\n"
    table += "| acme/model | pp100 | 500.0 ± 1.0 | 200.0 ± 1.0 |\n| acme/model | tg4 | 50.0 ± 0.1 | |\n"
    (in_process.folder / "forum.md").write_text(table)
    add_runs(in_process, run_of_ten(0.1, "r-1a"))
    assert in_process.run("runs", "import", "forum.md", "--tag", "forum")[0] == 0
    code, found = run_json(in_process, "compare", "forum", "r-1a")
    rows = {(one["metric"], one["statistic"]): one for one in found["compared"][0]["comparison"]["rows"]}  # type: ignore[index]
    assert code == 0
    assert rows["ttft", "mean"]["ratio"]["value"] == pytest.approx(0.5, abs=0.01)
    assert {one["verdict"] for one in rows.values()} == {"unclear"}  # a table has no intervals


def test_compare_reports_better_worse_and_what_cannot_be_compared(in_process: Here) -> None:
    """Exit 1 where a run cannot be compared: a pipeline must not take silence for success."""
    add_runs(in_process, run_of_ten(0.1, "r-1a"), run_of_ten(0.2, "r-2b"), run_of_ten(0.1, "r-3c", version=2))
    code, out, err = in_process.run("compare", "r-1a", "r-2b")
    assert (code, err) == (0, "") and "worse" in out
    code, out, _ = in_process.run("compare", "r-1a", "r-2b", "r-3c")
    assert code == 1 and "not comparable: the workloads differ: check@1 and check@2" in out and "worse" in out


def test_gates_decide_the_exit_code(in_process: Here) -> None:
    """0 when all hold, 1 when one does not, 2 for a file with bad lines; the same with --json."""
    add_runs(in_process, run_of_ten(0.1, "r-1a"), run_of_ten(0.2, "r-2b"))
    gates = in_process.folder / "gates.txt"
    gates.write_text("ttft.p99 < 150ms   # users notice more\nerrors == 0\nttft <= 1.5 x baseline\n")
    assert run_json(in_process, "gate", "r-1a", "gates.txt", "--baseline", "r-2b")[0] == 0
    code, out, _ = in_process.run("gate", "r-2b", "gates.txt", "--baseline", "r-1a")
    assert code == 1
    assert [line.split()[0] for line in out.splitlines()[1:]] == ["FAIL", "pass", "FAIL"]
    code, found = run_json(in_process, "compare", "r-1a", "r-2b", "--gate", "gates.txt")
    assert (code, found["passed"]) == (1, False)  # type: ignore[index]
    assert [one["passed"] for one in found["compared"][0]["gates"]] == [False, True, False]  # type: ignore[index]
    gates.write_text("errors == 0\nttft < 1\n")
    code, out, err = in_process.run("gate", "r-1a", "gates.txt")
    assert (code, out) == (2, "") and "gates.txt:2: '1' has the unit none" in err


def test_a_run_with_nothing_but_errors_passes_no_gate(in_process: Here) -> None:
    """`ttft < 2s` must not hold for a server that answered nobody."""
    add_runs(in_process, run(make_level([failed()] * 3), name="r-1a"))
    assert summarize(run(make_level([failed()]))).invalid
    (in_process.folder / "gates.txt").write_text("ttft < 2s\n")
    code, out, _ = in_process.run("gate", "last", "gates.txt")
    assert code == 1 and "no request went well" in out


def test_ten_thousand_requests_are_summed_up() -> None:
    """128 tokens each, in three repeats, with all intervals: 1.27 million times between tokens, all counted."""
    levels = [make_level([make_row(0.1 + 1e-6 * n, tokens=128) for n in range(3334)], repeat) for repeat in range(3)]
    measured = run(*levels)
    found = summarize(measured).levels[0].metrics["itl"]
    assert found.count == 3 * 3334 * 127


TOTALS = {
    "model_id": "acme/model", "request_rate": "inf", "max_concurrency": 1, "duration": 10.0, "completed": 3,
    "failed": 0, "total_input_tokens": 300, "total_output_tokens": 12, "request_throughput": 0.3,
    "output_throughput": 1.2, "median_ttft_ms": 200.0, "mean_ttft_ms": 210.0,
}  # fmt: skip


def test_totals_of_another_tool_stand_next_to_a_run(in_process: Here) -> None:
    """Imported, listed, shown and compared: figures as stated, a ratio, and no verdict that nobody can give."""
    add_runs(in_process, run_of_ten(0.1, "r-1a"))
    (in_process.folder / "totals.json").write_text(json.dumps(TOTALS))
    code, out, err = in_process.run("runs", "import", "totals.json", "--tag", "theirs")
    assert (code, "totals of 1 level, without intervals" in out) == (0, True), err
    assert "totals" in in_process.run("runs", "list")[1]
    code, out, _ = in_process.run("runs", "show", "theirs")
    assert (code, "200 ms" in out, "no requests, so no intervals" in out) == (0, True, True)
    code, out, _ = in_process.run("compare", "r-1a", "theirs")
    assert (code, "unclear" in out, "a ratio and no verdict" in out) == (0, True, True)
    assert in_process.run("report", "theirs", "-o", "page.html")[0] == 0


def test_an_arena_submission_is_written_whole_or_not_at_all(in_process: Here) -> None:
    """Three files in a new folder; a run without its recipe, or a file that is there, writes nothing."""
    argv = ("vllm", "serve", "/models/m", "--served-model-name", "m", "--port", "8000", "--max-model-len", "4096")
    terms = replace(KNOWN, ours=True, deployment="m", recipe="m", recipe_hash="abc", image="vllm/vllm-openai:v1",
                    engine="vllm", engine_version="0.26.0", flags=argv, nodes=("spark-1: GB10",))  # fmt: skip
    add_runs(in_process, run_of_ten(0.1, "r-1a", conditions=terms), run_of_ten(0.1, "r-2b"))
    folder = in_process.folder / "submission"
    code, _, err = in_process.run("runs", "export", "r-2b", "submission", "--format", "arena")
    assert (code, "no image and command" in err, folder.exists()) == (2, True, False)
    code, out, err = in_process.run("runs", "export", "r-1a", "submission", "--format", "arena")
    assert (code, "wrote" in out) == (0, True), err
    assert sorted(path.name for path in folder.iterdir()) == ["benchmark.csv", "metadata.json", "recipe.yaml"]
    code, _, err = in_process.run("runs", "export", "r-1a", "submission", "--format", "arena")
    assert (code, "exists already" in err) == (2, True)
