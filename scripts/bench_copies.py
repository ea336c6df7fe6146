"""Copies of weights between the testbed's two nodes: sparkwright's connections against rsync, in one run."""

from __future__ import annotations

import asyncio
import json
import os
import re
import statistics
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from bench_measures import Figure
from bench_nodes import Nodes

from sparkwright.adapters.hosts import ClusterHosts
from sparkwright.adapters.ssh import SshSettings
from sparkwright.domain.cluster import Cluster, Node, Transfer
from sparkwright.domain.command import Command
from sparkwright.remote import staging

SIZE, FILES = 1 << 30, 4
CAPPED, CAP = 384 << 20, "40mbit"
STREAMS = (1, 2, 4, 8, 16)
SMALL, LIMIT = 3000, 40_000_000
LOAD = """name: during-a-copy
title: first tokens of four users
repeats: 1
deadline: 60s
levels:
  - {name: 4 users, single: {prompt: 256, output: 8}, concurrency: 4, requests: 600}
"""
SOURCE, TARGET, DEVICE = "/home/spark/bench/from", "/home/spark/bench/to", "enp1s0f0np0"


class Bench:
    """nodes: source and target."""

    def __init__(self, bed: Any) -> None:
        self._source, self._target = bed.nodes
        cluster = Cluster("bench", tuple(Node(n.name, f"spark@{n.name}") for n in bed.nodes), bed.nodes[0].name)
        self._hosts = ClusterHosts(cluster, SshSettings(config=Path(bed.ssh_config)))
        keys = self._target.sh("cat /etc/ssh/ssh_host_*_key.pub").splitlines()
        known = staging.known_hosts(self._target.fabric, 22, keys)
        self.rate = 0.0  # MB/s of the last copy, without the time to connect
        self._peer = staging.Peer("spark", self._target.fabric, 22, known)

    def fill(self, size: int) -> None:
        each = size // FILES
        made = f"for n in 1 2 3 4; do head -c {each} /dev/urandom >{SOURCE}/$n; done; sync"
        self._source.sh(f"rm -rf {SOURCE}; mkdir -p {SOURCE}; {made}", user="spark", timeout=300)

    def small(self) -> None:
        made = f"mkdir {SOURCE}/$n; for m in $(seq {SMALL // 10}); do head -c 4k /dev/urandom >{SOURCE}/$n/$m; done"
        script = f"rm -rf {SOURCE}; mkdir -p {SOURCE}; for n in $(seq 10); do {made}; done; sync"
        self._source.sh(script, user="spark", timeout=300)

    def disk(self) -> float:
        """Seconds in which the target's disk takes as much, in the faster of two ways."""
        return min(self._written("conv=fdatasync"), self._written("oflag=direct conv=fdatasync"))

    def _written(self, how: str) -> float:
        began = time.monotonic()
        words = f"head -c {SIZE} /dev/zero | dd of={TARGET}.disk bs=8M iflag=fullblock {how}"
        self._target.sh(words, timeout=300)
        took = time.monotonic() - began
        self._target.sh(f"rm {TARGET}.disk")
        return took

    def rsync(self, limit: int = 0) -> tuple[float, float]:
        return self._take(staging.copy_tree(SOURCE, TARGET, self._peer, limit))

    def push(
        self, streams: int = 0, trusted: bool = False, limit: int = 0, yields: bool = False
    ) -> tuple[float, float]:
        return self._take(staging.push_tree(SOURCE, TARGET, self._peer, Transfer(streams, limit, trusted, yields)))

    def burn(self, seconds: float) -> None:
        """Takes what everybody else leaves of a CPU, on each node."""
        words = f"timeout {seconds:.0f} chrt -i 0 python3 -c 'while True: pass' || true"
        with ThreadPoolExecutor(2) as pool:
            for node in (self._source, self._target):
                pool.submit(node.sh, words, user="spark", timeout=300)

    def cap(self, on: bool) -> None:
        """A class for each connection, by the low byte of its port here: two of eight share a class at times."""
        self._source.exec(["tc", "qdisc", "del", "dev", DEVICE, "root"], check=False)
        if on:
            lines = [f"qdisc add dev {DEVICE} root handle 1: htb"]
            for n in range(256):
                lines.append(f"class add dev {DEVICE} parent 1: classid 1:{n + 1:x} htb rate {CAP} ceil {CAP}")
                match = f"u32 match ip sport {n} 0x00ff flowid 1:{n + 1:x}"
                lines.append(f"filter add dev {DEVICE} parent 1: protocol ip prio 1 {match}")
            self._source.exec(["tc", "-batch", "-"], input="\n".join(lines) + "\n")

    def _take(self, command: Command) -> tuple[float, float]:
        """Seconds, and CPU seconds of both nodes."""
        self._target.sh(f"rm -rf {TARGET}; mkdir -p /home/spark/bench; chown spark /home/spark/bench")
        cpu, began = self._cpu(), time.monotonic()
        code = asyncio.run(self._run(command))
        took, spent = time.monotonic() - began, self._cpu() - cpu
        if code:
            raise RuntimeError(f"a copy ended with {code}")
        return took, spent

    async def _run(self, command: Command) -> int:
        done = await self._hosts[self._source.name].run(command)
        await self._hosts.close()
        if rate := re.search(r"([0-9.]+)MB/s", (done.stdout.splitlines() or [""])[-1]):
            self.rate = float(rate[1])
        return done.exit_code

    def _cpu(self) -> float:
        usage = (int(node.sh("cat /sys/fs/cgroup/cpuacct/cpuacct.usage")) for node in (self._source, self._target))
        return sum(usage) / 1e9


def copies_take(bed: Any, repeats: int) -> list[Figure]:
    bench, gigabytes = Bench(bed), SIZE / 1e9
    bench.fill(SIZE)
    rows = [(bench.rsync(), bench.push(), bench.push(trusted=True), bench.disk()) for _ in range(repeats)]
    old, disk = min(row[0][0] for row in rows), min(row[3] for row in rows)
    base = f"rsync {gigabytes / old:.3f} GB/s, disk {gigabytes / disk:.3f} GB/s"
    curves = [
        f"GB/s by connections {how}: {', '.join(f'{n}: {gigabytes / bench.push(n, trusted)[0]:.3f}' for n in STREAMS)}"
        for how, trusted in (("over ssh", False), ("trusted", True))
    ]
    # A trusted link: four times rsync's rate, or the disk's own where that is lower
    least = tuple(row[2][0] / max(row[0][0] / 4, row[3]) for row in rows)
    cpu = tuple(new[1] / rsync[1] for rsync, new, _, _ in rows)
    figures = [
        Figure("copy over ssh, CPU", "testbed", cpu, "x", 1.0, f"rsync {rows[0][0][1] / gigabytes:.1f} s a GB"),
        Figure("copy over ssh", "testbed", tuple(row[1][0] / row[0][0] for row in rows), "x", 1.0, base, curves[0]),
        Figure("copy, trusted", "testbed", least, "x", 1.0, f"{base}, the slower of disk and 4 x rsync", curves[1]),
    ]
    bench.small()
    many = [(bench.push()[0], bench.rsync()[0]) for _ in range(repeats)]
    base = f"rsync {statistics.median(one[1] for one in many):.2f} s"
    figures.append(Figure(f"copy of {SMALL} files", "testbed", tuple(a / b for a, b in many), "x", 1.0, base))
    return [*figures, capped(bench, repeats)]


def capped(bench: Bench, repeats: int) -> Figure:
    bench.fill(CAPPED)
    bench.cap(True)
    try:
        eight, one = ([(bench.push(n), bench.rate)[1] for _ in range(repeats)] for n in (8, 1))
    finally:
        bench.cap(False)
    values = tuple(alone / all_ for all_, alone in zip(eight, one, strict=True))
    note = f"each connection at most {CAP}; rates without the time to connect"
    return Figure("eight connections", "testbed", values, "x", 1 / 7, f"one {one[0]:.1f} MB/s", note)


def served_next_to(nodes: Nodes, repeats: int) -> Figure:
    """TTFT p99 of the simulator while weights are copied at a limited rate, against the same load alone.

    What part of it is the machine's show rsync at the same rate, and programs that only compute, as far behind others
    as the copy is: one on each node.
    """
    bench, ways = Bench(nodes.bed), (bench_push, bench_rsync, bench_burn)
    bench.fill(SIZE)
    profile = nodes.folder / "load.yaml"
    profile.write_text(LOAD)
    nodes.run("up", str(nodes.recipe), "--json")
    found: dict[str, list[float]] = {way.__name__: [] for way in ways}
    alone = []
    try:
        for _ in range(repeats):
            for way in ways:
                alone.append(_first_token(nodes, profile))
                found[way.__name__].append(_during(nodes, profile, partial(way, bench)))
    finally:
        nodes.run("down", "recipe")
    usual = statistics.median(alone)
    copy, rsync, burn = ([one / usual for one in found[way.__name__]] for way in ways)
    base = f"alone {min(alone) * 1e3:.0f}-{max(alone) * 1e3:.0f} ms; rsync {_ratios(rsync)}, computing {_ratios(burn)}"
    note = f"a copy of {LIMIT / 1e6:.0f} MB/s; engine, load and both ends of the copy share {os.cpu_count()} CPUs"
    return Figure("TTFT p99 with a copy", "testbed", tuple(copy), "x", 1.1, base, note)


def _ratios(values: list[float]) -> str:
    return f"{statistics.median(values):.2f}x ({min(values):.2f}-{max(values):.2f})"


def bench_push(bench: Bench) -> None:
    bench.push(2, limit=LIMIT, yields=True)


def bench_rsync(bench: Bench) -> None:
    bench.rsync(LIMIT)


def bench_burn(bench: Bench) -> None:
    bench.burn(SIZE / LIMIT)


def _during(nodes: Nodes, profile: Path, work: Callable[[], None]) -> float:
    """work: again and again until the load has ended."""
    over = Event()

    def worked() -> None:
        while not over.is_set():
            work()

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(worked)
        try:
            found = _first_token(nodes, profile)
        finally:
            over.set()
        working.result()
    return found


def _first_token(nodes: Nodes, profile: Path) -> float:
    """Also of a run that the client's own lag makes invalid: all share the CPUs here."""
    words = nodes.argv("bench", "recipe", "--profile", str(profile), "--json")
    done = subprocess.run(words, capture_output=True, text=True, env=nodes.environment)
    found = json.loads(done.stdout)
    if not found.get("runs"):
        raise RuntimeError(f"no load: {done.stderr[-500:]}")
    return float(found["runs"][0]["levels"][0]["metrics"]["ttft"]["p99"]["value"])
