"""The user's view of a fault, from `up` to `down`: the real supervisor, real ranks, the command itself."""

import json
import os
import signal
import time
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fakes.ports import free_port
from functional.command import UserShell
from functional.test_diagnose_deployment import recipe
from functional.test_install_supervisor import QUICK, read_live, supervision_folder, user_shell
from patience import wait_until

pytestmark = pytest.mark.full

__all__ = ["user_shell"]  # a fixture
# At 0.1 an idle engine without a turn for 3 s is an incident.
HALF = {"SPARKWRIGHT_SUPERVISOR_SCALE": "0.5"}


def kill_rank(shell: UserShell, node: str, number: int) -> None:
    """The engine's own process, as the kernel would."""
    leader = (shell.folder / node / f"state/deployments/twin/rank{number}/pid").read_text().split()[0]
    for pid in Path(f"/proc/{leader}/task/{leader}/children").read_text().split():
        os.kill(int(pid), signal.SIGKILL)


def add_hook(shell: UserShell) -> Path:
    """Writes what it is given; the file that it writes."""
    heard, folder = shell.folder / "heard", shell.folder / "a/state/hooks"
    folder.mkdir(mode=0o700)
    (folder / "tell").write_text(f'#!/bin/sh\necho "$SPARKWRIGHT_EVENT $SPARKWRIGHT_INCIDENT" >>{heard}\n')
    (folder / "tell").chmod(0o700)
    return heard


def up(shell: UserShell) -> None:
    """Runs `up` with a gateway of this test's own."""
    path = shell.folder / recipe(shell, **QUICK)
    path.write_text(path.read_text().replace("serving:\n", f"serving:\n  gateway: {{port: {free_port()}}}\n"))
    code, _, err = shell.run("up", str(path), "--force", "no GPU here", **HALF)
    assert code == 0, err


def figures(shell: UserShell) -> dict[str, float]:
    """The last figure of each name, from the key check's own port."""
    port = json.loads((supervision_folder(shell) / "door/door.json").read_text())["metrics"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    samples = [sample for family in families for sample in family.samples]
    assert {(s.labels["deployment"], s.labels["simulated"]) for s in samples} == {("twin", "true")}
    return {sample.name.removeprefix("sparkwright_"): sample.value for sample in samples}


def test_a_fault_is_reported_while_it_is_fixed_and_afterwards(user_shell: UserShell) -> None:
    """status, hooks, incidents list and show, logs --incident; and after `down` the history is still there."""
    began = time.monotonic()
    up(user_shell)
    heard = add_hook(user_shell)
    kill_rank(user_shell, "b", 1)

    def is_open_or_over() -> bool:
        live = read_live(user_shell)
        return live["incident"] == 1 or live["relaunches"] == 1

    wait_until(is_open_or_over, "the incident")
    text = user_shell.run("status")[1]
    assert "incident 1 is open" in text or "incidents: 1, 1 relaunch" in text, text
    wait_until(
        lambda: read_live(user_shell)["phase"] == "ready" and not read_live(user_shell)["incident"], "serving again"
    )
    wait_until(lambda: heard.exists() and "closed 1" in heard.read_text(), "the hooks")
    assert [line for line in heard.read_text().splitlines() if line.endswith(" 1")] == ["opened 1", "closed 1"]
    (listed,) = json.loads(user_shell.run("incidents", "list", "twin", "--json")[1])["incidents"]
    assert (listed["kind"], listed["open"], listed["outcome"], listed["simulated"]) == (
        "rank-exited",
        False,
        "serving again",
        True,
    )
    assert 0 < listed["away"] < time.monotonic() - began
    shown = user_shell.run("incidents", "show", "1")[1]
    for part in ("SIMULATED  incident 1  twin: rank-exited", "rank 1", "[LIVE009]", "launched again", "rank1-b.log"):
        assert part in shown, shown
    lines = user_shell.run("logs", "twin", "--incident", "1", "--rank", "1", "--tail", "1")[1]
    assert lines.startswith("1| ") and lines.count("\n") == 1
    assert "incidents: 1, 1 relaunch" in user_shell.run("status")[1]
    told = figures(user_shell)
    assert (told["supervisor_up"], told["incidents_total"], told["relaunches_total"]) == (1.0, 1.0, 1.0)
    assert told["rank_up"] == told["node_reachable"] == 1.0 and told["node_memory_available_bytes"] > 1e9
    assert told["engine_generation_tokens_total"] > 0
    assert user_shell.run("down", "twin")[0] == 0 and not supervision_folder(user_shell).exists()
    assert json.loads(user_shell.run("incidents", "show", "1", "--json")[1])["incident"]["outcome"] == "serving again"
