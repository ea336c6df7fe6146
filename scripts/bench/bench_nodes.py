"""Nodes for the bench: the embedded ones, the same behind a real sshd on loopback, and the testbed's."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from sparkwright.cli.demo import cluster_yaml
from sparkwright.domain.cluster import Cluster, Fabric, Node
from sparkwright.simulator.nodes import make_cluster

ROOT = Path(__file__).resolve().parents[2]
RECIPE = """title: bench
model: {{id: sparkwright/twin-tiny, served_name: twin-tiny, size: 2GiB, simulated: true}}
engine: {{name: simulator, version: 0.21.0, runtime: process, venv: "{venv}"}}
nodes: 2
parallelism: {{tp: 2}}
serving: {{context: 32768, sequences: 8, port: {port}, master_port: {master}}}
"""
SPARKWRIGHT = (sys.executable, "-m", "sparkwright")


@dataclass(frozen=True)
class Nodes:
    """The place of the bench's work. kind: embedded, ssh or testbed. recipe, cluster: files. ssh: the client's words,
    () for local nodes; then each rank's node is an alias that it knows."""

    kind: str
    folder: Path
    cluster: Path
    recipe: Path
    ssh: tuple[str, ...] = ()
    ssh_config: Path | None = None
    local: Cluster | None = None
    environ: dict[str, str] = field(default_factory=dict)
    bed: Any = None

    def argv(self, *words: str) -> list[str]:
        config = ["--ssh-config", str(self.ssh_config)] if self.ssh_config else []
        return [*SPARKWRIGHT, *words, "--cluster", str(self.cluster), *config]

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, **self.environ}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Raises RuntimeError with what it reported."""
        done = subprocess.run(self.argv(*words), capture_output=True, text=True, env=self.environment)
        if done.returncode:
            raise RuntimeError(
                f"{self.kind}: sparkwright {' '.join(words)} ended with {done.returncode}: {done.stderr}"
            )
        return done

    def plan(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run("plan", str(self.recipe), "--json").stdout)
        return found


@contextmanager
def embedded(port: Callable[[], int]) -> Iterator[Nodes]:
    with _folder() as folder:
        cluster = make_cluster(folder)
        yield _written("embedded", folder, cluster, port)


@contextmanager
def over_ssh(port: Callable[[], int], count: int = 2) -> Iterator[Nodes]:
    """The embedded nodes through one real sshd on loopback: each node has an alias, a home and a fabric of its own."""
    with _folder() as folder, _sshd() as server:
        many = [_several(folder / str(n), n) for n in range((count + 1) // 2)]
        nodes = [node for cluster in many for node in cluster.nodes][:count]
        named = [replace(node, name=f"bench-{n}", ssh=f"bench-{n}") for n, node in enumerate(nodes, 1)]
        made = Cluster("bench", tuple(named), "bench-1", "bench", simulated=True)
        config = folder / "ssh_config"
        config.write_text("".join(server.host_block(node.name) for node in named) + server.common())
        control = ("-o", "ControlMaster=auto", "-o", f"ControlPath={folder}/c-%n", "-o", "ControlPersist=30")
        yield replace(
            _written("ssh", folder, made, port),
            ssh=("ssh", "-F", str(config), *control),
            ssh_config=config,
            environ={"XDG_RUNTIME_DIR": str(folder)},
        )


@contextmanager
def testbed(port: Callable[[], int]) -> Iterator[Nodes]:
    """The two system containers, when they run. Raises RuntimeError with the reason when they cannot be used."""
    bed = testbed_nodes()
    with _folder() as folder:
        cluster, recipe = folder / "cluster.yaml", folder / "recipe.yaml"
        nodes = [
            {"name": n.name, "ssh": f"spark@{n.name}", "fabric": {"address": n.fabric, "interface": "enp1s0f0np0"}}
            for n in bed.nodes
        ]
        cluster.write_text(yaml.safe_dump({"name": "testbed", "simulated": True, "nodes": nodes}))
        recipe.write_text(RECIPE.format(venv="/opt/sparkwright", port=port(), master=port()))
        control = ("-o", "ControlMaster=auto", "-o", f"ControlPath={folder}/c-%n", "-o", "ControlPersist=30")
        words = ("ssh", "-F", str(bed.ssh_config), "-l", "spark", *control)
        environ = {"XDG_RUNTIME_DIR": str(folder)}
        try:
            yield Nodes("testbed", folder, cluster, recipe, words, Path(bed.ssh_config), environ=environ, bed=bed)
        finally:
            bed.reset()
            bed.close()


def testbed_nodes() -> Any:
    if os.geteuid() != 0:
        raise RuntimeError("the testbed needs root")
    sys.path.insert(0, str(ROOT / "tools"))
    package = importlib.import_module("testbed")
    bed = package.Testbed(package.ContainerSettings.from_environment(), lambda _: None)
    down = [node.name for node in bed.nodes if node.state() != "running"]
    if down:
        raise RuntimeError(f"the testbed does not run ({', '.join(down)}): make testbed")
    bed = package.Testbed.ensure()
    bed.reset()
    return bed


@contextmanager
def _sshd() -> Iterator[Any]:
    sys.path.insert(0, str(ROOT / "tests"))
    module = importlib.import_module("fakes.sshd")
    if module.MISSING:
        raise RuntimeError(module.MISSING)
    server = module.Sshd()
    try:
        yield server.start()
    finally:
        server.stop()


def _several(folder: Path, number: int) -> Cluster:
    """A pair of embedded nodes whose fabric no other pair has."""
    made = make_cluster(folder)
    return replace(made, nodes=tuple(_moved(node, number) for node in made.nodes))


def _moved(node: Node, number: int) -> Node:
    address = (node.fabric.address or "").split(".")
    moved = ".".join([*address[:3], str(int(address[3]) + 2 * number)])
    return replace(node, fabric=Fabric(moved, node.fabric.interface, node.fabric.hcas))


def _written(kind: str, folder: Path, made: Cluster, port: Callable[[], int]) -> Nodes:
    cluster, recipe = folder / "cluster.yaml", folder / "recipe.yaml"
    cluster.write_text(cluster_yaml(made))
    venv = sys.prefix if kind == "ssh" else ""  # another node's Python has no simulator
    recipe.write_text(RECIPE.format(venv=venv, port=port(), master=port()).replace(', venv: ""', ""))
    return Nodes(kind, folder, cluster, recipe, local=made)


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="swb-", dir="/tmp"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
