"""`eval same` and `eval instructions`: the real command against simulators."""

from __future__ import annotations

import json
from typing import Any

import pytest

from functional.bench.conftest import BenchShell, Start, endpoint_url
from functional.bench.odd import OddServer, served
from functional.evals.conftest import QUICK

pytestmark = pytest.mark.full


def run_eval_same(shell: BenchShell, *words: str) -> tuple[int, dict[str, Any], str]:
    code, out, err = shell.run("eval", "same", *words, "--prompts", "12", "--json")
    told = json.loads(out)
    assert "run" in told, err
    return code, told["run"]["evaluation"], err


def test_before_and_after(bench_shell: BenchShell, simulator: Start) -> None:
    """A setting is stored, and compared after a change: as before, or worse with the prompts that show it."""
    first = endpoint_url(simulator(**QUICK))
    code, found, _ = run_eval_same(bench_shell, first, "--tag", "before")
    assert (code, len(found["answers"]), found["outcomes"]) == (0, 12, [])
    code, found, _ = run_eval_same(bench_shell, "before", first)
    assert (code, found["verdict"]) == (0, "as before")
    changed = endpoint_url(simulator(**QUICK, SPARKWRIGHT_SIMULATOR_FAULT="garbage"))
    code, found, _ = run_eval_same(bench_shell, "before", changed)
    assert (code, found["verdict"]) == (1, "worse")
    assert found["outcomes"][0]["evidence"][0]["sent"].startswith("base: (simulated)")
    _, shown, _ = bench_shell.run("runs", "show", "last")
    assert ": worse" in shown and "new: !!!" in shown
    assert bench_shell.run("report", "last", "-o", "page.html")[0] == 0
    assert "!!!" in (bench_shell.folder / "page.html").read_text()
    assert [run["kind"] for run in bench_shell.saved()] == ["eval same"] * 3


@pytest.mark.full
def test_what_cannot_be_compared(bench_shell: BenchShell, simulator: Start) -> None:
    """Simulated with real only on request; other prompts have no verdict; a benchmark is no side."""
    there = endpoint_url(simulator(**QUICK))
    run_eval_same(bench_shell, there, "--tag", "before")
    with served(OddServer()) as odd:
        code, _, err = bench_shell.run("eval", "same", "before", odd.url, "--prompts", "12")
        assert (code, "one side is simulated" in err) == (2, True), err
    code, found, _ = run_eval_same(bench_shell, "before", there, "--seed", "9")
    assert (code, found["verdict"], found["outcomes"][0]["state"]) == (1, "", "skipped")
    code, _, err = bench_shell.run("eval", "same", "nothing-here")
    assert code != 0 and "nothing-here" in err


def test_instructions(bench_shell: BenchShell, simulator: Start) -> None:
    """The simulator follows hardly any: scored with intervals, never passed; what was missed is in the report."""
    code, out, err = bench_shell.run(
        "eval", "instructions", endpoint_url(simulator(**QUICK)), "--prompts", "27", "--json"
    )
    found = {one["name"]: one for one in json.loads(out)["run"]["evaluation"]["outcomes"]}
    assert code == 0, err
    assert {one["state"] for one in found.values()} == {"scored"}
    total = found["prompts, strict"]["score"]
    assert total["of"] == 27 and total["low"] < total["good"] / 27 < total["high"] < 0.6
    assert bench_shell.run("report", "last", "-o", "page.html")[0] == 0
    assert "not followed" in (bench_shell.folder / "page.html").read_text()


def test_instructions_without_answers(bench_shell: BenchShell) -> None:
    """A server that dies: the prompts without an answer are counted and named, exit 5."""
    with served(OddServer(closes=12)) as odd:
        code, out, _ = bench_shell.run("eval", "instructions", odd.url, "--prompts", "27")
    assert (code, "prompts without an answer" in out) == (5, True), out
