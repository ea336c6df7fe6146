"""`tune`: real starts of the simulator on two entries of this machine; what serves, comes back."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest
import yaml

from functional.command import UserShell
from functional.test_diagnose_deployment import recipe
from functional.test_install_supervisor import QUICK, SCALED, read_live, user_shell
from patience import CALL, wait_until

__all__ = ["user_shell"]  # a fixture
PACE = {
    "SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "1",
    "SPARKWRIGHT_SIMULATOR_STEP_MS": "8",
    "SPARKWRIGHT_SIMULATOR_PREFILL_TPS": "90000",
}
PARSERS = "parsers: {tool: hermes, reasoning: qwen3}\nserving:\n"
# A search is one command of some ten starts and benchmarks: on a machine with 25 processes a core, 600 s are too few.
SEARCHED = 840.0
FORCE = ("--force", "no GPU here", "--users", "2", "--seed", "3")


def written(shell: UserShell, **env: str) -> str:
    """The simulator's recipe with parsers and a pace that can be set."""
    path = shell.folder / recipe(shell, **{**QUICK, **PACE, **env})
    path.write_text(path.read_text().replace("serving:\n", PARSERS, 1).replace("context: 32768", "context: 1024"))
    return "./twin.yaml"


def run_tune(shell: UserShell, *words: str) -> tuple[int, dict[str, Any], str]:
    code, out, err = shell.run(
        "tune", "./twin.yaml", "--for", "throughput", "--json", *FORCE, *words, seconds=SEARCHED, **SCALED
    )
    assert out, err
    return code, json.loads(out), err


def only_options(*names: str) -> tuple[str, ...]:
    return tuple(word for name in names for word in ("--only", name))


FAULTS = "env.SPARKWRIGHT_SIMULATOR_FAULT=wrong@tool_text,oom@load"
BOTH = ("--set", FAULTS, "--set", "env.SPARKWRIGHT_SIMULATOR_STEP_MS=1")
SEARCH = (*only_options("SPARKWRIGHT_SIMULATOR_FAULT", "SPARKWRIGHT_SIMULATOR_STEP_MS"), *BOTH)


@pytest.mark.full
def test_a_search(user_shell: UserShell) -> None:
    """A setting with a planted quality fault is excluded by its probe, one that does not start is counted and named,
    the fastest of the others is the profile, which validates; nothing serves afterwards, for nothing did before."""
    written(user_shell)
    code, found, err = run_tune(user_shell, *SEARCH, "--out", "tuned.yaml", "--report", "page.html")
    assert code == 0, err
    states = {one["state"] for one in found["trials"]}
    assert states == {"measured", "excluded", "not started"}, found["trials"]
    lost = {one["state"]: one["detail"] for one in found["trials"] if one["state"] != "measured"}
    assert "tool-call" in lost["excluded"]
    assert "memory" in lost["not started"].lower(), lost
    assert found["best"] == {"env.SPARKWRIGHT_SIMULATOR_STEP_MS": "1"}
    assert found["done"] and found["simulated"] and "times the recipe's own" in found["verdict"]
    assert user_shell.run("recipes", "validate", "./tuned.yaml")[0] == 0
    profile = yaml.safe_load((user_shell.folder / "tuned.yaml").read_text())["profiles"]["tuned-throughput"]
    assert profile["env"] == {"SPARKWRIGHT_SIMULATOR_STEP_MS": "1"}
    page = (user_shell.folder / "page.html").read_text()
    assert 'class="plot"' in page and "SIMULATED" in page and "What each setting is worth" in page
    assert json.loads(user_shell.run("status", "--json")[1])["deployments"] == []
    assert len(json.loads(user_shell.run("runs", "list", "--tag", f"tune-{found['id']}", "--json")[1])["runs"]) >= 4


def test_candidates(user_shell: UserShell) -> None:
    """A dry run starts nothing; it lists the candidates, and what the plan refuses with its reason."""
    written(user_shell)
    code, found, _ = run_tune(
        user_shell, "--dry-run", "--only", "batched-tokens", "--set", "serving.memory_fraction=0.5,0.99"
    )
    assert (code, found["trials"]) == (0, [])
    refused = {one["changes"].get("serving.memory_fraction"): one["refused"] for one in found["candidates"]}
    assert "0.92" in refused[0.99] and not refused[0.5]
    assert not any(one["point"] for one in found["candidates"][:1] if any(one["point"]))
    code, found, err = run_tune(user_shell, "--dry-run", "--only", "sequences", "--set", "serving.context=many")
    assert code == 0 and any("expected one whole number" in one["refused"] for one in found["candidates"]), err
    assert not list(user_shell.folder.glob("*/state/deployments/*"))
    code, _, err = user_shell.run("tune", "./twin.yaml", "--for", "latency", "--only", "thread", "--dry-run")
    assert (code, "settings: " in err) == (2, True), err


@pytest.mark.full
def test_what_serves_comes_back(user_shell: UserShell) -> None:
    """Ctrl-C in a trial: the supervised deployment serves again, by its supervisor, as it was."""
    code, _, err = user_shell.run("up", written(user_shell), "--force", "no GPU here", **SCALED)
    assert code == 0, err
    before = read_live(user_shell)["pid"]
    words = ("tune", "./twin.yaml", "--for", "throughput", *FORCE, *STEPS_OF)
    process = user_shell.start(*words, **SCALED)
    assert process.stderr
    for line in process.stderr:
        if line.startswith("[2/"):
            break
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=CALL)[1]
    assert process.returncode == 130
    wait_until(
        lambda: read_live(user_shell)["phase"] == "ready",
        lambda: f"serving again; tune: {said}\nstatus: {user_shell.run('status')}\nlive: {read_live(user_shell)}",
    )
    assert read_live(user_shell)["pid"] == before


STEPS_OF = (*only_options("SPARKWRIGHT_SIMULATOR_STEP_MS"), "--set", "env.SPARKWRIGHT_SIMULATOR_STEP_MS=1,24,48")


@pytest.mark.full
def test_a_killed_search(user_shell: UserShell) -> None:
    """SIGKILL in a trial: --resume repeats none that had ended, and starts again at the end what served before."""
    code, _, err = user_shell.run("up", written(user_shell), "--no-supervise", "--force", "no GPU here", **SCALED)
    assert code == 0, err
    words = ("tune", "./twin.yaml", "--for", "throughput", *FORCE, *STEPS_OF)
    process = user_shell.start(*words, **SCALED)
    assert process.stderr
    for line in process.stderr:
        if line.startswith("[3/"):
            break
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    (journal,) = (user_shell.folder / ".local/state/sparkwright/tune").iterdir()
    ended = len(journal.read_text().splitlines()) - 1
    with journal.open("a") as file:
        file.write('{"point": [0], "ru')  # cut off while it was written
    code, found, err = run_tune(user_shell, "--resume", "last")
    assert (code, err.count("[1/"), found["done"]) == (0, 0, True), err
    assert len(found["trials"]) > ended >= 2
    assert found["best"] == {"env.SPARKWRIGHT_SIMULATOR_STEP_MS": "1"}
    (serves,) = json.loads(user_shell.run("status", "--json")[1])["deployments"]
    assert serves["name"] == "twin"


def test_misuse(user_shell: UserShell) -> None:
    """Another recipe or goal cannot resume a search; a file that is there is not written over; odd settings."""
    written(user_shell)
    (user_shell.folder / "there.yaml").write_text("mine")
    for words, hint in (
        (("--resume", "t-20260101-0000"), "no search"),
        (("--out", "there.yaml"), "exists"),
        (("--out", "away/new.yaml"), "is no folder"),
        (("--report", "away/page.html"), "is no folder"),
        (("--set", "serving.nothing=1"), "no such key"),
        (("--set", "serving.sequences"), "KEY=VALUE"),
        (("--set", "model.id=a/b"), "is no setting"),
    ):
        code, _, err = user_shell.run("tune", "./twin.yaml", "--for", "agents", *words, **SCALED)
        assert (code, hint in err) == (2, True), err
