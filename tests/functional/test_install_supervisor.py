"""`up` leaves a supervisor that needs neither the caller nor systemd, and `down` takes it away: real processes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fakes.processes import command_lines
from functional.command import UserShell
from functional.test_diagnose_deployment import recipe
from patience import wait_until

pytestmark = pytest.mark.full

SCALED = {"SPARKWRIGHT_SUPERVISOR_SCALE": "0.1"}
QUICK = {"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0.01"}
KEY = "sk-a-key-of-this-test"


@pytest.fixture
def user_shell(tmp_path: Path) -> Iterator[UserShell]:
    """Two entries that are this machine, distinguished by their state folders."""
    entry = (
        "  - {{name: {0}, ssh: local, fabric: {{address: 127.0.0.{2}, interface: lo, hcas: []}},"
        " paths: {{state: {1}/{0}/state, models: {1}/models, hub: {1}/hub, cache: {1}/cache}}}}\n"
    )
    nodes = "".join(entry.format(name, tmp_path, number) for number, name in enumerate("ab", 1))
    (tmp_path / "cluster.yaml").write_text(f"head: a\nnodes:\n{nodes}")
    made = UserShell(tmp_path)
    yield made
    made.run("down", "twin")
    made.clean()


def up(shell: UserShell, **env: str) -> Any:
    given = (recipe(shell, **{**QUICK, **env}), "--json", "--force", "no GPU here")
    code, out, err = shell.run("up", *given, **SCALED)
    assert code == 0, err
    return json.loads(out)


def supervision_folder(shell: UserShell) -> Path:
    return shell.folder / "a/state/supervision/twin"


def read_live(shell: UserShell) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((supervision_folder(shell) / "live.json").read_text())
    return found


def leader(shell: UserShell) -> int:
    """The shell that starts the supervisor again."""
    return int((supervision_folder(shell) / "services/supervisor/pid").read_text().split()[0])


def killed(shell: UserShell, torn: Sequence[str] = ()) -> None:
    """The supervisor, by SIGKILL; the next one is there afterwards, and finds the `torn` files of its folder broken."""
    before = read_live(shell)["pid"]
    os.kill(before, signal.SIGSTOP)  # it would save its state over a torn one, and end itself for another request
    for name in torn:
        (supervision_folder(shell) / name).write_text("{ torn")
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: read_live(shell)["pid"] != before, "the next supervisor")


def wait_until_ended(shell: UserShell) -> None:
    """Waits a moment for the readers of logs, until they see that their supervisor was killed."""
    wait_until(lambda: not [line for line in command_lines() if str(shell.folder) in line], "all processes to end")


def test_an_up_that_was_killed_holds_nobody_up(user_shell: UserShell) -> None:
    """Guards the next call of the same user: it waits until the killed one's last commands are over, and goes on."""
    lease = Path(os.environ.get("SPARKWRIGHT_LOCK_DIR", "/run/lock")) / "sparkwright/lease"
    slow = recipe(user_shell, SPARKWRIGHT_SIMULATOR_TIME_SCALE="1")
    with user_shell.start("up", slow, "--force", "no GPU here") as call:
        wait_until(lambda: lease.exists() and f" {call.pid} " in lease.read_text(), "the lease of the call", poll=0.01)
        call.kill()
    code, _, err = user_shell.run("up", recipe(user_shell, **QUICK), "--force", "no GPU here", **SCALED)
    assert code == 0 and "that process of this machine has ended: it is taken over" in err, err
    assert not lease.exists()
    assert user_shell.run("down", "twin")[0] == 0
    wait_until_ended(user_shell)


MORE = [pytest.param(phase, marks=pytest.mark.full) for phase in ("draining", "starting")]


def test_up_leaves_a_supervisor_and_down_leaves_nothing(user_shell: UserShell) -> None:
    """It outlives its caller, is seen by `status`, comes back when killed, and goes with all its files at the end."""
    told = up(user_shell)["supervision"]
    assert told["node"] == "a" and "SUP002" in [finding["code"] for finding in told["findings"]]

    def shown() -> Any:
        return json.loads(user_shell.run("status", "--json")[1])["deployments"][0]

    wait_until(lambda: shown()["state"] == "ready", "the supervisor to have seen it serve")
    assert shown()["supervised"]
    own = sorted((line for line in command_lines() if str(user_shell.folder) in line), key=len)
    assert len(own) > 4 and len(own[-1]) < 1000, own[-1]  # what `ps` shows is no script
    killed(user_shell)
    wait_until(lambda: read_live(user_shell)["phase"] == "ready", "the next supervisor to see it serve")
    os.kill(leader(user_shell), signal.SIGKILL)
    code, _, err = user_shell.run("down", "twin")
    assert code == 0, err
    state = user_shell.folder / "a/state"
    left = {path.relative_to(state).parts[0] for path in state.rglob("*") if path.is_file()}
    database = {f"store.sqlite{end}" for end in ("", "-wal", "-shm")}
    assert left <= {"audit.log", "incidents", "door", "served"} | database  # served: for the next `up`
    wait_until_ended(user_shell)


@pytest.mark.full
@pytest.mark.parametrize("phase", ["loading", *MORE])
def test_a_person_goes_first_whatever_it_is_about(user_shell: UserShell, phase: str) -> None:
    """`down` in the middle of a relaunch: the supervisor gives way, its lease too, and no rank comes after."""
    up(user_shell, SPARKWRIGHT_SIMULATOR_TIME_SCALE="0.1")
    os.kill(int(rank_pids(user_shell)[1].split()[0]), signal.SIGKILL)
    wait_until(lambda: read_live(user_shell)["phase"] == phase, phase)
    code, _, err = user_shell.run("down", "twin")
    assert code == 0, err
    time.sleep(1)
    wait_until_ended(user_shell)


@pytest.mark.full
def test_a_second_supervisor_refuses(user_shell: UserShell) -> None:
    """Two cannot act: the one that comes later reports who is there, and ends."""
    up(user_shell)
    words = [sys.executable, "-m", "sparkwright.supervisor", "run", "--home", str(supervision_folder(user_shell))]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 4 and f"process {read_live(user_shell)['pid']}" in done.stderr


def test_up_again_changes_nothing_and_fixes_what_is_broken(user_shell: UserShell) -> None:
    """The same supervisor goes on; one that is gone is there again."""
    up(user_shell)
    before = read_live(user_shell)["pid"]
    assert up_again(user_shell)["done"] == "already serving" and read_live(user_shell)["pid"] == before
    os.kill(leader(user_shell), signal.SIGKILL)
    os.kill(before, signal.SIGKILL)
    assert up_again(user_shell)["supervision"]["node"] == "a"
    wait_until(lambda: read_live(user_shell)["pid"] not in (0, before), "the new one's first words")


def up_again(shell: UserShell) -> Any:
    code, out, err = shell.run("up", "./twin.yaml", "--json", "--force", "no GPU here", **SCALED)
    assert code == 0, err
    return json.loads(out)


def test_broken_files_stop_nothing(user_shell: UserShell) -> None:
    """A torn state: put aside, reported until a person takes it away, and what serves serves on. A torn request: it
    rests, reports it, and `up` fixes it."""
    up(user_shell)
    here, ranks = supervision_folder(user_shell), rank_pids(user_shell)
    killed(user_shell, torn=["state.json"])
    wait_until(
        lambda: read_live(user_shell)["phase"] == "degraded" and "state.json.bad" in read_live(user_shell)["reason"],
        "that it is told",
    )
    (here / "state.json.bad").unlink()
    wait_until(lambda: read_live(user_shell)["phase"] == "ready", "going on")
    killed(user_shell, torn=["desired.json", "desired.json.bak"])
    wait_until(lambda: "cannot be read" in read_live(user_shell)["reason"], "that it says so")
    assert up_again(user_shell)["done"] == "already serving"
    wait_until(lambda: read_live(user_shell)["reason"] == "", "that it is mended")
    assert rank_pids(user_shell) == ranks


def rank_pids(shell: UserShell) -> list[str]:
    return [path.read_text() for path in sorted(shell.folder.glob("*/state/deployments/twin/rank*/pid"))]


@pytest.mark.full
def test_secrets_are_in_closed_files_only(user_shell: UserShell) -> None:
    """Not in argv, units, environments of services, logs, or anything that others may read."""
    path = user_shell.folder / "twin.yaml"
    recipe(user_shell, **QUICK)
    text = path.read_text().replace("serving:\n", "serving:\n  api_key_env: TWIN_KEY\n")
    path.write_text(text)
    code, _, err = user_shell.run("up", "./twin.yaml", "--force", "no GPU here", **SCALED, TWIN_KEY=KEY)
    assert code == 0, err
    assert not [line for line in command_lines() if KEY in line]
    for pid in (read_live(user_shell)["pid"], leader(user_shell)):
        assert KEY.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
    modes = modes_of_holders((user_shell.folder / "a/state").rglob("*"))
    assert supervision_folder(user_shell) / "secrets.json" in modes
    assert set(modes.values()) == {0}


def modes_of_holders(paths: Iterable[Path]) -> dict[Path, int]:
    """The rights of others to the files that hold the key; files are written anew meanwhile."""
    found = {}
    for path in paths:
        with suppress(FileNotFoundError):
            if path.is_file() and KEY.encode() in path.read_bytes():
                found[path] = path.stat().st_mode & 0o077
    return found
