"""`bench` against the simulator of vLLM: the real command, real sockets, real processes; everything it states is
simulated."""

from __future__ import annotations

import signal
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from fakes.processes import command_lines
from functional.bench.conftest import SMALL, BenchShell, Start, endpoint_url
from patience import wait_until

AGENT = """
name: loop
title: A short loop
repeats: 1
deadline: 60s
levels:
  - name: agent
    agent: {turns: 3, system: 400, tools: 0, first: 200, output: 16, cached: 0.8, cold_twin: true}
    requests: 1
    warmup: 0
"""
LONG = """
name: long
title: Enough to be stopped in
repeats: 3
deadline: 60s
levels:
  - name: first
    single: {prompt: 32, output: 8}
    requests: 2
    warmup: 0
  - name: second
    single: {prompt: 32, output: 24}
    requests: 6
    warmup: 0
"""
RATE = """
name: rate
title: The highest rate
repeats: 1
deadline: 60s
slo: {ttft: 30s, share: 0.9}
search: {low: 4, high: 8}
levels:
  - name: open
    single: {prompt: 32, output: 4}
    arrival: poisson
    rate: 4
    requests: 8
"""


def median(level: dict[str, Any], name: str) -> float:
    return float(level["metrics"][name]["median"]["value"])


def test_quick(bench_shell: BenchShell, simulator: Start) -> None:
    """The first look: what was found is reported, figures are those of the simulator's pace, and tokens those it
    counted."""
    there = endpoint_url(simulator())
    code, out, err = bench_shell.run(
        "bench", there, "--profile", bench_shell.workload(SMALL.replace("output: 8", "output: 24"))
    )
    assert "SIMULATED" in out, err
    assert all(word in err for word in ("tiny-qwen3", "vllm 0.21.0", "/tokenize of the server", "60 s at most"))
    assert "sparkwright report r-" in out
    (run,) = bench_shell.saved()
    _, shown, _ = bench_shell.run("runs", "show", run["id"], "--json")
    assert '"simulated": true' in shown
    assert code in (0, 1)  # 1: the machine of the tests was too busy for its client to be in time


@pytest.mark.full
def test_its_figures(bench_shell: BenchShell, simulator: Start) -> None:
    """One user: at least 10 ms a token, prefill at most 4,000 tokens/s; the counters report what usage does."""
    _, told, err = bench_shell.json(
        endpoint_url(simulator()), "--profile", bench_shell.workload(SMALL.replace("prompt: 64", "prompt: 800"))
    )
    one = next(level for level in told["runs"][0]["levels"] if level["plan"]["name"] == "one")
    assert one["good"] == one["sent"] == 3, err
    assert median(one, "ttft") >= 0.2
    assert median(one, "tpot") >= 0.0095
    assert one["tokens"] == one["server"]["generation_tokens_total"] == 24
    assert one["server"]["prompt_tokens_total"] == 2400, "prompts have the length that was asked for"


@pytest.mark.full
def test_a_second_run_is_not_helped_by_the_first(bench_shell: BenchShell, simulator: Start) -> None:
    """The same workload twice: nothing of the first run's prompts is found in the server's prefix cache."""
    there, workload = endpoint_url(simulator()), bench_shell.workload()
    for _ in range(2):
        _, told, _ = bench_shell.json(there, "--profile", workload)
        levels = told["runs"][0]["levels"]
        assert not any(level["server"].get("prefix_cache_hits_total") for level in levels)


@pytest.mark.full
def test_the_cold_and_the_cached_loop(bench_shell: BenchShell, simulator: Start) -> None:
    """Four fifths are cached at the last turn, and the first token comes sooner for it."""
    there = endpoint_url(simulator(SPARKWRIGHT_SIMULATOR_PREFILL_TPS="400"))  # a cold turn takes seconds
    _, told, err = bench_shell.json(there, "--profile", bench_shell.workload(AGENT))
    turns = {
        (level["plan"]["shape"]["cold"], level["part"]): level
        for level in told["runs"][0]["levels"]
        if level["part"].startswith("turn ")
    }
    assert len(turns) == 6, err
    cold, cached = turns[True, "turn 3"], turns[False, "turn 3"]
    assert median(cold, "ttft") > median(cached, "ttft")
    assert 0.7 <= median(cached, "cached_share") <= 0.9
    assert median(cold, "cached_share") < 0.1 if "cached_share" in cold["metrics"] else True


@pytest.mark.full
def test_killed_and_gone_on_with(bench_shell: BenchShell, simulator: Start) -> None:
    """kill -9 in the middle: what was complete stays and is not measured again, the rest is, and the run is whole."""
    there = endpoint_url(simulator(SPARKWRIGHT_SIMULATOR_STEP_MS="50"))  # the second level lasts for seven seconds
    process = bench_shell.start("bench", there, "--profile", bench_shell.workload(LONG))
    assert process.stderr
    for line in process.stderr:
        if "2 of 6" in line:
            break
    time.sleep(0.5)
    process.kill()
    process.communicate()
    (run,) = bench_shell.saved()
    assert (run["state"], run["done"], run["planned"]) == ("running", 1, 6)
    wait_for_no_worker(bench_shell)
    before = rows_of(bench_shell, "first", 0)
    _, _, err = bench_shell.run("bench", there, "--profile", "./small.yaml", "--dry-run")
    _, out, err = bench_shell.run("bench", "--resume", run["id"])
    (run,) = bench_shell.saved()
    assert (run["state"], run["done"]) == ("done", 6), err
    assert rows_of(bench_shell, "first", 0) == before
    assert len(rows_of(bench_shell, "second", 0)) == 6
    assert run["id"] in out
    code, _, err = bench_shell.run("bench", "--resume", run["id"])
    assert (code, "is complete" in err) == (2, True)


def rows_of(shell: BenchShell, name: str, repeat: int) -> list[tuple[Any, ...]]:
    found = sqlite3.connect(shell.folder / ".local/state/sparkwright/runs.sqlite")
    asked = "SELECT data FROM requests JOIN levels ON key = level WHERE name = ? AND repeat = ? ORDER BY requests.rowid"
    rows = found.execute(asked, (name, repeat)).fetchall()
    found.close()
    return rows


def wait_for_no_worker(shell: BenchShell) -> None:
    """A worker whose parent was killed ends automatically."""
    wait_until(lambda: not [line for line in command_lines() if "adapters.load" in line and str(shell.folder) in line])


@pytest.mark.full
def test_the_same_again_reports_that_one_is_unfinished(bench_shell: BenchShell, simulator: Start) -> None:
    """Anyone who repeats the command instead is reported how to continue with what is there."""
    there, workload = endpoint_url(simulator()), bench_shell.workload(LONG)
    code, said = bench_shell.interrupted("2 of 6", signal.SIGINT, "bench", there, "--profile", workload)
    assert code == 130, said
    (run,) = bench_shell.saved()
    assert run["state"] == "stopped"
    assert f"--resume {run['id']}" in said and [line for line in said.splitlines() if line.startswith("stopped")] == [
        "stopped"
    ]
    assert bench_shell.left == []
    _, out, err = bench_shell.run("bench", there, "--profile", workload, "--dry-run")
    assert f"--resume {run['id']}" in out + err


@pytest.mark.full
def test_the_run_ends_when_its_time_is_up(bench_shell: BenchShell, simulator: Start) -> None:
    """`--seconds` bounds the whole: what is missing is reported, and can be measured later."""
    slow = simulator(SPARKWRIGHT_SIMULATOR_STEP_MS="400")
    _, out, err = bench_shell.run(
        "bench", endpoint_url(slow), "--profile", bench_shell.workload(LONG), "--seconds", "12"
    )
    assert "time" in err
    assert "is not complete: sparkwright bench --resume" in out


@pytest.mark.full
def test_a_dying_engine(bench_shell: BenchShell, simulator: Start) -> None:
    """SIGKILL of the server in the middle: exit 5 within seconds, the run kept with what failed."""
    server = simulator()
    process = bench_shell.start("bench", endpoint_url(server), "--profile", bench_shell.workload(LONG))
    assert process.stderr
    for line in process.stderr:
        if "2 of 6" in line:
            break
    time.sleep(0.3)
    server.kill()
    _, err = process.communicate(timeout=120)
    assert (process.returncode, "no longer answers" in err) == (5, True), err
    (run,) = bench_shell.saved()
    assert run["state"] == "stopped"


@pytest.mark.full
def test_two_endpoints(bench_shell: BenchShell, simulator: Start) -> None:
    """One command over a list of endpoints ends with the comparison: the slower one is worse, and by how much."""
    fast, slow = endpoint_url(simulator()), endpoint_url(simulator(SPARKWRIGHT_SIMULATOR_STEP_MS="200"))
    _, told, err = bench_shell.json(fast, slow, "--profile", bench_shell.workload())
    assert len(told["runs"]) == 2, err
    (comparison,) = told["comparisons"]
    if any("the client was" in why for why in comparison["refused"]):
        pytest.skip("hardware: this machine is too busy for a client to be in time")
    assert comparison["refused"] == []
    decode = [row for row in comparison["rows"] if row["metric"] == "decode" and row["statistic"] == "median"]
    assert all(row["ratio"]["value"] < 0.6 for row in decode)


def test_a_gate(bench_shell: BenchShell, simulator: Start) -> None:
    """A threshold that does not hold is named with what was found, and the exit code is 1."""
    (bench_shell.folder / "gates").write_text("decode.median >= 1000 tokens/s\n")
    code, out, err = bench_shell.run(
        "bench", endpoint_url(simulator()), "--profile", bench_shell.workload(), "--gate", "gates"
    )
    assert (code, "FAIL  decode.median >= 1000" in out) == (1, True), out + err


@pytest.mark.full
def test_a_search(bench_shell: BenchShell, simulator: Start) -> None:
    """Rates are tried until one misses the SLO or the highest holds, and the best is reported."""
    _, told, err = bench_shell.json(endpoint_url(simulator()), "--profile", bench_shell.workload(RATE))
    assert told["runs"][0]["best_rate"] == 8, err


@pytest.mark.full
def test_no_secret_in_any_command_line(bench_shell: BenchShell, simulator: Start) -> None:
    """No process of the machine shows the key in its arguments during a measurement."""
    server = simulator("--api-key", "k-secret-4711")
    (bench_shell.folder / "key").write_text("k-secret-4711")
    process = bench_shell.start(
        "bench", endpoint_url(server), "--key-file", "key", "--profile", bench_shell.workload(LONG)
    )
    assert process.stderr
    for line in process.stderr:
        if "2 of 6" in line:
            break
    lines = [line for line in command_lines() if "4711" in line and "sparkwright.simulator" not in line]
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert lines == []


@pytest.mark.full
def test_it_is_kept_in_one_file(bench_shell: BenchShell, simulator: Start, tmp_path: Path) -> None:
    """Nothing but the store of runs is left in the user's home, and the file by which one process holds a run."""
    bench_shell.run("bench", endpoint_url(simulator()), "--profile", bench_shell.workload())
    left = {path.name for path in bench_shell.folder.rglob("*") if path.is_file()}
    assert left <= {"small.yaml", "runs.sqlite", "runs.sqlite-wal", "runs.sqlite-shm", "runs.lock"}
