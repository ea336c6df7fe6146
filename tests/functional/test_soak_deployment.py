"""`soak` of a deployment of this cluster: its nodes' memory, its supervisor's incidents, its gateway."""

from __future__ import annotations

import json
import signal

import pytest

from functional.command import UserShell
from functional.test_install_supervisor import read_live, user_shell
from functional.test_supervised_cli import kill_rank, up
from patience import wait_until

__all__ = ["user_shell"]  # a fixture
# The deadline is longer than the relaunch may take: a soak that has ended by itself cannot be interrupted.
ROUNDS = """
name: rounds
title: Rounds of seconds
deadline: 90s
soak: {probe_every: 0s, leave_every: 1s}
levels:
  - name: users
    single: {prompt: 64, output: 16}
    concurrency: 4
    requests: 400
    seconds: 4s
    warmup: 0
"""


@pytest.mark.full
def test_a_rank_that_is_killed_meanwhile(user_shell: UserShell) -> None:
    """The soak reports the incident of what the supervisor started again, also after Ctrl-C and --resume; memory is
    known by node, and the run by its recipe.
    """
    up(user_shell)
    (user_shell.folder / "rounds.yaml").write_text(ROUNDS)
    process = user_shell.start("soak", "twin", "--profile", "./rounds.yaml")
    assert process.stderr
    next(line for line in process.stderr if "] users:" in line)
    kill_rank(user_shell, "b", 1)
    wait_until(
        lambda: read_live(user_shell)["incidents"] == 1 and read_live(user_shell)["phase"] == "ready", "serving again"
    )
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    code, out, err = user_shell.run("soak", "--resume", "last", "-o", "page.html", "--json")
    found = json.loads(out)
    assert (code, found["run"]["state"]) == (1, "done"), err
    kinds = {one["kind"] for one in found["soak"]["findings"]}
    assert "incident" in kinds and not kinds & {"leak", "floor"}, found["soak"]["findings"]
    known = found["run"]["conditions"]
    assert known["deployment"] == "twin" and known["simulated"] and known["recipe_hash"]
    assert {one["of"] for one in found["soak"]["memory"]} >= {"a"}, found["soak"]
    assert "SIMULATED" in (user_shell.folder / "page.html").read_text()
