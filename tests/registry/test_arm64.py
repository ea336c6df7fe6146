"""The nodes are arm64: what runs on them is run there, on two nodes whose every program is an arm64 one (qemu-user)."""

import json
import os
import re
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from functional.tiny_gguf import write_tiny_gguf
from registry.arm64_nodes import VENV, Arm64Nodes, install_emulator, lacking, make_root, two_nodes

pytestmark = [pytest.mark.full, pytest.mark.timeout(3600, func_only=True)]
FOLDER = Path("/var/tmp/sparkwright-tests")
FORCE = ("--force", "no GPU here")
PORT = 8000
# Every instruction is emulated: the import of a program alone takes half a minute.
SLOW = {name: {"stuck_after": "20min"} for name in ("start", "rendezvous", "load", "server")}


class Arm64Cluster:
    """The command on this machine, with the two nodes as its cluster."""

    def __init__(self, nodes: Arm64Nodes, folder: Path) -> None:
        self.nodes, self.folder = nodes, folder
        self.environ = {**os.environ, **nodes.environ, "HOME": str(folder), "NO_COLOR": "1", "COLUMNS": "150"}
        self.write("cluster.yaml", two_nodes.cluster(nodes))

    def write(self, name: str, tree: dict[str, Any]) -> str:
        (self.folder / name).write_text(yaml.safe_dump(tree))
        return f"./{name}"

    def run(self, *words: str) -> tuple[int, str]:
        argv = (sys.executable, "-m", "sparkwright", *words)
        where = {"env": self.environ, "cwd": self.folder}
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1800, **where)
        return done.returncode, done.stdout if "--json" in words and done.returncode == 0 else done.stdout + done.stderr

    def good(self, *words: str) -> str:
        code, said = self.run(*words)
        assert code == 0, f"{' '.join(words)}: exit {code}\n{said[-4000:]}"
        return said

    def wait_for(self, condition: Callable[[], bool], seconds: float = 1200) -> None:
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until, "not in time"
            time.sleep(5)


@pytest.fixture(scope="module")
def arm64_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arm64Cluster]:
    install_emulator()
    if why := lacking():
        pytest.skip(f"hardware: {why}")
    root = FOLDER / "arm64-trixie"
    if why := make_root(root):
        pytest.skip(f"data: {why}")
    home = tmp_path_factory.mktemp("home")
    work = FOLDER / f"arm64-{os.getpid()}"
    with Arm64Nodes(work, root) as nodes:
        yield Arm64Cluster(nodes, home)
    subprocess.run(["rm", "-rf", str(work)], check=False)


def test_facts_and_checks(arm64_cluster: Arm64Cluster) -> None:
    """Each fact of a node is read or says why not, and none of it is of another processor."""
    nodes = json.loads(arm64_cluster.good("facts", "--json"))["nodes"]
    assert set(nodes) == {"spark-1", "spark-2"}
    for facts in nodes.values():
        assert facts["identity"]["arch"] == "aarch64"
        assert facts["memory"]["total"] > 1 << 30 and facts["kernel"]["release"]
    code, said = arm64_cluster.run("check", "--json")
    assert code in (0, 1), said
    assert "aarch64" not in json.dumps([one for one in json.loads(said)["findings"] if one["code"] == "NODE001"])


def tiny_recipe(arm64: Arm64Cluster, **serving: object) -> str:
    model = arm64.nodes.nodes[0].folder / "models/tiny.gguf"
    recipe = {
        "name": "tiny",
        "title": "Random weights",
        "model": {"path": str(model if model.exists() else write_tiny_gguf(model)), "served_name": "tiny"},
        "engine": {"name": "llama-cpp", "version": "2026.10.11549", "runtime": "process", "venv": f"/{VENV}"},
        "serving": {"port": PORT, "context": 512, "sequences": 2, "batched_tokens": 256, "coherence": False, **serving},
        "flags": {"n-gpu-layers": 0, "threads": 2},
        "phases": SLOW,
    }
    return arm64.write("tiny.yaml", recipe)


def test_a_real_engine(arm64_cluster: Arm64Cluster) -> None:
    """llama.cpp's arm64 build, with the launcher that travels with the rank; its own parser is asked, too."""
    recipe = tiny_recipe(arm64_cluster)
    arm64_cluster.good("engines", "update", "llama-cpp", "--venv", f"/{VENV}", "--node", "spark-1")
    arm64_cluster.good("up", recipe, "--no-supervise", *FORCE)
    arm64_cluster.good("down", "tiny")


def test_supervisor_gateway_and_console(arm64_cluster: Arm64Cluster) -> None:
    """The program that `up` leaves on the head, its Python packages and Caddy are arm64 ones, and so is what they do.

    A chat goes through the gateway with its own CA and key; the console sends a browser to its login; a killed rank is
    noticed and launched again.
    """
    recipe = tiny_recipe(arm64_cluster, expose="all")
    said = arm64_cluster.good("up", recipe, "--json", *FORCE)
    try:
        ways = re.findall(r"https://[\d.]+:8443", said)
        assert ways, said
        arm64_cluster.good("connect", "curl", "tiny")
        (ca,) = (arm64_cluster.folder / ".local/state/sparkwright").rglob("ca.crt")
        page = httpx.get(f"{ways[0]}/console/", verify=ssl.create_default_context(cafile=ca), timeout=120)
        assert page.status_code == 303 and page.headers["location"].endswith("/login")
        rank = arm64_cluster.nodes.nodes[0].folder / "state/deployments/tiny/rank0"
        assert arm64_cluster.nodes.call("spark-1", f"read -r p s <{rank}/pid; kill -9 -$p").returncode == 0
        arm64_cluster.wait_for(lambda: "serving again" in arm64_cluster.good("incidents", "list"))
    finally:
        arm64_cluster.good("down", "tiny")
