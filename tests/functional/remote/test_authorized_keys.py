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


def key_line(tag: str) -> str:
    return f'restrict,from="10.0.0.1" ssh-ed25519 BBBB {tag}'


def authorize_command(tag: str) -> Command:
    return node_ssh.authorize(key_line(tag), tag)


@pytest.fixture
def authorized_keys(node_shell: Sh) -> Path:
    path = node_shell.home / ".ssh" / "authorized_keys"
    path.parent.mkdir(mode=0o700)
    path.write_text("\n".join(OWN) + "\n")
    path.chmod(0o640)
    return path


def remove_command(sh: Sh, tag: str) -> Command:
    return service.remove(str(sh.home / "state"), tag.rpartition("/")[2], tag)


def run_at_once(sh: Sh, *commands: Command) -> None:
    running = [sh.start(command) for command in commands]
    for process in running:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, (out, err)


@pytest.mark.full
def test_two_writers_at_once_lose_nothing(node_shell: Sh, authorized_keys: Path) -> None:
    """Guards the user's own keys and both of ours against a second `up`, and against a `down` at the same time."""
    for turn in range(PAIRS):
        run_at_once(node_shell, authorize_command("sparkwright:a/x"), authorize_command("sparkwright:a/y"))
        assert authorized_keys.read_text().splitlines()[:8] == OWN, turn
        assert sorted(authorized_keys.read_text().splitlines()[8:]) == [
            key_line("sparkwright:a/x"),
            key_line("sparkwright:a/y"),
        ]
        run_at_once(
            node_shell, remove_command(node_shell, "sparkwright:a/x"), remove_command(node_shell, "sparkwright:a/y")
        )
        assert authorized_keys.read_text().splitlines() == OWN, turn
    assert [path.name for path in authorized_keys.parent.iterdir()] == ["authorized_keys"]
    assert authorized_keys.stat().st_mode & 0o777 == 0o640


@pytest.mark.full
def test_another_programs_key_is_not_lost(node_shell: Sh, authorized_keys: Path) -> None:
    """Guards what ssh-copy-id appends while ours is being written: it takes no lock of ours."""
    for turn in range(PAIRS):
        ours = node_shell.start(authorize_command("sparkwright:a/x"))
        with authorized_keys.open("a") as file:
            file.write(f"ssh-ed25519 CCCC other-{turn}\n")
        assert ours.wait(60) == 0
        ours.communicate()
        assert node_shell.run(remove_command(node_shell, "sparkwright:a/x")).ok
        assert set(OWN) <= set(authorized_keys.read_text().splitlines())
    assert len(authorized_keys.read_text().splitlines()) >= 8 + PAIRS - 4, (
        "the last instant before the rename is nobody's"
    )


def test_a_link_stays_one_and_a_file_is_never_half_written(node_shell: Sh, authorized_keys: Path) -> None:
    """Guards a file that is kept elsewhere, and a reader that opens it at any moment: it is replaced as a whole."""
    real = node_shell.home / "kept" / "authorized_keys"
    real.parent.mkdir()
    authorized_keys.rename(real)
    authorized_keys.symlink_to(real)
    with real.open() as before:
        assert node_shell.run(authorize_command("sparkwright:a/x")).ok
        assert authorized_keys.is_symlink() and os.fstat(before.fileno()).st_ino != real.stat().st_ino
        assert before.read().splitlines() == OWN
    assert real.read_text().splitlines() == [*OWN, key_line("sparkwright:a/x")]
    assert real.stat().st_mode & 0o777 == 0o640


def test_what_is_there_already_is_left_alone(node_shell: Sh, authorized_keys: Path) -> None:
    """Guards idempotence, and that a key of ours which has changed is replaced."""
    assert node_shell.run(authorize_command("sparkwright:a/x")).ok
    before = authorized_keys.stat()
    assert node_shell.run(authorize_command("sparkwright:a/x")).ok
    assert (authorized_keys.stat().st_ino, authorized_keys.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert node_shell.run(node_ssh.authorize("new sparkwright:a/x", "sparkwright:a/x")).ok
    assert authorized_keys.read_text().splitlines() == [*OWN, "new sparkwright:a/x"]


def test_a_node_without_any_key_gets_a_private_file(node_shell: Sh) -> None:
    """Guards sshd's StrictModes: folder and file are for the user only."""
    assert node_shell.run(authorize_command("sparkwright:a/x")).ok
    keys = node_shell.home / ".ssh" / "authorized_keys"
    assert (keys.stat().st_mode & 0o777, keys.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert node_shell.run(remove_command(node_shell, "sparkwright:a/x")).stdout.split() == ["was"]
    assert node_shell.run(remove_command(node_shell, "sparkwright:a/x")).stdout == ""


def test_a_full_disk_changes_nothing(node_shell: Sh, authorized_keys: Path, tmp_path: Path) -> None:
    """Guards that an error on the way leaves the file as it was, and nothing next to it."""
    script = node_shell.argv(authorize_command("sparkwright:a/x"))
    done = subprocess.run(
        ["prlimit", "--fsize=100", *script], env=node_shell.environ, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert authorized_keys.read_text().splitlines() == OWN
