"""The evidence saved from a node: a bounded number of bytes, the beginning and the end of each log."""

import json
from pathlib import Path

from fakes.sh import Sh
from sparkwright.checks.compat.versions import ranges
from sparkwright.domain.command import Completed
from sparkwright.remote import docker, evidence

DOCKER = """#!/bin/sh
echo "$*" >>"$HOME/asked"
case "$1" in
logs) if [ -e "$HOME/log" ]; then cat "$HOME/log"; fi ;;
ps) [ -e "$HOME/daemon" ] ;;
inspect)
  n=$(grep -c '^inspect' "$HOME/asked")
  [ "$n" -lt 3 ] || : >"$HOME/daemon"
  [ -e "$HOME/daemon" ] && [ -e "$HOME/container" ] && cat "$HOME/container" ;;
esac
"""


def with_docker(sh: Sh) -> Sh:
    """A client that reports what the test's files state."""
    (sh.home / "bin").mkdir()
    program = sh.home / "bin/docker"
    program.write_text(DOCKER)
    program.chmod(0o755)
    return OnPath(sh.home, sh.shell)


class OnPath(Sh):
    @property
    def environ(self) -> dict[str, str]:
        known = super().environ
        return {**known, "PATH": f"{self.home}/bin:{known['PATH']}"}


def write_rank_log(sh: Sh, text: str) -> Path:
    folder = sh.home / "deployments/demo/rank0"
    folder.mkdir(parents=True)
    (folder / "log").write_text(text)
    return folder


def test_a_short_log_is_kept_whole_and_of_a_long_one_both_ends(node_shell: Sh) -> None:
    """Guards what a diagnosis needs: how it was started and why it ended, whatever lies between."""
    folder = write_rank_log(node_shell, "a short log\n")
    assert node_shell.run(evidence.rank_log("process", str(folder), 100, 100)).stdout == "a short log\n"
    (folder / "log").write_text("begin\n" + "x" * 10_000 + "\nthe end\n")
    kept = node_shell.run(evidence.rank_log("process", str(folder), 6, 9)).stdout
    assert kept == "begin\n\n... 10000 bytes left out ...\n\nthe end\n"


def test_of_a_container_too(node_shell: Sh) -> None:
    """Guards the same for what Docker keeps, of which only its ends are read."""
    node = with_docker(node_shell)
    (node_shell.home / "log").write_text("begin\n" + "x" * 10_000 + "\nthe end\n")
    kept = node.run(evidence.rank_log("docker", "name", 6, 9)).stdout
    assert kept.startswith("begin\n") and kept.endswith("\nthe end\n") and len(kept) < 100
    (node_shell.home / "log").write_text("short\n")
    assert node.run(evidence.rank_log("docker", "name", 6, 9)).stdout == "short\n"


def test_a_log_that_is_not_there_is_no_error(node_shell: Sh) -> None:
    """Guards a rank that was removed by hand: the rest of the evidence is collected all the same."""
    assert isinstance(node_shell.run(evidence.rank_log("process", str(node_shell.home / "nothing"), 6, 9)), Completed)


def test_memory_has_no_arguments_of_any_process(node_shell: Sh) -> None:
    """Guards keys that are on command lines."""
    told = node_shell.run(evidence.memory()).stdout
    assert "@@ meminfo" in told and "@@ processes" in told
    assert json.dumps(str(node_shell.home)) not in told


def test_versions_are_printed_as_a_diagnosis_reads_them(node_shell: Sh) -> None:
    """Guards the evidence of which kernel ran; a node without a driver is no error."""
    told = node_shell.run(evidence.versions()).stdout
    assert ranges().version("kernel", told.splitlines()[0])


def test_a_daemon_that_is_away_does_not_mean_that_its_container_is_gone(node_shell: Sh) -> None:
    """Guards a restart of Docker: the follower waits until the daemon answers, and reports then how the rank ended."""
    node = with_docker(node_shell)
    (node_shell.home / "container").write_text("2026-11-21T09:00:00Z exited 137 false 2026-11-21T10:00:00Z\n")
    told = node.run(docker.follow("name", mark="word")).stdout
    assert told.startswith("\x1eexit word exited 137 false ")
    assert (node_shell.home / "asked").read_text().count("inspect") >= 3


def test_a_container_that_the_daemon_does_not_know_is_gone(node_shell: Sh) -> None:
    """Guards `docker rm -f` by hand; a daemon that is ending may have forgotten it for a moment."""
    node = with_docker(node_shell)
    (node_shell.home / "daemon").touch()
    assert node.run(docker.follow("name", mark="word")).stdout.startswith("\x1eexit word gone 0 false ")
