"""Processor time of the ring of the last minutes: on a worker, and on a head whose copies go to it over a real sshd.

bench_ring.py [--seconds 600] [--json]. Both nodes are this machine. Shares of one core by utime and stime of the
processes and of those that they started, so another load changes them little; nothing is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(HERE / "tests")]

from fakes.nodes import make_node, settings  # type: ignore[import-not-found]  # noqa: E402
from fakes.sshd import Sshd  # type: ignore[import-not-found]  # noqa: E402
from sparkwright.adapters.hosts import local_host  # noqa: E402
from sparkwright.adapters.node_host import NodeHost  # noqa: E402
from sparkwright.adapters.ssh import ssh_host  # noqa: E402
from sparkwright.facts.ring import EVERY, RING, keep_copy, last_minutes  # noqa: E402
from sparkwright.supervisor.reboots import COPY_BYTES, COPY_EVERY  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")
BOOT = Path("/proc/sys/kernel/random/boot_id")
NAME = "bench"


@dataclass
class RingFigures:
    """Percent of a core. writing: the ring's own shell and all that it starts. copying: the copies, on either side."""

    seconds: float
    load: float
    copies: int
    copied_bytes: int
    head_writing: float
    head_copying: float
    worker_writing: float
    worker_copying: float

    @property
    def head(self) -> float:
        return self.head_writing + self.head_copying

    @property
    def worker(self) -> float:
        return self.worker_writing + self.worker_copying


def start_ring(folder: Path) -> subprocess.Popen[bytes]:
    """The text that samples run on nodes, alone in a shell."""
    script = f'start=1\n{RING}\nring_begin "$1/ring" {NAME}; ring {EVERY:g}'
    return subprocess.Popen(["sh", "-c", script, "ring", str(folder)], stdout=subprocess.DEVNULL)


def used_seconds(pid: int) -> float:
    """Seconds of a process and of its ended children; 0 for one that is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICK


def family(pid: int) -> list[int]:
    """The process and all below it."""
    try:
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(one for child in below for one in family(int(child)))]


def masters(folder: Path) -> list[int]:
    """The connections that ssh keeps open for this folder; they have left their parent."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes()
        except OSError:
            continue
        if words.startswith(b"ssh") and str(folder).encode() in words:
            found.append(int(entry.parent.name))
    return found


def own_seconds() -> float:
    """This process, in the place of the supervisor, and the clients that it started."""
    return sum(
        part.ru_utime + part.ru_stime
        for part in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


class RingBench:
    """Two rings, and the copies of the head's to the worker."""

    def __init__(self, folder: Path, sshd: Sshd) -> None:
        self._folders = folder / "head", folder / "worker"
        for one in self._folders:
            one.mkdir()
        self._sshd, self._server = sshd, sshd._process.pid
        self._head: NodeHost = local_host(make_node(self._folders[0], "local"), "bench")
        self._worker: NodeHost = ssh_host(make_node(self._folders[1], "worker"), settings(sshd, persist=600), "bench")
        self._boot = BOOT.read_text().strip()
        self._copies = self._bytes = 0

    async def copy(self) -> None:
        """Copies as the supervisor's `copy_to_peer` does."""
        boot = f"{self._boot}:1"
        done = await self._head.run(last_minutes(str(self._folders[0]), NAME, boot))
        records = done.stdout.encode()[-COPY_BYTES:]
        assert records, "the head has written no record"
        await self._worker.run(keep_copy(str(self._folders[1]), NAME, "head", records))
        self._copies, self._bytes = self._copies + 1, self._bytes + len(records)

    def _times(self, rings: list[subprocess.Popen[bytes]]) -> list[float]:
        """Seconds so far: head writing and copying, worker writing and copying."""
        head, worker = (used_seconds(one.pid) for one in rings)
        near = own_seconds() + sum(map(used_seconds, masters(self._sshd.folder)))
        return [head, near, worker, sum(map(used_seconds, family(self._server)))]

    async def measure(self, seconds: float) -> RingFigures:
        rings = [start_ring(folder) for folder in self._folders]
        try:
            await asyncio.sleep(2 * EVERY)
            await self.copy()  # opens the connection, which is kept
            began, before = time.monotonic(), self._times(rings)
            while time.monotonic() - began < seconds:
                await asyncio.sleep(COPY_EVERY)
                await self.copy()
            took, after = time.monotonic() - began, self._times(rings)
        finally:
            for one in rings:
                one.terminate()
                one.wait()
            await self._worker.close()
        shares = [100 * (late - early) / took for early, late in zip(before, after, strict=True)]
        return RingFigures(took, os.getloadavg()[1], self._copies - 1, self._bytes // self._copies, *shares)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench_ring.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="how long (default 600)")
    parser.add_argument("--json", action="store_true", help="the figures as JSON")
    chosen = parser.parse_args(words)
    sshd = Sshd("worker").start()
    try:
        with tempfile.TemporaryDirectory(prefix="ring-") as folder:
            found = asyncio.run(RingBench(Path(folder), sshd).measure(chosen.seconds))
    finally:
        sshd.stop()
    if chosen.json:
        print(json.dumps(asdict(found)))
    else:
        print(f"{found.seconds:.0f} s at load {found.load:.1f}, {found.copies} copies of {found.copied_bytes:,} bytes")
        print(
            f"head    {found.head:.3f} % of a core: writing {found.head_writing:.3f}, copies {found.head_copying:.3f}"
        )
        parts = f"writing {found.worker_writing:.3f}, copies {found.worker_copying:.3f}"
        print(f"worker  {found.worker:.3f} % of a core: {parts}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
