"""The user's authorized_keys, written by the real scripts: whatever else writes it, nobody is locked out."""

import os
import subprocess
from pathlib import Path

import pytest

from fakes.sh import Sh
from sparkwright.domain.command import Command
from sparkwright.remote import node_ssh, service

OWN = [f"ssh-ed25519 AAAA{n} me@laptop-{n}" for n in range(8)]
PAIRS = 30


def line(tag: str) -> str:
    return f'restrict,from="10.0.0.1" ssh-ed25519 BBBB {tag}'


def add(tag: str) -> Command:
    return node_ssh.authorize(line(tag), tag)


@pytest.fixture
def keys(sh: Sh) -> Path:
    path = sh.home / ".ssh" / "authorized_keys"
    path.parent.mkdir(mode=0o700)
    path.write_text("\n".join(OWN) + "\n")
    path.chmod(0o640)
    return path


def drop(sh: Sh, tag: str) -> Command:
    return service.remove(str(sh.home / "state"), tag.rpartition("/")[2], tag)


def both(sh: Sh, *commands: Command) -> None:
    running = [sh.start(command) for command in commands]
    for process in running:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, (out, err)


@pytest.mark.full
def test_two_writers_at_once_lose_nothing(sh: Sh, keys: Path) -> None:
    """Guards the user's own keys and both of ours against a second `up`, and against a `down` at the same time."""
    for turn in range(PAIRS):
        both(sh, add("sparkwright:a/x"), add("sparkwright:a/y"))
        assert keys.read_text().splitlines()[:8] == OWN, turn
        assert sorted(keys.read_text().splitlines()[8:]) == [line("sparkwright:a/x"), line("sparkwright:a/y")]
        both(sh, drop(sh, "sparkwright:a/x"), drop(sh, "sparkwright:a/y"))
        assert keys.read_text().splitlines() == OWN, turn
    assert [path.name for path in keys.parent.iterdir()] == ["authorized_keys"]
    assert keys.stat().st_mode & 0o777 == 0o640


@pytest.mark.full
def test_another_programs_key_is_not_lost(sh: Sh, keys: Path) -> None:
    """Guards what ssh-copy-id appends while ours is being written: it takes no lock of ours."""
    for turn in range(PAIRS):
        ours = sh.start(add("sparkwright:a/x"))
        with keys.open("a") as file:
            file.write(f"ssh-ed25519 CCCC other-{turn}\n")
        assert ours.wait(60) == 0
        ours.communicate()
        assert sh.run(drop(sh, "sparkwright:a/x")).ok
        assert set(OWN) <= set(keys.read_text().splitlines())
    assert len(keys.read_text().splitlines()) >= 8 + PAIRS - 4, "the last instant before the rename is nobody's"


def test_a_link_stays_one_and_a_file_is_never_half_written(sh: Sh, keys: Path) -> None:
    """Guards a file that is kept elsewhere, and a reader that opens it at any moment: it is replaced as a whole."""
    real = sh.home / "kept" / "authorized_keys"
    real.parent.mkdir()
    keys.rename(real)
    keys.symlink_to(real)
    with real.open() as before:
        assert sh.run(add("sparkwright:a/x")).ok
        assert keys.is_symlink() and os.fstat(before.fileno()).st_ino != real.stat().st_ino
        assert before.read().splitlines() == OWN
    assert real.read_text().splitlines() == [*OWN, line("sparkwright:a/x")]
    assert real.stat().st_mode & 0o777 == 0o640


def test_what_is_there_already_is_left_alone(sh: Sh, keys: Path) -> None:
    """Guards idempotence, and that a key of ours which has changed is replaced."""
    assert sh.run(add("sparkwright:a/x")).ok
    before = keys.stat()
    assert sh.run(add("sparkwright:a/x")).ok
    assert (keys.stat().st_ino, keys.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert sh.run(node_ssh.authorize("new sparkwright:a/x", "sparkwright:a/x")).ok
    assert keys.read_text().splitlines() == [*OWN, "new sparkwright:a/x"]


def test_a_node_without_any_key_gets_a_private_file(sh: Sh) -> None:
    """Guards sshd's StrictModes: folder and file are for the user only."""
    assert sh.run(add("sparkwright:a/x")).ok
    keys = sh.home / ".ssh" / "authorized_keys"
    assert (keys.stat().st_mode & 0o777, keys.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert sh.run(drop(sh, "sparkwright:a/x")).stdout.split() == ["was"]
    assert sh.run(drop(sh, "sparkwright:a/x")).stdout == ""


def test_a_full_disk_changes_nothing(sh: Sh, keys: Path, tmp_path: Path) -> None:
    """Guards that an error on the way leaves the file as it was, and nothing next to it."""
    script = sh.argv(add("sparkwright:a/x"))
    done = subprocess.run(
        ["prlimit", "--fsize=100", *script], env=sh.environ, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert keys.read_text().splitlines() == OWN
