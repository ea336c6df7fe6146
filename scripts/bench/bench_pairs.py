"""Pairs of nodes between which the bench copies: the testbed's two, or two namespaces with CPUs of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml
from bench_nodes import RECIPE, ROOT, Nodes

# Of a process table: all that runs, and what has ended below it. Process 1 inherits the rest.
_CPU = r"cat /proc/[0-9]*/stat 2>/dev/null | sed 's/.*) //' | awk '{ s += $12 + $13 + $14 + $15 } END { print s }'"
# The receiver's half of a virtual cable's work is done by the sender's CPUs, unless the receiver's are named.
_RECEIVES = "mkdir -p {0}; mount -t sysfs sysfs {0} && echo {1} >{0}/class/net/fab0/queues/rx-0/rps_cpus"


class CopyEnd(Protocol):
    """One node. sh: as the owner of what is copied; root: as root. Both raise RuntimeError. cpu: seconds so far."""

    @property
    def name(self) -> str: ...
    @property
    def fabric(self) -> str: ...
    def sh(self, script: str) -> str: ...
    def root(self, script: str) -> str: ...
    def cpu(self) -> float: ...


@dataclass(frozen=True)
class Pair:
    """folder: on both nodes, the owner's. device: the fabric's interface. note: what the figures hold for."""

    where: str
    source: CopyEnd
    target: CopyEnd
    user: str
    ssh_config: Path
    folder: str
    device: str
    note: str


@dataclass(frozen=True)
class TestbedEnd:
    node: Any

    @property
    def name(self) -> str:
        return str(self.node.name)

    @property
    def fabric(self) -> str:
        return str(self.node.fabric)

    def sh(self, script: str) -> str:
        return str(self.node.sh(script, user="spark", timeout=300))

    def root(self, script: str) -> str:
        return str(self.node.sh(script, timeout=300))

    def cpu(self) -> float:
        return int(self.root("cat /sys/fs/cgroup/cpuacct/cpuacct.usage")) / 1e9


@dataclass(frozen=True)
class NamespaceEnd:
    node: Any

    @property
    def name(self) -> str:
        return str(self.node.name)

    @property
    def fabric(self) -> str:
        return str(self.node.fabric)

    def sh(self, script: str) -> str:
        """Runs a script without ssh, whose start would count as the node's work."""
        enter = ("nsenter", "-t", self.node.first_process(), "-m", "-n", "-u", "-p", "--", "sh", "-c", script)
        words = ("taskset", "-c", ",".join(map(str, self.node.cpus)), *enter)
        done = subprocess.run(words, capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise RuntimeError(f"{self.name}: {script[:80]} ended with {done.returncode}: {done.stderr[-300:]}")
        return done.stdout.strip()

    root = sh

    def cpu(self) -> float:
        return int(self.sh(_CPU)) / os.sysconf("SC_CLK_TCK")


def testbed_pair(bed: Any) -> Pair:
    source, target = (TestbedEnd(node) for node in bed.nodes)
    note = f"both nodes and all else share {os.cpu_count()} CPUs"
    target.root("mkdir -p /home/spark/bench; chown spark /home/spark/bench")
    source.root("mkdir -p /home/spark/bench; chown spark /home/spark/bench")
    folder, config = "/home/spark/bench", Path(bed.ssh_config)
    return Pair("testbed", source, target, "spark", config, folder, "enp1s0f0np0", note)


def shares(cpus: list[int]) -> tuple[list[int], list[int], list[int]]:
    """CPUs of the two nodes, three eighths each, and of the users, who share them all where there are few."""
    many = max(1, len(cpus) * 3 // 8)
    return cpus[:many], cpus[many : 2 * many], cpus[2 * many :] or cpus


def mask_of(cpus: list[int]) -> str:
    """The mask in sysfs' form: hexadecimal, a comma before each 32 bits."""
    text = f"{sum(1 << cpu for cpu in cpus):x}"
    return ",".join(text[max(0, at - 8) : at] for at in range((len(text) - 1) % 8 + 1, len(text) + 1, 8))


@contextmanager
def namespaces(work: Path) -> Iterator[tuple[Pair, Nodes]]:
    """Takes root. This process, and what it starts, keeps to the users' CPUs. work: a new folder outside /tmp."""
    sys.path.insert(0, str(ROOT / "tools"))
    from gpu import two_nodes  # type: ignore[import-not-found]

    if missing := two_nodes.lacking():
        raise RuntimeError("; ".join(missing))
    *owned, users = shares(sorted(os.sched_getaffinity(0)))
    made = two_nodes.TwoNodes(work, simulated=True)
    for node, cpus in zip(made.nodes, owned, strict=True):
        node.cpus = tuple(cpus)
    os.sched_setaffinity(0, users)
    with made as nodes:
        os.environ.update(nodes.environ)
        ends = [NamespaceEnd(node) for node in nodes.nodes]
        for end, cpus in zip(ends, owned, strict=True):
            end.sh(_RECEIVES.format(end.node.folder / "sys", mask_of(cpus)))
        note = f"{len(owned[0])} CPUs a node, {len(users)} for users; both nodes have the same disk and kernel"
        pair = Pair("namespaces", ends[0], ends[1], "root", nodes.config, str(work / "bench"), "fab0", note)
        yield pair, _deployment(work, two_nodes.cluster(nodes), nodes.environ, nodes.config)


def _deployment(work: Path, cluster: dict[str, Any], environ: dict[str, str], config: Path) -> Nodes:
    (work / "cluster.yaml").write_text(yaml.safe_dump(cluster))
    recipe = yaml.safe_load(RECIPE.format(venv=sys.prefix, port=8000, master=25000))
    if path := os.environ.get("PYTHONPATH"):
        recipe["env"] = {"PYTHONPATH": path}
    (work / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    own = {**environ, "HOME": str(work), "XDG_RUNTIME_DIR": str(work)}
    return Nodes("namespaces", work, work / "cluster.yaml", work / "recipe.yaml", ssh_config=config, environ=own)
