"""`diagnose DEPLOYMENT`, and what a failed `up` reports: the simulator on two node entries that are this
machine."""

import json
import os
import re
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from fakes.ports import free_port
from functional.command import UserShell
from patience import wait_until

_SHIPPED = Path(__file__).parents[2] / "src/sparkwright/recipes/shipped/simulator.yaml"
RECIPE = _SHIPPED.read_text().replace("name: simulator\n", "name: twin\n", 1)


@pytest.fixture
def user_shell(tmp_path: Path) -> UserShell:
    entry = (
        "  - {{name: {0}, ssh: local, fabric: {{address: 127.0.0.{2}, interface: lo, hcas: []}},"
        " paths: {{state: {1}/{0}/state, models: {1}/models, hub: {1}/hub, cache: {1}/cache}}}}\n"
    )
    nodes = "".join(entry.format(name, tmp_path, number) for number, name in enumerate("ab", 1))
    (tmp_path / "cluster.yaml").write_text(f"head: a\nnodes:\n{nodes}")
    return UserShell(tmp_path)


def recipe(shell: UserShell, **env: str) -> str:
    text = RECIPE.replace("serving:\n", f"serving:\n  port: {free_port()}\n  master_port: {free_port()}\n")
    more = "".join(f"  {name}: '{value}'\n" for name, value in env.items())
    text = text.replace("env:\n", f"env:\n{more}") if "\nenv:\n" in text else f"{text}\nenv:\n{more}" if more else text
    (shell.folder / "twin.yaml").write_text(text)
    return "./twin.yaml"


@pytest.mark.full
def test_a_failed_up_names_the_root_cause_and_keeps_it(user_shell: UserShell) -> None:
    """Guards promise 3: cause, proof with rank and line, fix; kept next to the logs, and found again by name."""
    try:
        code, _, err = user_shell.run(
            "up", recipe(user_shell, SPARKWRIGHT_SIMULATOR_FAULT="oom@load"), "--no-supervise", "--force", "no GPU here"
        )
        assert code == 5, err
        assert re.search(r"^1\. .*\n   \[L[A-Z]{3}\d{3} ", err, re.MULTILINE), err
        assert re.search(r"rank [01] on [ab]:\d+  .*OutOfMemoryError", err), err
        where = re.search(r"^logs: +(\S+)$", err, re.MULTILINE)
        assert where
        kept = json.loads((Path(where[1]) / "diagnosis.json").read_text())
        names = [source["name"] for source in kept["sources"]]
        assert kept["causes"][0]["proof"] and names == ["rank 0 on a", "rank 1 on b", "versions on a", "versions on b"]
    finally:
        user_shell.run("down", "twin")
    code, out, err = user_shell.run("diagnose", "twin")
    assert code == 1 and "last saved evidence" in err
    assert kept["causes"][0]["key"] in out and "rank0-a.log:" in out
    user_shell.clean()


def test_a_killed_rank_is_named_while_the_head_still_answers(user_shell: UserShell) -> None:
    """Guards the case of /health 200 after a peer's death (captures m1): read from the nodes, nothing is changed."""
    try:
        code, _, err = user_shell.run("up", recipe(user_shell), "--no-supervise", "--force", "no GPU here")
        assert code == 0, err
        code, out, err = user_shell.run("diagnose", "twin")
        assert code == 0 and "serves since rank 0 on a:" in out, out + err
        assert out.startswith("SIMULATED")
        kill_worker(user_shell)
        code, out, err = user_shell.run("diagnose", "twin", "--json")
        assert code == 1, out + err
        found = json.loads(out)["diagnosis"]
        assert found["causes"][0]["key"] == "peer-rank-died"
        assert any(proof["source"] in ("the ranks' ends", "rank 0 on a") for proof in found["causes"][0]["proof"])
        code, out, _ = user_shell.run("status")
        assert code == 1 and "rank 1 on b" in out
    finally:
        user_shell.run("down", "twin")
        user_shell.clean()


def kill_worker(shell: UserShell) -> None:
    """SIGKILL to all of rank 1's processes, those that carry its state folder; returns when they have ended."""
    killed: set[int] = set()

    def are_gone() -> bool:
        found = worker_pids(shell)
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        killed.update(found)
        return not found and not any(map(is_alive, killed))

    wait_until(are_gone, lambda: f"the end of {killed}")
    assert killed


def worker_pids(shell: UserShell) -> list[int]:
    mark, found = str(shell.folder / "b" / "state").encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (entry / "environ").read_bytes() or mark in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def is_alive(pid: int) -> bool:
    """A process that ends has no environment any more, but holds its files until it is a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
