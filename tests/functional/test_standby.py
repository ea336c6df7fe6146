"""The standby of a head on three nodes that are this machine: it takes gateway and supervision over, and gives them
back."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from functional.command import UserShell
from functional.gateway.gateways import has_caddy
from functional.test_install_supervisor import SCALED, wait_until_ended
from functional.test_several import FORCE, Served
from patience import wait_until
from sparkwright.domain.standby import RETURN_FILE

pytestmark = pytest.mark.full
NAME = "alpha"


@pytest.fixture
def three_nodes(tmp_path: Path) -> Iterator[UserShell]:
    entry = (
        "  - {{name: {0}, ssh: local, fabric: {{address: 127.0.0.{2}, interface: lo, hcas: []}},"
        " env: {{SPARKWRIGHT_LOCK_DIR: {1}/{0}}},"
        " paths: {{state: {1}/{0}/state, models: {1}/models, hub: {1}/hub, cache: {1}/cache}}}}\n"
    )
    nodes = "".join(entry.format(name, tmp_path, number) for number, name in enumerate("abc", 1))
    for name in "abc":
        (tmp_path / name).mkdir()
    (tmp_path / "cluster.yaml").write_text(f"name: lab\nhead: a\nstandby: b\nnodes:\n{nodes}")
    made = UserShell(tmp_path)
    yield made
    made.run("down", NAME)
    made.clean()


@pytest.fixture
def served(three_nodes: UserShell) -> Served:
    if not has_caddy():
        pytest.skip("caddy is not installed")
    return Served(three_nodes)


def up(served: Served) -> Any:
    return served.good("up", f"{served.recipe(NAME)}@one-node", "--replicas", "2", *FORCE)


def folder(shell: UserShell, node: str) -> Path:
    return shell.folder / node / "state/supervision/_standby"


def read_term(shell: UserShell, node: str) -> dict[str, Any]:
    inner = "" if node == "a" else "state/supervision/_standby/"
    path = folder(shell, node) / f"{inner}term.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"until": 0.0}
    return found


def has_votes(shell: UserShell, node: str) -> bool:
    return float(Path("/proc/uptime").read_text().split()[0]) < read_term(shell, node)["until"]


def ask_chat(client: httpx.Client) -> int:
    body = {"model": NAME, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 2}
    try:
        return client.post("/v1/chat/completions", json=body).status_code
    except httpx.HTTPError:
        return 0


def processes_of(node: Path) -> list[int]:
    """Processes that have the node's folder in their command line or environment, or as their own folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            place = os.readlink(path / "cwd")
            words = "".join((path / name).read_bytes().decode(errors="replace") for name in ("cmdline", "environ"))
        except OSError:
            continue
        if int(path.name) != os.getpid() and (place.startswith(str(node)) or f"{node}/" in words):
            found.append(int(path.name))
    return found


def kill_node(node: Path) -> None:
    """SIGKILL to all that runs there, until nothing is left: without systemd nothing starts it again."""
    while gone := processes_of(node):
        for pid in gone:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextmanager
def kept_away(path: Path) -> Iterator[None]:
    """The standby gives the role back all the time: on one machine the two share a port, and `up` must find it free."""
    over = threading.Event()

    def go() -> None:
        while not over.wait(1.0):
            path.touch()

    thread = threading.Thread(target=go)
    path.touch()
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def rank_of(shell: UserShell) -> int:
    """The process of the second replica, on whichever of the two other nodes it was put."""
    for path in shell.folder.glob("[bc]/state/deployments/alpha-r2/rank0/pid"):
        with suppress(FileNotFoundError):  # a new start removes it
            return int(path.read_text().split()[0])
    return 0


def seal_on(shell: UserShell, node: str) -> tuple[int, str]:
    number, name, *_ = (shell.folder / node / "state/seals/lab").read_text().split()
    return int(number), name


def restarted_there(served: Served, client: httpx.Client) -> int:
    """The standby starts a rank that ends while the head is away, under its own seal; the new process."""
    shell = served.shell

    def watcher() -> dict[str, Any]:
        found = json.loads(shell.run("status", "--json", **SCALED)[1])["deployments"]
        return next(one["supervised"] or {} for one in found if one["name"] == "alpha-r2")

    wait_until(lambda: watcher().get("node") == "b" and watcher()["taken"], "the standby to supervise", poll=2)
    # It is asked for again until both nodes have answered.
    wait_until(
        lambda: seal_on(shell, "b")[1] == "b" == seal_on(shell, "c")[1], "the standby's seal on both nodes", poll=1
    )
    before = rank_of(shell)
    assert before > 0, "process group 0 is that of this test itself"
    os.killpg(before, signal.SIGKILL)
    wait_until(
        lambda: rank_of(shell) not in (0, before) and ask_chat(client) == 200, "the replica to come back", poll=1
    )
    told = "".join(one.read_text() for one in (shell.folder / "b/state/incidents/").glob("*/*/incident.json"))
    assert '"alpha-r2"' in told and "has taken its gateway and supervision over" in told, told
    return rank_of(shell)


def test_an_owner_makes_the_standby_the_head(served: Served) -> None:
    """A dead head with a rank on it: the standby refuses its requests; with the dead node out of the cluster file and
    the standby as head, `up` serves at the standby's address and key, and nothing of the role is left."""
    shell = served.shell
    served.good("up", f"{served.recipe(NAME)}@one-node", *FORCE)
    with served.client as client:
        assert ask_chat(client) == 200
        kill_node(shell.folder / "a")
        wait_until(lambda: ask_chat(client) == 503, "the standby to answer for what it cannot serve")
        file = shell.folder / "cluster.yaml"
        head, *nodes = file.read_text().partition("nodes:\n")[2].splitlines(keepends=True)
        assert "name: a," in head
        file.write_text(f"name: lab\nhead: b\nnodes:\n{''.join(nodes)}")
        said = served.good("up", f"{served.recipe(NAME)}@one-node", *FORCE)
        told = said["supervision"]
        assert told["reach"], (told, [one["evidence"] for one in told["findings"]])
    with served.client as client:  # it has a certificate of its own
        wait_until(lambda: ask_chat(client) == 200, "the new head to serve")
    assert not folder(shell, "b").exists()
    served.good("down", NAME)
    wait_until_ended(shell)


def test_the_gateway_moves_to_the_standby_and_back(served: Served) -> None:
    """The life of the role: installed, copied keys, head killed, requests served by the replica that is left, given
    back by the next `up`, and nothing left after `down`."""
    shell = served.shell
    said = up(served)["replicas"]
    reach = said[0]["supervision"]["reach"]
    assert reach["second"].endswith(f":{served.door}/v1"), reach
    assert "SUP012" not in json.dumps(said), said
    status = json.loads(shell.run("status", "--json", **SCALED)[1])["deployments"]
    assert {one["name"]: one["ranks"][0]["node"] for one in status}["alpha-r1"] == "a"
    assert all(one["supervised"]["second"] == reach["second"] for one in status), status
    assert has_votes(shell, "a") and not has_votes(shell, "b")
    keys = folder(shell, "b") / "state/door/keys.json"
    wait_until(
        lambda: keys.exists() and keys.read_bytes() == (shell.folder / "a/state/door/keys.json").read_bytes(),
        "the keys on the standby",
    )
    assert keys.stat().st_mode & 0o777 == 0o600
    assert (keys.parent / "ca/pki/authorities/local/root.key").stat().st_mode & 0o777 == 0o600
    with served.client as client:
        assert ask_chat(client) == 200
        kill_node(shell.folder / "a")
        wait_until(lambda: ask_chat(client) == 200, "the standby to serve")
        assert has_votes(shell, "b") and not has_votes(shell, "a")
        incidents = shell.folder / "b/state/incidents"
        wait_until(lambda: list(incidents.glob("*/*/incident.json")), "an incident about the take-over")
        restarted = restarted_there(served, client)
        with kept_away(folder(shell, "b") / RETURN_FILE):
            wait_until(lambda: ask_chat(client) == 0, "the standby to end")
            assert not has_votes(shell, "b")
            # Without systemd nothing starts the killed supervisor again
            said = served.good("up", f"{served.recipe(NAME)}@one-node", "--replicas", "2", "--no-rollback", *FORCE)
        again = said["replicas"][-1]["supervision"]
        assert rank_of(shell) == restarted, "the head takes up what the standby has started"
        # The head asks again until both nodes have answered.
        wait_until(lambda: seal_on(shell, "b")[1] == "a", "the head's seal on the standby", poll=1)
        assert again["reach"] and again["reach"]["second"] == reach["second"], again
        assert has_votes(shell, "a") and not has_votes(shell, "b")
        wait_until(lambda: ask_chat(client) == 200, "the head to serve again")
    served.good("down", NAME)
    assert not folder(shell, "a").exists() and not folder(shell, "b").exists()
    wait_until_ended(shell)
