"""`soak`: the real command against real simulators, each fault planted."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from functional.bench.conftest import BenchShell, Start, endpoint_url
from functional.evals.conftest import PARSERS
from functional.simulator.process import wait_until

ROUNDS = """
name: rounds
title: Rounds of seconds
deadline: 13s
soak: {probe_every: 6s, leave_every: 1s}
levels:
  - name: users
    single: {prompt: 64, output: 16}
    concurrency: 4
    requests: 60
    seconds: 3s
    warmup: 0
  - name: agents
    agent: {turns: 3, system: 100, tools: 200, first: 50, each_turn: 60, output: 12}
    requests: 4
    seconds: 3s
    warmup: 0
    rest: 0.5s
"""


# The same load all the time, in twice as many rounds: a pause of a busy machine is no quarter of it.
EVEN = ROUNDS.partition("  - name: agents")[0].replace("13s", "26s")


def soaked(shell: BenchShell, *words: str, rounds: str = ROUNDS) -> tuple[int, dict[str, Any], list[str]]:
    """Exit code, the document, and the kinds of what was found."""
    shell.workload(rounds, "rounds.yaml")
    code, out, err = shell.run("soak", *words, "--profile", "./rounds.yaml", "-o", "page.html", "--json")
    assert out, err
    told = json.loads(out)
    return code, told, [one["kind"] for one in told["soak"]["findings"]]


@pytest.mark.full
def test_a_healthy_server(bench_shell: BenchShell, simulator: Start) -> None:
    """Nothing is found; page, list, gates and comparison know it as a soak; what is unknown is named."""
    code, told, kinds = soaked(bench_shell, endpoint_url(simulator(*PARSERS)), "--tag", "first")
    drift = "drift" in kinds  # other programs on the same cores change latency; it has tests of its own
    assert (code, set(kinds) - {"drift"}, told["run"]["state"]) == (int(drift), set(), "done")
    assert told["run"]["simulated"] and told["soak"]["requests"] >= 10
    assert any("memory of the nodes is unknown" in one for one in told["soak"]["unknown"])
    assert {one["state"] for one in told["run"]["evaluation"]["outcomes"]} == {"passed"}
    page = (bench_shell.folder / "page.html").read_text()
    assert drift or "nothing found" in page
    assert "SIMULATED" in page
    too_few = any("too few requests" in one for one in told["soak"]["unknown"])  # on a busy machine
    assert too_few or "plot-ttft-time" in page
    assert bench_shell.saved()[0]["kind"] == "soak"
    assert drift or "nothing found" in bench_shell.run("runs", "show", "first")[1]
    (bench_shell.folder / "gates.txt").write_text(
        "faults == 0\nlatency_drift < 10%\nmemory_per_hour < 1GiB\nfailed_probes == 0\n"
    )
    code, out, _ = bench_shell.run("gate", "first", "gates.txt")
    # A gate whose figure is unknown fails, and says why. It may be more than 10 % without being a drift.
    doubtful = (too_few or told["soak"]["shifts"]) and "FAIL  latency_drift" in out
    assert (code, out.count("pass ")) == ((1, 3) if doubtful else (0, 4)), out
    code, out, _ = bench_shell.run("compare", "first", "first")
    assert (code, out.count("same")) == (0, 8), out
    assert bench_shell.run("runs", "export", "first", "run.json")[0] == 0
    assert bench_shell.run("runs", "delete", "first", "--yes")[0] == 0
    assert bench_shell.run("runs", "import", "run.json")[0] == 0
    assert f"{told['soak']['requests']} requests" in bench_shell.run("runs", "show", "last")[1]
    code, _, err = bench_shell.run("bench", "--resume", "first")
    assert (code, "soak --resume" in err) == (2, True)
    code, _, err = bench_shell.run("soak", "--resume", "first")
    assert (code, "is complete" in err) == (2, True)


@pytest.mark.full
@pytest.mark.parametrize(
    ("fault", "kind"),
    [("leak=4", "leak"), pytest.param("wrong@tool_text", "answers", marks=pytest.mark.full)],
)
def test_a_fault_is_found_and_nothing_else(bench_shell: BenchShell, simulator: Start, fault: str, kind: str) -> None:
    """Memory that each request takes for ever; a parser that leaves calls as text.

    Latency may drift as well: other programs on the same cores change it.
    """
    code, told, kinds = soaked(
        bench_shell, endpoint_url(simulator(*PARSERS, SPARKWRIGHT_SIMULATOR_FAULT=fault)), rounds=EVEN
    )
    assert (code, [one for one in kinds if one != "drift"]) == (1, [kind]), told["soak"]
    if kind == "answers":
        page = (bench_shell.folder / "page.html").read_text()
        assert "tool-call" in page and "POST /v1/chat/completions" in page


@pytest.mark.full
def test_a_server_that_becomes_slower(bench_shell: BenchShell, simulator: Start, tmp_path: Path) -> None:
    """Steps of a running engine take four times as long from one moment on: drift, which a gate can refuse."""
    control, rounds = tmp_path / "faults", 0
    there = endpoint_url(simulator(*PARSERS, SPARKWRIGHT_SIMULATOR_CONTROL=str(control)))
    bench_shell.workload(ROUNDS.partition("  - name: agents")[0].replace("13s", "60s"), "rounds.yaml")
    process = bench_shell.start("soak", there, "--profile", "./rounds.yaml", "-o", "page.html")
    assert process.stderr
    for line in process.stderr:
        rounds += "] users:" in line
        if rounds == 8:
            control.write_text("slow=4")
            break
    _, err = process.communicate(timeout=180)
    assert process.returncode == 1, err
    told = json.loads(bench_shell.run("runs", "show", "last", "--json")[1])
    assert "drift" in {one["kind"] for one in told["soak"]["findings"]}, told["soak"]["findings"]
    assert bench_shell.run("gate", "last", bench_shell.workload("latency_drift < 20%\n", "gates.txt"))[0] == 1


@pytest.mark.full
def test_a_server_that_dies_and_comes_back(bench_shell: BenchShell, simulator: Start) -> None:
    """The loss, the return and the restart are in the run, and the soak continues."""
    server = simulator(*PARSERS)
    bench_shell.workload(ROUNDS.replace("13s", "40s"), "rounds.yaml")  # a start takes ten of them on a busy machine
    words = ("soak", endpoint_url(server), "--profile", "./rounds.yaml", "-o", "page.html")
    process = bench_shell.start(*words)
    assert process.stderr
    for line in process.stderr:
        if "] users:" in line:
            server.end()
            server.start().ready()
            break
    _, err = process.communicate(timeout=180)
    assert process.returncode == 1, err
    _, out, _ = bench_shell.run("runs", "show", "last", "--json")
    told = json.loads(out)
    events = [one["kind"] for one in told["run"]["evaluation"]["events"]]
    assert told["run"]["state"] == "done"
    assert {"restart"} <= {one["kind"] for one in told["soak"]["findings"]}
    assert events in ([], ["gone", "back"])


@pytest.mark.full
def test_killed_and_resumed(bench_shell: BenchShell, simulator: Start) -> None:
    """SIGKILL loses no finished level; the rest of the time is done by the next call, for the same server only."""
    there = endpoint_url(simulator(*PARSERS))
    bench_shell.workload(ROUNDS, "rounds.yaml")
    process = bench_shell.start("soak", there, "--profile", "./rounds.yaml")
    assert process.stderr
    for line in process.stderr:
        if "] agents:" in line:
            process.send_signal(signal.SIGKILL)
            break
    process.communicate(timeout=30)
    wait_until("the killed one is listed", lambda: bench_shell.saved()[0]["state"] == "running")
    before = bench_shell.saved()[0]
    code, out, err = bench_shell.run("soak", "--resume", "last", "-o", "page.html", "--json")
    assert out, err
    told = json.loads(out)
    kinds = {one["kind"] for one in told["soak"]["findings"]}
    assert (code, kinds - {"drift"}) == (int(bool(kinds)), set()), err  # other programs change latency
    assert (told["run"]["id"], told["run"]["state"]) == (before["id"], "done")
    assert [one["kind"] for one in told["run"]["evaluation"]["events"]] == ["resumed"]
    assert told["run"]["evaluation"]["seconds"] >= 8
    assert told["soak"]["requests"] > before["requests"] > 0


@pytest.mark.full
def test_two_minutes_of_the_shipped_profile(bench_shell: BenchShell, simulator: Start) -> None:
    """Users, agents, clients that leave and probes of a healthy server raise nothing; --minutes counts under load.

    Answers do become slower while others take the CPUs (kind `drift`, which has tests of its own).
    """
    process = bench_shell.start("soak", endpoint_url(simulator(*PARSERS)), "--minutes", "2", "--json")
    out, err = process.communicate(timeout=300)
    told = json.loads(out)
    kinds = {one["kind"] for one in told["soak"]["findings"]}
    assert (kinds - {"drift"}, told["run"]["state"], process.returncode) == (set(), "done", int(bool(kinds))), err
    assert 110 <= told["soak"]["seconds"] <= 150
    assert (bench_shell.folder / f"{told['run']['id']}.html").exists()


def test_wrong_inputs(bench_shell: BenchShell) -> None:
    """Refused before anything is sent, with what to do."""
    for words, told in (
        (("soak",), "missing argument"),
        (("soak", "http://127.0.0.1:1", "--hours", "1", "--minutes", "1"), "exclude each other"),
        (("soak", "--resume", "last", "--hours", "1"), "takes no"),
        (("soak", "http://127.0.0.1:1", "--floor", "much"), "is no size"),
        (("soak", "http://127.0.0.1:1", "--profile", "soka"), "did you mean `soak`"),
    ):
        code, _, err = bench_shell.run(*words)
        assert (code, told in err) == (2, True), err
    code, out, _ = bench_shell.run("soak", "--dry-run")
    assert code == 0 and "agents: up to 12 requests" in out
