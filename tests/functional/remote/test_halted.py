"""Stopped processes of a rank, seen by the real script among the real processes of this machine."""

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fakes.sh import Sh
from patience import wait_until
from sparkwright.domain.sample import HaltedProcess
from sparkwright.facts import sample
from sparkwright.facts.sample import parse_stopped
from sparkwright.remote import process

FOLDER = process.rank_dir("~/state dir", "demo", 0)
# The rank's first process and two workers; each tells its PID.
TREE = "sleep 300 & echo $!; sh -c 'sleep 300 & echo $!; wait' & wait"


@dataclass
class Tree:
    process: subprocess.Popen[str]
    workers: list[int]

    @property
    def top(self) -> int:
        return self.process.pid


def start_tree(environ: dict[str, str]) -> Tree:
    made = subprocess.Popen(
        ["sh", "-c", TREE], env=os.environ | environ, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert made.stdout
    workers = [int(made.stdout.readline()) for _ in range(2)]
    for pid in workers:
        wait_for_stat(pid, "(sleep)", 1)
    return Tree(made, workers)


def wait_for_stat(pid: int, word: str, place: int) -> None:
    """Its stat has the word there."""
    wait_until(lambda: Path(f"/proc/{pid}/stat").read_text().split()[place] == word, word, poll=0.01)


@pytest.fixture
def rank_tree(node_shell: Sh) -> Iterator[Tree]:
    """Carries the folder of a rank."""
    made = start_tree({"SPARKWRIGHT_RANK_DIR": FOLDER.replace("~", str(node_shell.home))})
    yield made
    os.killpg(made.top, signal.SIGKILL)
    made.process.communicate()


def docker(sh: Sh, said: str, code: int = 0) -> Sh:
    """A node whose Docker reports this of every container."""
    program = sh.home / "bin/docker"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{said}'\nexit {code}\n")
    program.chmod(0o755)
    return Docked(sh.home, sh.shell)


class Docked(Sh):
    @property
    def environ(self) -> dict[str, str]:
        return super().environ | {"PATH": f"{self.home}/bin:{os.environ['PATH']}"}


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    wait_for_stat(pid, "T", 2)


def test_what_runs_is_not_reported(node_shell: Sh, rank_tree: Tree) -> None:
    """Guards the common case: nothing of it is stopped."""
    assert parse_stopped(node_shell.run(sample.in_folder(FOLDER))) == ()
    assert parse_stopped(docker(node_shell, f"false {rank_tree.top}").run(sample.in_container("it"))) == ()


def test_one_stopped_worker_is_reported_in_both_runtimes(node_shell: Sh, rank_tree: Tree) -> None:
    """Guards a worker's child alone: its parent and its sibling run on."""
    stop(rank_tree.workers[1])
    assert parse_stopped(node_shell.run(sample.in_folder(FOLDER))) == (HaltedProcess(rank_tree.workers[1], "sleep"),)
    node = docker(node_shell, f"false {rank_tree.top}")
    assert parse_stopped(node.run(sample.in_container("it"))) == (HaltedProcess(rank_tree.workers[1], "sleep"),)


def test_a_whole_tree_that_is_stopped_is_reported(node_shell: Sh, rank_tree: Tree) -> None:
    """Guards SIGSTOP to the process group: all of them, the lowest PID first."""
    for pid in (*rank_tree.workers, rank_tree.top):
        stop(pid)
    found = parse_stopped(docker(node_shell, f"false {rank_tree.top}").run(sample.in_container("it")))
    assert isinstance(found, tuple)
    assert {rank_tree.top, *rank_tree.workers} <= {one.pid for one in found}
    assert found == parse_stopped(node_shell.run(sample.in_folder(FOLDER)))


def test_stopped_processes_of_others_are_nothing(node_shell: Sh, rank_tree: Tree) -> None:
    """Guards several deployments on a node, and a shell's Ctrl-Z: only the rank's own tree counts."""
    other = start_tree({})
    try:
        stop(other.workers[0])
        assert parse_stopped(node_shell.run(sample.in_folder(FOLDER))) == ()
        assert parse_stopped(docker(node_shell, f"false {rank_tree.top}").run(sample.in_container("it"))) == ()
    finally:
        os.killpg(other.top, signal.SIGKILL)
        other.process.communicate()


def test_a_paused_container_is_reported(node_shell: Sh) -> None:
    """Guards docker pause: the freezer leaves no state T behind."""
    assert parse_stopped(docker(node_shell, "true 4711").run(sample.in_container("it"))) == (
        HaltedProcess(4711, paused=True),
    )


def test_a_container_that_has_ended_or_gone_has_nothing_stopped(node_shell: Sh) -> None:
    """Guards PID 0: every process of the machine would descend from it. A container that is not there is unknown."""
    stopped = start_tree({})
    try:
        stop(stopped.workers[0])
        node = docker(node_shell, "false 0")
        assert parse_stopped(node.run(sample.in_container("it"))) == ()
        (node_shell.home / "bin/docker").write_text("#!/bin/sh\necho 'no such object' >&2\nexit 1\n")
        assert not isinstance(parse_stopped(node.run(sample.in_container("it"))), tuple)
    finally:
        os.killpg(stopped.top, signal.SIGKILL)
        stopped.process.communicate()
