"""Copies of weights between two nodes: sparkwright's connections against rsync, in one run."""

from __future__ import annotations

import asyncio
import re
import statistics
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from bench_measures import BenchFigure
from bench_pairs import Pair

from sparkwright.adapters.hosts import ClusterHosts
from sparkwright.adapters.ssh import SshSettings
from sparkwright.domain.cluster import Cluster, Node, Transfer
from sparkwright.domain.command import Command
from sparkwright.remote import staging

SIZE, FILES = 1 << 30, 4
CAPPED_SECONDS = 30
STREAMS = (1, 2, 4, 8, 16)
SMALL = 3000
MEMORY = "/dev/shm/bench"


class Took(NamedTuple):
    """Seconds; CPU seconds of both nodes; MB/s of the copy itself, without the time to connect, 0 when unknown."""

    seconds: float
    cpu: float
    rate: float


@dataclass
class CopyBench:
    """size: bytes of a copy. folder: where both nodes have it, the pair's own by default."""

    pair: Pair
    size: int = SIZE
    folder: str = ""

    def __post_init__(self) -> None:
        self.folder, self.many = self.folder or self.pair.folder, False
        self.source, self.target = f"{self.folder}/from", f"{self.folder}/to"
        ends = (self.pair.source, self.pair.target)
        nodes = tuple(Node(end.name, f"{self.pair.user}@{end.name}") for end in ends)
        settings = SshSettings(config=self.pair.ssh_config)
        self._hosts = ClusterHosts(Cluster("bench", nodes, nodes[0].name), settings)
        keys = self.pair.target.root("cat /etc/ssh/ssh_host_*_key.pub").splitlines()
        address = self.pair.target.fabric
        self._peer = staging.Peer(self.pair.user, address, 22, staging.known_hosts(address, 22, keys))

    def fill(self, size: int = 0) -> None:
        each, self.many = (size or self.size) // FILES, False
        self.pair.target.sh(f"rm -rf {self.folder}/to*")
        self._make(f"for n in 1 2 3 4; do head -c {each} /dev/urandom >$n; done")

    def small(self) -> None:
        """Earlier targets stay: ext4 takes no inode again that was freed some seconds ago, and searches long."""
        self.many = True
        each = f"head -c {SMALL // 10 * 4096} /dev/urandom | split -a 3 -b 4096 - $n/"
        self._make(f"for n in $(seq 10); do mkdir $n; {each}; done")

    def _make(self, script: str) -> None:
        self.pair.source.sh(f"rm -rf {self.source}; mkdir -p {self.source}; cd {self.source}; {script}; sync -f .")

    def disk(self) -> float:
        """Seconds in which the target's disk takes as much, in the faster of two ways."""
        return min(self._written("conv=fdatasync"), self._written("oflag=direct conv=fdatasync"))

    def _written(self, how: str) -> float:
        file = f"{self.target}.disk"
        self.pair.target.sh(f"mkdir -p {self.folder}; sync -f {self.folder}")
        began = time.monotonic()
        self.pair.target.sh(f"dd if=/dev/zero of={file} bs=8M count={self.size >> 23} {how}")
        took = time.monotonic() - began
        self.pair.target.sh(f"rm {file}")
        return took

    def rsync(self, limit: int = 0) -> Took:
        return self._take(staging.copy_tree(self.source, self.target, self._peer, limit))

    def push(self, how: Transfer | None = None) -> Took:
        return self._take(staging.push_tree(self.source, self.target, self._peer, how or Transfer()))

    def burn(self, seconds: float) -> None:
        """Takes what everybody else leaves of a CPU, on each node."""
        words = f"timeout {seconds:.0f} chrt -i 0 python3 -c 'while True: pass' || true"
        with ThreadPoolExecutor(2) as pool:
            for end in (self.pair.source, self.pair.target):
                pool.submit(end.sh, words)

    def cap(self, rate: str) -> None:
        """A class of that rate ('': none) for each connection, by the low byte of its port: two may share one."""
        device = self.pair.device
        self.pair.source.root(f"tc qdisc del dev {device} root 2>/dev/null || true")
        if rate:
            lines = [f"qdisc add dev {device} root handle 1: htb"]
            for n in range(256):
                lines.append(f"class add dev {device} parent 1: classid 1:{n + 1:x} htb rate {rate} ceil {rate}")
                match = f"u32 match ip sport {n} 0x00ff flowid 1:{n + 1:x}"
                lines.append(f"filter add dev {device} parent 1: protocol ip prio 1 {match}")
            self.pair.source.root("tc -batch - <<'END'\n" + "\n".join(lines) + "\nEND")

    def _take(self, command: Command) -> Took:
        """Times a copy. Before it, for all alike: nothing at the target, no dirty page, the source's files in the page
        cache."""
        target, source = self.pair.target, self.pair.source
        away = f"mv -f {self.target} {self.target}.$$ 2>/dev/null" if self.many else f"rm -rf {self.target}"
        target.sh(f"{away}; mkdir -p {self.folder}; sync -f {self.folder}")
        source.sh(f"find {self.source} -type f -exec cat {{}} + >/dev/null")
        cpu, began = source.cpu() + target.cpu(), time.monotonic()
        rate = asyncio.run(self._run(command))
        took = time.monotonic() - began
        return Took(took, source.cpu() + target.cpu() - cpu, rate)

    async def _run(self, command: Command) -> float:
        done = await self._hosts[self.pair.source.name].run(command)
        await self._hosts.close()
        if done.exit_code:
            raise RuntimeError(f"a copy ended with {done.exit_code}: {done.stdout[-300:]}{done.stderr[-300:]}")
        rate = re.search(r"([0-9.]+)MB/s", (done.stdout.splitlines() or [""])[-1])
        return float(rate[1]) if rate else 0.0


def spread(values: Sequence[float], unit: str) -> str:
    return f"{statistics.median(values):.3g} {unit} ({min(values):.3g}-{max(values):.3g})"


def measure_rates(bench: CopyBench, repeats: int, disk: bool = True) -> Iterator[list[BenchFigure]]:
    """Measure rsync, ours and what the disk takes, in turn; yields the figures so far."""
    bench.fill()
    rows: list[tuple[Took, Took, float]] = []
    for _ in range(repeats):
        rows.append((bench.rsync(), bench.push(), bench.disk() if disk else 0.0))
        yield _rate_figures(rows, bench)


def _rate_figures(rows: list[tuple[Took, Took, float]], bench: CopyBench) -> list[BenchFigure]:
    size, (old, ssh, disk) = bench.size / 1e9, zip(*rows, strict=True)
    whole = {"rsync": old, "ssh": ssh}
    base = ", ".join(f"{name} {spread([size / one.seconds for one in found], 'GB/s')}" for name, found in whole.items())
    base += f", ssh without the time to connect {spread([one.rate / 1e3 for one in ssh], 'GB/s')}"
    if any(disk):
        base += f", disk {spread([size / one for one in disk], 'GB/s')}"
    used = ", ".join(f"{name} {spread([one.cpu / size for one in found], 's a GB')}" for name, found in whole.items())
    where = f"{bench.pair.where}{', memory' if bench.folder == MEMORY else ''}"
    return [
        BenchFigure("copy over ssh, CPU", where, tuple(new.cpu / one.cpu for one, new, *_ in rows), "x", 1.0, used),
        BenchFigure("copy over ssh", where, tuple(new.seconds / one.seconds for one, new, *_ in rows), "x", 1.0, base),
    ]


def curves(bench: CopyBench, repeats: int) -> Iterator[list[BenchFigure]]:
    """The rate by connections, against that of one."""
    bench.fill()
    found: dict[int, list[float]] = {n: [] for n in STREAMS}
    for _ in range(repeats):
        for many, rates_of in found.items():
            rates_of.append(bench.size / 1e9 / bench.push(Transfer(streams=many)).seconds)
        yield [_curve(bench, list(found.values()))]


def _curve(bench: CopyBench, found: list[list[float]]) -> BenchFigure:
    words = ", ".join(f"{n}: {spread(one, '')}" for n, one in zip(STREAMS, found, strict=True))
    values = tuple(one / max(rest) for one, *rest in zip(*found, strict=True))
    title = "one connection against the best, ssh"
    return BenchFigure(title, bench.pair.where, values, "x", 1.0, f"GB/s by connections {words}")


def small_files(bench: CopyBench, repeats: int) -> Iterator[list[BenchFigure]]:
    bench.small()
    rows: list[tuple[Took, Took]] = []
    for _ in range(repeats):
        rows.append((bench.rsync(), bench.push()))
        base = ", ".join(
            f"{name} {spread([one.seconds for one in took], 's')}, CPU {spread([one.cpu for one in took], 's')}"
            for name, took in zip(("rsync", "ssh"), zip(*rows, strict=True), strict=True)
        )
        values = tuple(ssh.seconds / rsync.seconds for rsync, ssh in rows)
        yield [BenchFigure(f"copy of {SMALL} files", bench.pair.where, values, "x", 1.0, base)]


def capped(bench: CopyBench, repeats: int, mbit: int = 40) -> Iterator[list[BenchFigure]]:
    """One connection and eight, each for as long: what one has to copy is an eighth."""
    share = mbit * 125_000 * CAPPED_SECONDS
    bench.cap(f"{mbit}mbit")
    values: list[float] = []
    try:
        for _ in range(repeats):
            rates = []
            for n in (1, 8):
                bench.fill(n * share)
                rates.append(bench.push(Transfer(streams=n)).rate)
            values.append(rates[0] / rates[1])
            note = f"each connection at most {mbit} Mbit/s; rates without the time to connect"
            base = f"one {rates[0]:.1f} MB/s"
            yield [BenchFigure("eight connections", bench.pair.where, tuple(values), "x", 1 / 7, base, note)]
    finally:
        bench.cap("")
