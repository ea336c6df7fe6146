"""`sparkwright report` as a user calls it, on a store of runs."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes import runs
from functional.command import UserShell
from functional.report.browser import BROWSER
from sparkwright.adapters.sqlite.runs import RUNS, SqliteRuns


@pytest.fixture
def user_shell(tmp_path: Path) -> Iterator[UserShell]:
    made = UserShell(tmp_path)
    yield made
    made.clean()


def save(shell: UserShell, *names: str) -> None:
    async def go() -> None:
        store = SqliteRuns(shell.folder / ".local/state/sparkwright" / RUNS)
        for name in names:
            await store.add(runs.run(runs.depth_plans((0, 4096)), name))
        await store.aclose()

    asyncio.run(go())


def test_each_form_goes_where_it_is_wanted(user_shell: UserShell) -> None:
    """A page into a file of the run's name, tables to stdout, and the ending decides where nothing else does."""
    save(user_shell, "r-20261122-7f3a", "r-20261122-9c01")
    code, out, err = user_shell.run("report", "r-20261122-7f3a")
    assert (code, err) == (0, "") and out.startswith("wrote r-20261122-7f3a.html (")
    assert (user_shell.folder / "r-20261122-7f3a.html").read_text().startswith("<!doctype html>")
    code, out, _ = user_shell.run("report", "r-20261122-7f3a", "--format", "md")
    assert code == 0 and "tg128 @ d4096" in out and "SIMULATED" in out
    assert user_shell.run("report", "r-20261122-7f3a", "r-20261122-9c01", "-o", "both.json")[0] == 0
    tree = json.loads((user_shell.folder / "both.json").read_text())
    assert [one["id"] for one in tree["runs"]] == ["r-20261122-7f3a", "r-20261122-9c01"]
    assert tree["runs"][0]["simulated"] and tree["comparisons"][0]["rows"] and "rows" not in tree["runs"][0]


@pytest.mark.full
def test_a_pdf_is_a_pdf(user_shell: UserShell) -> None:
    """The file's name makes it a PDF; --json reports it; never HTML under that name."""
    if not BROWSER:
        pytest.skip("chromium is not installed")
    save(user_shell, "r-20261122-7f3a")
    code, out, err = user_shell.run("report", "r-20261122-7f3a", "-o", "x.pdf", "--json")
    assert code == 0, err
    content, document = (user_shell.folder / "x.pdf").read_bytes(), json.loads(out)
    assert content.startswith(b"%PDF-") and content.count(b"/Type /Page") > 1
    assert (document["format"], document["bytes"], document["runs"]) == ("pdf", len(content), ["r-20261122-7f3a"])


@pytest.mark.parametrize(
    ("words", "said"),
    [(("report",), "no run last"), (("report", "r-nothing"), "no run r-nothing")],
)
def test_without_a_run_it_states_how_to_get_one(user_shell: UserShell, words: tuple[str, ...], said: str) -> None:
    """One line and the command to measure; no file is left."""
    code, out, err = user_shell.run(*words)
    assert code == 2 and out == "" and said in err and "sparkwright bench URL" in err
    assert list(user_shell.folder.glob("*.html")) == []


def test_a_place_that_cannot_be_written_is_named(user_shell: UserShell) -> None:
    """No traceback for a folder that is not there."""
    save(user_shell, "r-20261122-7f3a")
    code, _, err = user_shell.run("report", "r-20261122-7f3a", "-o", "nowhere/x.html")
    assert code == 2 and "nowhere/x.html: cannot be written: No such file or directory" in err
