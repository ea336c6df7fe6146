"""The store against a real disk that is full, writers that are killed, and two writers at once."""

import asyncio
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from sparkwright.adapters.sqlite import database
from sparkwright.adapters.sqlite.store import SqliteStore
from sparkwright.domain.command import Completed
from sparkwright.domain.incident import DeploymentRecord, Incident, IncidentEvent
from sparkwright.facts.store import StoredIncidents, incidents, parse_incidents

# Writes as a supervisor does and says each number once the store has answered: what was said must be there afterwards.
WRITER = """
import asyncio, sys, time
from pathlib import Path
from sparkwright.adapters.sqlite.store import SqliteStore
from sparkwright.facts.store import incidents
from sparkwright.domain.command import Completed
from sparkwright.domain.incident import Incident, IncidentEvent

async def main(state, name):
    store = SqliteStore(Path(state), lambda text: print("reported", text, file=sys.stderr, flush=True))
    for _ in range(100_000):
        at = time.time()
        made = await store.open(Incident(name, "frozen", "x" * 500, at, evidence=("line",) * 20))
        for step in range(5):
            await store.note(name, IncidentEvent(at + step / 10, "step", "y" * 300), made.number)
        print("open", made.number, flush=True)
        await store.explain(made.number, "worker_died", "RAY009", ("do this",))
        await store.close(made.number, at + 1.0, "serving again", at + 1.0)
        print("closed", made.number, flush=True)
        await store.save(made.number, {})

asyncio.run(main(*sys.argv[1:]))
"""


@contextmanager
def writing(state: Path, name: str = "twin") -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-c", WRITER, str(state), name]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def answer(state: Path, text: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(state / "store.sqlite")
    try:
        return connection.execute(text).fetchall()
    finally:
        connection.close()


def is_sound(state: Path) -> bool:
    checks = answer(state, "PRAGMA integrity_check") + answer(state, "PRAGMA foreign_key_check")
    return checks == [("ok",)]


def read(state: Path) -> StoredIncidents:
    """Reads as the laptop does, through python3 alone."""
    command = incidents(str(state))
    done = subprocess.run(command.argv, input=command.stdin, capture_output=True, timeout=60)
    told = parse_incidents(Completed(done.returncode, done.stdout.decode(), done.stderr.decode()))
    assert isinstance(told, StoredIncidents), done.stderr
    return told


def test_reading_never_waits_for_the_writer(tmp_path: Path) -> None:
    """`incidents list` next to a supervisor that writes without a pause, and after its end by SIGKILL."""
    with writing(tmp_path) as process:
        assert process.stdout is not None
        for _ in range(10):
            process.stdout.readline()
            told = read(tmp_path)
            assert told.why == "" and told.incidents
        process.kill()
        process.wait()
        assert (tmp_path / "store.sqlite-wal").stat().st_size > 0
        told = read(tmp_path)
        known = answer(tmp_path, "SELECT number FROM incidents ORDER BY number DESC LIMIT 200")
        assert told.why == "" and {(one.number,) for one in told.incidents} >= set(known)


@pytest.mark.parametrize("round_", range(6))
def test_a_writer_that_is_killed_leaves_a_sound_store(tmp_path: Path, round_: int) -> None:
    """SIGKILL at any instruction: all that was answered is there, and at most one incident is open."""
    with writing(tmp_path) as process:
        assert process.stdout is not None
        said = [process.stdout.readline()]
        time.sleep(random.Random(round_).uniform(0.0, 0.4))
        process.send_signal(signal.SIGKILL)
        said += process.stdout.read().splitlines(keepends=True)
    whole = [line.split() for line in said if line.endswith("\n")]
    opened, closed = ({int(number) for word, number in whole if word == kind} for kind in ("open", "closed"))
    assert is_sound(tmp_path)
    rows = dict(answer(tmp_path, "SELECT number, closed_at FROM incidents"))  # type: ignore[arg-type]
    assert opened <= set(rows) and all(rows[number] for number in closed)
    assert sum(not at for at in rows.values()) <= 1

    async def go_on() -> int:
        store = SqliteStore(tmp_path, pytest.fail)
        number = (await store.open(Incident("twin", "frozen", "again", 9e8))).number
        await store.aclose()
        return number

    # Folders are written before rows: one may be further than its row, and a new one may have no row yet.
    number = asyncio.run(go_on())
    assert number in (max(rows), max(rows) + 1, max(rows) + 2) and number > max(closed, default=0)
    assert sum(not at for (at,) in answer(tmp_path, "SELECT closed_at FROM incidents")) == 1
    assert (number,) in answer(tmp_path, "SELECT number FROM incidents WHERE closed_at = 0")


def test_two_supervisors_share_a_store(tmp_path: Path) -> None:
    """Two deployments on one head: each gets numbers of its own, none is lost, nobody reports a word."""
    with writing(tmp_path, "a") as one, writing(tmp_path, "b") as other:
        said = []
        for process in (one, other):
            assert process.stdout is not None
            some = [process.stdout.readline() for _ in range(20)]
            process.kill()
            out, err = process.communicate()
            assert "reported" not in err, err
            lines = "".join([*some, out]).splitlines()
            said.append({int(line.split()[1]) for line in lines if line.startswith("closed ")})
    assert said[0] and said[1] and not said[0] & said[1]
    assert is_sound(tmp_path)
    for name, numbers in zip("ab", said, strict=True):
        rows = answer(tmp_path, f"SELECT number FROM incidents WHERE deployment = '{name}' AND closed_at > 0")
        assert {(number,) for number in numbers} <= set(rows)


def test_writers_that_begin_together_all_begin(tmp_path: Path) -> None:
    """A new file is changed to WAL by anyone who comes first; the others wait for that."""
    with ThreadPoolExecutor(8) as pool:
        for round_ in range(20):
            path = tmp_path / f"{round_}.sqlite"
            list(pool.map(lambda _, path=path: database.opened(path).close(), range(8)))  # type: ignore[misc]


# What can be read of it while the disk is full: its record, or nothing where not even that could be written.
FULL = (("", ["while it is full"]), ("", []))


@contextmanager
def small_disk(at: Path) -> Iterator[None]:
    at.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(at)]
    if os.geteuid() or subprocess.run(words, capture_output=True).returncode:
        pytest.skip("hardware: mounting a small file system takes root")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(at)], check=True)


async def fill_store(store: SqliteStore, count: int) -> None:
    for _ in range(count):
        await store.note("twin", IncidentEvent(time.time(), "step", "z" * 2000))
    await store.counts("twin")  # behind all of them


async def test_a_full_disk_costs_writes_only(tmp_path: Path) -> None:
    """One sentence; the store stays sound; once there is room again, it writes again."""
    said: list[str] = []
    disk = tmp_path / "disk"
    with small_disk(disk):
        store = SqliteStore(disk, said.append)
        await store.began(DeploymentRecord("twin", 1.0, "twin"))
        (disk / "ballast").write_bytes(b"b" * 200_000)
        await fill_store(store, 400)
        assert len(said) == 1 and "supervision goes on" in said[0], said
        opened = await store.open(Incident("twin", "frozen", "while it is full", 5.0, evidence=("e" * 100_000,)))
        assert opened.number == 1
        assert is_sound(disk)
        assert (read(disk).why, [one.what for one in read(disk).incidents]) in FULL
        (disk / "ballast").unlink()
        before = answer(disk, "SELECT count(*) FROM events")[0][0]
        await fill_store(store, 3)
        assert answer(disk, "SELECT count(*) FROM events")[0][0] == before + 3  # type: ignore[operator]
        assert answer(disk, "SELECT count(*) FROM deployments") == [(1,)]
        await store.aclose()


async def test_evidence_without_room_is_written_once_there_is(tmp_path: Path) -> None:
    """Guards the cause of an incident on a full disk: small files whole, the ends of a log, bounded memory."""
    disk = tmp_path / "disk"
    log = "".join(f"line {n}\n" for n in range(20_000))
    files = {"live.json": "{}", "fault.txt": "rank 1 has ended", "rank1-spark-2.log": log, "rank0-spark-1.log": log}
    with small_disk(disk):
        store = SqliteStore(disk, lambda text: None)
        with suppress(OSError), (disk / "ballast").open("wb", buffering=0) as ballast:
            while True:
                ballast.write(b"b" * 4096)
        opened = await store.open(Incident("twin", "frozen", "full", 5.0))
        why = await store.save(opened.number, files)
        assert "in memory until there is room" in why
        (disk / "ballast").unlink()
        store.wrong()
        await store.counts("twin")  # behind it
        folder = disk / "incidents/twin" / str(opened.number)
        assert (folder / "live.json").read_text() == "{}" and (folder / "fault.txt").read_text() == files["fault.txt"]
        kept = (folder / "rank1-spark-2.log").read_text()
        assert kept.startswith("line 0\n") and kept.endswith(log[-20_000:]) and "bytes were cut here" in kept
        assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
        assert sum(path.stat().st_size for path in folder.iterdir()) < 100_000
        assert await store.save(opened.number, {"live.json": "2"}) == ""
        assert (folder / "live.json").read_text() == "2"
        await store.aclose()


def test_a_limit_on_file_sizes_costs_writes_only(tmp_path: Path) -> None:
    """The same for who cannot mount: the kernel refuses each write past the limit."""
    state = tmp_path / "state"

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))

    words = [sys.executable, "-c", WRITER, str(state), "twin"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limited
    ) as process:
        assert process.stdout
        written = [process.stdout.readline() for _ in range(24)]
        process.kill()
        _, err = process.communicate()
    assert all(written), err
    complaints = [line for line in err.splitlines() if line.startswith("reported")]
    assert complaints and all("history is not written, supervision goes on" in line for line in complaints)
    assert len(complaints) == 1
    assert is_sound(state)
