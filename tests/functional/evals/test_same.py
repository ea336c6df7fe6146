"""`eval same` and `eval instructions`: the real command against simulators."""

from __future__ import annotations

import json
from typing import Any

import pytest

from functional.bench.conftest import Bench, Start, url
from functional.bench.odd import Odd, served
from functional.evals.conftest import QUICK

pytestmark = pytest.mark.full


def same(shell: Bench, *words: str) -> tuple[int, dict[str, Any], str]:
    code, out, err = shell.run("eval", "same", *words, "--prompts", "12", "--json")
    told = json.loads(out)
    assert "run" in told, err
    return code, told["run"]["evaluation"], err


def test_before_and_after(shell: Bench, simulator: Start) -> None:
    """A setting is stored, and compared after a change: as before, or worse with the prompts that show it."""
    first = url(simulator(**QUICK))
    code, found, _ = same(shell, first, "--tag", "before")
    assert (code, len(found["answers"]), found["outcomes"]) == (0, 12, [])
    code, found, _ = same(shell, "before", first)
    assert (code, found["verdict"]) == (0, "as before")
    changed = url(simulator(**QUICK, SPARKWRIGHT_SIMULATOR_FAULT="garbage"))
    code, found, _ = same(shell, "before", changed)
    assert (code, found["verdict"]) == (1, "worse")
    assert found["outcomes"][0]["evidence"][0]["sent"].startswith("base: (simulated)")
    _, shown, _ = shell.run("runs", "show", "last")
    assert ": worse" in shown and "new: !!!" in shown
    assert shell.run("report", "last", "-o", "page.html")[0] == 0
    assert "!!!" in (shell.folder / "page.html").read_text()
    assert [run["kind"] for run in shell.saved()] == ["eval same"] * 3


@pytest.mark.full
def test_what_cannot_be_compared(shell: Bench, simulator: Start) -> None:
    """Simulated with real only on request; other prompts have no verdict; a benchmark is no side."""
    there = url(simulator(**QUICK))
    same(shell, there, "--tag", "before")
    with served(Odd()) as odd:
        code, _, err = shell.run("eval", "same", "before", odd.url, "--prompts", "12")
        assert (code, "one side is simulated" in err) == (2, True), err
    code, found, _ = same(shell, "before", there, "--seed", "9")
    assert (code, found["verdict"], found["outcomes"][0]["state"]) == (1, "", "skipped")
    code, _, err = shell.run("eval", "same", "nothing-here")
    assert code != 0 and "nothing-here" in err


def test_instructions(shell: Bench, simulator: Start) -> None:
    """The simulator follows hardly any: scored with intervals, never passed; what was missed is in the report."""
    code, out, err = shell.run("eval", "instructions", url(simulator(**QUICK)), "--prompts", "27", "--json")
    found = {one["name"]: one for one in json.loads(out)["run"]["evaluation"]["outcomes"]}
    assert code == 0, err
    assert {one["state"] for one in found.values()} == {"scored"}
    total = found["prompts, strict"]["score"]
    assert total["of"] == 27 and total["low"] < total["good"] / 27 < total["high"] < 0.6
    assert shell.run("report", "last", "-o", "page.html")[0] == 0
    assert "not followed" in (shell.folder / "page.html").read_text()


def test_instructions_without_answers(shell: Bench) -> None:
    """A server that dies: the prompts without an answer are counted and named, exit 5."""
    with served(Odd(closes=12)) as odd:
        code, out, _ = shell.run("eval", "instructions", odd.url, "--prompts", "27")
    assert (code, "prompts without an answer" in out) == (5, True), out
