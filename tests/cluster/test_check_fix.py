"""`check --fix` and `--undo` on two real nodes: systemd, sudo, sshd, apt-mark and files as they are there."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.drive import Done, Drive, lease, slowed
from testbed import Node

NETPLAN = "/etc/netplan/40-cx7.yaml"
HUB = "/home/spark/.cache/huggingface/hub/models--org--big"
RECORD = "/home/spark/.local/state/sparkwright/fixes.json"
SUDOERS = "/etc/sudoers.d/check"
TARGETS = "sleep.target suspend.target hibernate.target hybrid-sleep.target"
CODES = ("DRV006", "NET011", "FILE002", "HOST012")
ONLY = tuple(word for code in CODES for word in ("--only", code))
# A package of the name that matters, made and installed by the node's own dpkg.
PACKAGE = """set -e; d=$(mktemp -d); mkdir -p "$d/p/DEBIAN"
printf 'Package: mlnx-fw-updater\\nVersion: 1.0\\nArchitecture: all\\nMaintainer: x <x@x>\\nDescription: x\\n' \
  >"$d/p/DEBIAN/control"
dpkg-deb --build "$d/p" "$d/p.deb" && dpkg --install "$d/p.deb"; rm -r "$d"
"""
STATE = f"""stat -c %a {NETPLAN}; wc -c <{HUB}/refs/main; apt-mark showhold; systemctl is-enabled {TARGETS}
ls /etc/sysctl.d; ls -l /etc/systemd/system/*sleep*; exit 0"""


@pytest.fixture
def here(drive: Drive, nodes: list[Node]) -> Iterator[Drive]:
    """The nodes with their own /proc and systemd, a user whom sudo asks for no password, and four things to mend."""
    drive.node_env = {"SPARKWRIGHT_SYSROOT": ""}
    for node in nodes:
        node.write(SUDOERS, "spark ALL=(root) NOPASSWD: ALL\n", mode="440")
        node.write(NETPLAN, "network: {version: 2}\n")
        node.write(f"{HUB}/refs/main", "abc\n", user="spark")
        node.write(f"{HUB}/snapshots/abc/config.json", "{}", user="spark")
        node.sh(PACKAGE)
    yield drive
    for node in nodes:
        node.sh(f"rm -f {SUDOERS} {NETPLAN}; systemctl unmask {TARGETS}; apt-mark unhold mlnx-fw-updater")
        node.sh("dpkg --purge mlnx-fw-updater")


def states(nodes: list[Node]) -> list[str]:
    return [node.sh(STATE) for node in nodes]


def outcomes(done: Done) -> set[tuple[str, str, str]]:
    rows: list[dict[str, Any]] = done.json["changes"]
    return {(row["node"], row["code"], row["outcome"]) for row in rows}


def every(nodes: list[Node], outcome: str) -> set[tuple[str, str, str]]:
    return {(node.name, code, outcome) for node in nodes for code in CODES}


def test_mended_once_and_taken_back(here: Drive, nodes: list[Node]) -> None:
    """Guards the whole loop on real nodes: all made, none left to make, and all as it was to the letter."""
    before = states(nodes)
    fixed = here.run("check", "--fix", "--yes", "--json", *ONLY)
    assert outcomes(fixed) == every(nodes, "done"), str(fixed)
    assert {one["code"] for one in fixed.json["findings"]}.isdisjoint(CODES)
    for node in nodes:
        assert node.sh(f"stat -c %a {NETPLAN}; wc -c <{HUB}/refs/main").split() == ["600", "3"]
        assert node.sh(f"systemctl is-enabled {TARGETS}", check=False).split() == ["masked"] * 4
        assert node.sh("apt-mark showhold") == "mlnx-fw-updater"
        assert node.sh(f"stat -c '%a %U' {RECORD}") == "600 spark"
        assert "hold mlnx-fw-updater" in node.sh("cat ~spark/.local/state/sparkwright/audit.log")
    assert here.run("check", "--fix", "--yes", "--json", *ONLY).json["changes"] == []
    undone = here.run("check", "--undo", "--yes", "--json")
    assert (undone.code, outcomes(undone)) == (0, every(nodes, "done")), str(undone)
    assert states(nodes) == before
    assert here.good("check", "--undo", "--yes").out == "nothing is recorded that --fix has changed\n"


def test_killed_between_two_changes_and_taken_back(here: Drive, nodes: list[Node]) -> None:
    """Guards kill -9: what was made and what was under way are both recorded on the node, and both come back."""
    before, first = states(nodes), nodes[0]
    with slowed(first, "systemctl", 2, "mask*"):
        call = here.start("check", "--fix", "--yes", *ONLY)
        call.saw("spark-1 HOST012")
        _until(first, "pgrep -f '[s]ystemctl mask'")
        call.kill()
        _until(first, "! pgrep -f '[s]ystemctl mask'")
    made = json.loads(first.sh(f"cat {RECORD}"))["changes"]
    assert {row["code"]: row["done"] for row in made} == {code: code != "HOST012" for code in CODES}
    assert states(nodes)[0] != before[0]
    assert lease(first)
    busy = here.run("check", "--undo", "--yes")
    assert (busy.code, "check --fix" in busy.err) == (4, True), str(busy)
    undone = here.run("check", "--undo", "--yes", "--json", "--break-lease")
    assert (undone.code, {outcome for *_, outcome in outcomes(undone)}) == (0, {"done"}), str(undone)
    assert states(nodes) == before
    assert not lease(first)


def test_sudo_that_wants_a_password_leaves_root_things_alone(here: Drive, nodes: list[Node]) -> None:
    """Guards that nothing is half done: real sudo refuses, commands are shown, the user's own is made."""
    before = states(nodes)
    for node in nodes:
        node.sh(f"rm {SUDOERS}")
    done = here.run("check", "--fix", "--yes", *ONLY)
    assert "a password is required. By hand:" in done.out, str(done)
    assert f"sudo systemctl mask {TARGETS}" in done.out
    assert [state.replace("\n3\n", "\n4\n", 1) for state in states(nodes)] == before


def test_what_the_kernel_refuses_leaves_nothing_behind(here: Drive, nodes: list[Node]) -> None:
    """Guards real sysctl on a node whose /proc/sys is read-only: told, taken back, not written for the next boot."""
    if " ro," not in nodes[0].sh("grep ' /proc/sys ' /proc/mounts", check=False):
        pytest.skip("hardware: here the nodes could change the machine's own kernel")
    before = states(nodes)
    done = here.run("check", "--fix", "--yes", "--json", "--only", "MEM009")
    assert {outcome for *_, outcome in outcomes(done)} == {"failed"}, str(done)
    assert all("nothing is changed" in row["why"] for row in done.json["changes"])
    assert states(nodes) == before
    assert here.good("check", "--undo", "--yes").out == "nothing is recorded that --fix has changed\n"


def _until(node: Node, condition: str, limit: float = 20) -> None:
    end = time.monotonic() + limit
    while node.exec(["sh", "-c", condition], check=False).returncode != 0:
        assert time.monotonic() < end, condition
        time.sleep(0.1)
