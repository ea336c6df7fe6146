"""The ring of the last minutes, written by this machine's own sh: what is kept, how much, and at which cost."""

import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from fakes.sh import SHELLS, Sh
from patience import wait_until
from sparkwright.domain.command import Command
from sparkwright.domain.last_seconds import RingRecord
from sparkwright.facts import ring, sample
from sparkwright.facts.ring import copied, keep_copy, last_minutes, parse_ring

SMI = "#!/bin/sh\nwhile :; do echo '54 %, 31 %, 118.20 W, 2405 MHz, 63'; sleep 0.2; done\n"


@pytest.fixture(params=SHELLS)
def ring_node(request: pytest.FixtureRequest, tmp_path: Path) -> Sh:
    return Sh(tmp_path, request.param)


@contextmanager
def ring_kept(ring_node: Sh, folder: Path, every: float) -> Iterator[int]:
    """The process that samples and keeps a ring."""
    command = sample.follow(5.0, 1.0, 0.0, str(folder), "chat")
    process = ring_node.start(ring_every(command, every))
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def ring_every(command: Command, every: float) -> Command:
    return Command((*command.argv[:-1], f"{every:g}"), timeout=command.timeout)


def marker() -> str:
    started = Path("/proc/1/stat").read_text().rpartition(")")[2].split()[19]
    return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}:{started}"


def read_moments(ring_node: Sh, folder: Path) -> tuple[RingRecord, ...]:
    return parse_ring(ring_node.run(last_minutes(str(folder), "chat", marker())))


def test_a_killed_node_leaves_its_last_seconds(ring_node: Sh, tmp_path: Path) -> None:
    """Guards what is read after the boot: time, memory and pressure of this machine, up to the last record."""
    with ring_kept(ring_node, tmp_path, 0.2):
        wait_until(lambda: len(read_moments(ring_node, tmp_path)) > 3, "records")
    found = read_moments(ring_node, tmp_path)
    assert abs(found[-1].at - time.time()) < 15
    assert all(one.memory["MemTotal"] > one.memory["MemAvailable"] > 0 for one in found[:-1])
    assert found == tuple(sorted(found, key=lambda one: one.at))
    # Kernel lines may be root's
    assert all(one.stat().st_mode & 0o077 == 0 for one in (tmp_path / "ring/chat").iterdir())


def test_the_ring_is_bounded(ring_node: Sh, tmp_path: Path) -> None:
    """Guards the disk: two files of 150 records, and files of the last boots only."""
    folder = tmp_path / "ring/chat"
    folder.mkdir(parents=True)
    for n in range(30):
        (folder / f"old-{n}").touch()
        os.utime(folder / f"old-{n}", (n, n))
    with ring_kept(ring_node, tmp_path, 0.01):
        wait_until(lambda: any(one.name.endswith(".1") for one in folder.iterdir()), "the first turn")
    assert len(read_moments(ring_node, tmp_path)) <= 301
    assert len(list(folder.iterdir())) <= 15
    assert sum(one.stat().st_size for one in folder.iterdir()) < 512 * 1024


def test_a_folder_that_cannot_be_written_costs_nothing(ring_node: Sh, tmp_path: Path) -> None:
    """Guards sampling: a full or read-only disk takes the ring, never the samples."""
    (tmp_path / "ring").write_text("in its place")
    process = ring_node.start(ring_every(sample.follow(0.2, 1.0, 0.0, str(tmp_path), "chat"), 0.2))
    try:
        assert process.stdout is not None
        samples, found = sample.Samples(), 0
        while found < 3:
            found += samples.feed(process.stdout.readline().rstrip("\n")) is not None
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def test_a_full_disk_costs_the_ring_and_nothing_else(ring_node: Sh, tmp_path: Path) -> None:
    """Guards sampling: every write fails with `no space left`, and the samples go on."""
    folder = tmp_path / "ring" / "chat"
    folder.mkdir(parents=True)
    for end in ("", ".k"):
        (folder / f"{marker()}{end}").symlink_to("/dev/full")
    process = ring_node.start(ring_every(sample.follow(0.2, 1.0, 0.0, str(tmp_path), "chat"), 0.05))
    try:
        assert process.stdout is not None
        samples, found = sample.Samples(), 0
        while found < 5:
            found += samples.feed(process.stdout.readline().rstrip("\n")) is not None
    finally:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
    assert "space" not in err  # nothing is read back: /dev/full has zeros without end


def test_a_copy_of_the_head_s_ring_comes_back_and_makes_no_folder(ring_node: Sh, tmp_path: Path) -> None:
    """Guards `down`: what the supervisor sends after it has cleared the peer leaves nothing there."""
    state, folder = str(tmp_path), tmp_path / "ring" / "chat"
    assert ring_node.run(keep_copy(state, "chat", "spark-1", b"at 1.0\n")).ok and not folder.exists()
    folder.mkdir(parents=True)
    assert ring_node.run(keep_copy(state, "chat", "spark-1", b"at 2.0\n")).ok
    assert [one.at for one in parse_ring(ring_node.run(copied(state, "chat", "spark-1")))] == [2.0]
    assert [one.name for one in folder.iterdir()] == ["of-spark-1"]


def processor_times(pids: Iterable[int]) -> dict[int, float]:
    """Seconds of processor time of each process that still runs, with its ended children."""
    found = dict[int, float]()
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):  # a `sleep` of the shell may end at any time
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            found[pid] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return found


@pytest.mark.full
def test_the_ring_costs_less_than_a_fifth_of_a_percent(tmp_path: Path) -> None:
    """Guards the node: processor time of the ring's own shell and what it starts, over a minute."""
    ring_node = Sh(tmp_path, SHELLS[0])
    with ring_kept(ring_node, tmp_path, ring.EVERY) as pid:
        wait_until(lambda: read_moments(ring_node, tmp_path), "a record")
        mine = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        before, began = processor_times(mine), time.monotonic()
        time.sleep(60)
        spent = [seconds - before[pid] for pid, seconds in processor_times(before).items()]
        share = max(spent) / (time.monotonic() - began)
    print(f"the busiest of the shells: {share:.3%} of a core")
    assert share < 0.002
