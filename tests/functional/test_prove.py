"""`up --prove`: a real start of the simulator on two node entries, judged by the recipe's gates."""

import json
from collections.abc import Iterator

import pytest

from functional.command import UserShell
from functional.test_diagnose_deployment import recipe
from functional.test_diagnose_deployment import user_shell as two_nodes

pytestmark = pytest.mark.full

QUICK = {"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0.01"}
START = ("--no-supervise", "--force", "no GPU here", "--prove")
ROUND = """
title: One level
deadline: 6s
soak: {probe_every: 0s, leave_every: 0s}
levels:
  - name: users
    single: {prompt: 64, output: 8}
    requests: 4
    seconds: 3s
    warmup: 0
"""
PARSERS = "\nparsers: {tool: hermes, reasoning: qwen3}\n"


@pytest.fixture
def user_shell(tmp_path: object) -> Iterator[UserShell]:
    made: UserShell = two_nodes.__wrapped__(tmp_path)
    yield made
    made.run("down", "twin")
    made.clean()


def written(shell: UserShell, gates: str, **env: str) -> str:
    path = recipe(shell, **{**QUICK, **env})
    file = shell.folder / "twin.yaml"
    file.write_text(file.read_text() + PARSERS + gates)
    return path


@pytest.mark.full
def test_a_good_start_is_proven(user_shell: UserShell) -> None:
    """Two runs are stored and judged by the recipe's gates; one file judges both; a soak sees the nodes' memory."""
    gates = 'gates: [errors == 0, failed_probes == 0, "ttft.p99 < 30s @ level=4-users"]\n'
    code, out, err = user_shell.run("up", written(user_shell, gates), *START, "--json")
    assert code in (0, 1), err
    proof = json.loads(out)["proof"]
    assert [one["line"] for one in proof["gates"]][:2] == ["errors == 0", "failed_probes == 0"]
    missed = [one["why"] for one in proof["gates"] if not one["passed"]]
    assert all("the client was" in why for why in missed), missed  # a busy machine measures nothing, and says so
    assert (code == 0) == proof["passed"] == (not missed) and len(proof["runs"]) == 2
    (user_shell.folder / "gates.txt").write_text("errors == 0\nfailed_probes == 0\n")
    code, out, _ = user_shell.run("gate", *proof["runs"], "gates.txt", "--allow-simulated")
    # A level at which the client was late spoils its own gates; only a run that was late at all of them is not valid.
    invalid = [one for one in proof["gates"] if one["line"].endswith(" is valid")]
    assert out.count("pass ") == 2 and code == int(bool(invalid)), out
    (user_shell.folder / "rounds.yaml").write_text(ROUND)
    code, out, err = user_shell.run("soak", "twin", "--profile", "./rounds.yaml", "--floor", "1m", "-o", "soak.html")
    assert "] users: 4 requests, 0 failed" in err and "available on a" in err and "available on b" in err
    assert code in (0, 1) and "twin (rank 0 on a" in out  # other programs take this machine's memory, too


def test_a_start_that_serves_wrongly(user_shell: UserShell) -> None:
    """A failed probe is exit status 1 without gates of the recipe's own; the deployment is still there."""
    there = written(user_shell, "", SPARKWRIGHT_SIMULATOR_FAULT="wrong@tool_text")
    code, out, err = user_shell.run("up", there, *START)
    assert code == 1, err
    assert "NOT proven" in out and "FAIL  failed_probes == 0" in out and "pass  errors == 0" in out
    _, out, _ = user_shell.run("status", "--json")
    assert [one["name"] for one in json.loads(out)["deployments"]] == ["twin"]
