"""`check --fix` and `--undo` on two real nodes: systemd, sudo, sshd, apt-mark and files as they are there."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cluster.drive import CallResult, CommandDriver, read_lease, slowed
from patience import wait_until
from sparkwright.remote import repair
from testbed import ContainerNode

NETPLAN = "/etc/netplan/40-cx7.yaml"
HUB = "/home/spark/.cache/huggingface/hub/models--org--big"
RECORD = "/home/spark/.local/state/sparkwright/fixes.json"
SUDOERS = "/etc/sudoers.d/check"
PASSWORD, PATTERN = "Correct-Horse-42", "Correct-Horse-4[2]"  # the pattern does not find itself
TARGETS = "sleep.target suspend.target hibernate.target hybrid-sleep.target"
CODES = ("DRV006", "NET011", "MODEL005", "HOST012")
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
def fixable_driver(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> Iterator[CommandDriver]:
    """The nodes with their own /proc and systemd, a user whom sudo asks for no password, and four things to fix."""
    driver.node_env = {"SPARKWRIGHT_SYSROOT": ""}
    for node in testbed_nodes:
        node.write(SUDOERS, "spark ALL=(root) NOPASSWD: ALL\n", mode="440")
        node.write(NETPLAN, "network: {version: 2}\n")
        node.write(f"{HUB}/refs/main", "abc\n", user="spark")
        node.write(f"{HUB}/snapshots/abc/config.json", "{}", user="spark")
        node.sh(PACKAGE)
    yield driver
    for node in testbed_nodes:
        node.sh(f"rm -f {SUDOERS} {NETPLAN}; systemctl unmask {TARGETS}; apt-mark unhold mlnx-fw-updater")
        node.sh("dpkg --purge mlnx-fw-updater")


def states(nodes: list[ContainerNode]) -> list[str]:
    return [node.sh(STATE) for node in nodes]


def outcomes(done: CallResult) -> set[tuple[str, str, str]]:
    rows: list[dict[str, Any]] = done.json["changes"]
    return {(row["node"], row["code"], row["outcome"]) for row in rows}


def expected_outcomes(nodes: list[ContainerNode], outcome: str) -> set[tuple[str, str, str]]:
    return {(node.name, code, outcome) for node in nodes for code in CODES}


@pytest.mark.full
def test_fixed_once_and_taken_back(fixable_driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """Guards the whole loop on real nodes: all made, none left to make, and all as it was to the letter."""
    before = states(testbed_nodes)
    fixed = fixable_driver.run("check", "--fix", "--yes", "--json", *ONLY)
    assert outcomes(fixed) == expected_outcomes(testbed_nodes, "done"), str(fixed)
    assert {one["code"] for one in fixed.json["findings"]}.isdisjoint(CODES)
    for node in testbed_nodes:
        assert node.sh(f"stat -c %a {NETPLAN}; wc -c <{HUB}/refs/main").split() == ["600", "3"]
        assert node.sh(f"systemctl is-enabled {TARGETS}", check=False).split() == ["masked"] * 4
        assert node.sh("apt-mark showhold") == "mlnx-fw-updater"
        assert node.sh(f"stat -c '%a %U' {RECORD}") == "600 spark"
        assert "hold mlnx-fw-updater" in node.sh("cat ~spark/.local/state/sparkwright/audit.log")
    assert fixable_driver.run("check", "--fix", "--yes", "--json", *ONLY).json["changes"] == []
    undone = fixable_driver.run("check", "--undo", "--yes", "--json")
    assert (undone.code, outcomes(undone)) == (0, expected_outcomes(testbed_nodes, "done")), str(undone)
    assert states(testbed_nodes) == before
    assert fixable_driver.good("check", "--undo", "--yes").out == "nothing is recorded that --fix has changed\n"


@pytest.mark.full
def test_killed_between_two_changes_and_taken_back(
    fixable_driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """Guards kill -9: what was made and what was under way are both recorded on the node, and both come back."""
    before, first = states(testbed_nodes), testbed_nodes[0]
    with slowed(first, "systemctl", 8, "mask*"):
        call = fixable_driver.start("check", "--fix", "--yes", *ONLY)
        call.saw("spark-1 HOST012")
        _until(first, "pgrep -f '[s]ystemctl mask'")
        call.kill()
        _until(first, "! pgrep -f '[s]ystemctl mask'")
    made = json.loads(first.sh(f"cat {RECORD}"))["changes"]
    assert {row["code"]: row["done"] for row in made} == {code: code != "HOST012" for code in CODES}
    assert states(testbed_nodes)[0] != before[0]
    assert read_lease(first)
    for node in testbed_nodes:  # of a process that has ended, but not known to: it ran before this machine's last boot
        node.sh('sed -i \'s/"process": "/&0/\' /run/lock/sparkwright/lease')
    busy = fixable_driver.run("check", "--undo", "--yes")
    assert (busy.code, "check --fix" in busy.err) == (4, True), str(busy)
    undone = fixable_driver.run("check", "--undo", "--yes", "--json", "--break-lease")
    assert (undone.code, {outcome for *_, outcome in outcomes(undone)}) == (0, {"done"}), str(undone)
    assert states(testbed_nodes) == before
    assert not read_lease(first)


@pytest.mark.full
def test_sudo_that_wants_a_password_leaves_root_things_alone(
    fixable_driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """Guards that nothing is half done: real sudo refuses, commands are shown, the user's own is made."""
    before = states(testbed_nodes)
    for node in testbed_nodes:
        node.sh(f"rm {SUDOERS}")
    done = fixable_driver.run("check", "--fix", "--yes", *ONLY)
    assert "sudo wants a password there (--ask-become-pass). By hand:" in done.out, str(done)
    assert done.out.rstrip().endswith("; 6 need root: run with --ask-become-pass"), str(done)
    nowhere = fixable_driver.run("check", "--fix", "--yes", "--ask-become-pass", *ONLY)
    assert (nowhere.code, "there is no terminal to ask on" in nowhere.err) == (2, True), str(nowhere)
    assert f"sudo systemctl mask {TARGETS}" in done.out
    assert [state.replace("\n3\n", "\n4\n", 1) for state in states(testbed_nodes)] == before


@pytest.fixture
def asking(fixable_driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> Iterator[CommandDriver]:
    """Works as above, with a real password that sudo asks for; the user's own one is back afterwards."""
    before = [node.sh("getent shadow spark | cut -d: -f2") for node in testbed_nodes]
    for node in testbed_nodes:
        node.write(SUDOERS, "spark ALL=(root) PASSWD: ALL\n", mode="440")
        node.sh(f"echo 'spark:{PASSWORD}' | chpasswd")
    yield fixable_driver
    for node, hashed in zip(testbed_nodes, before, strict=True):
        node.exec(["usermod", "-p", hashed, "spark"])


@pytest.mark.full
def test_the_password_for_sudo_is_asked_for_once(asking: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """Guards that real sudo gets it on every node, and that no argument, environment, log or record ever has it."""
    before, first = states(testbed_nodes), testbed_nodes[0]
    with slowed(first, "systemctl", 3, "mask*"):
        call = asking.start("check", "--fix", "--yes", "--ask-become-pass", *ONLY, tty=True)
        call.saw("password for sudo on spark-1, spark-2: ").type(PASSWORD)
        _until(first, "pgrep -f '[s]ystemctl mask'")
        assert first.sh(f"cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ | grep -ac '{PATTERN}'", check=False) == "0"
        done = call.finish()
    assert "need root" not in done.err and done.err.count("password for sudo") == 1, str(done)
    assert PASSWORD not in done.err
    for node in testbed_nodes:
        assert node.sh(f"systemctl is-enabled {TARGETS}", check=False).split() == ["masked"] * 4, str(done)
        assert node.sh("apt-mark showhold") == "mlnx-fw-updater"
        logs = "/home/spark/.local/state/sparkwright /var/log /run/log /tmp /dev/shm"
        assert node.sh(f"journalctl --sync; grep -ral '{PATTERN}' {logs}", check=False) == ""
    call = asking.start("check", "--undo", "--yes", "--ask-become-pass", tty=True)
    undone = call.saw("password for sudo").type(PASSWORD).finish()
    assert (undone.code, states(testbed_nodes)) == (0, before), str(undone)


@pytest.mark.full
def test_a_wrong_password_is_tried_once_on_each_node(asking: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """Guards against a locked account: one attempt, an error that names the nodes, and nothing changed."""
    before = states(testbed_nodes)
    since = [node.sh("date +%s") for node in testbed_nodes]
    call = asking.start("check", "--fix", "--yes", "--ask-become-pass", *ONLY, tty=True)
    done = call.saw("password for sudo").type("not-it").finish()
    assert (done.code, "sudo did not accept the password on spark-1, spark-2" in done.err) == (2, True), str(done)
    assert "nothing was changed" in done.err and states(testbed_nodes) == before
    for node, at in zip(testbed_nodes, since, strict=True):
        failed = f"journalctl --sync; journalctl --since @{at} -t sudo | grep -c 'authentication failure'"
        assert node.sh(failed, check=False) in ("0", "1")


@pytest.mark.full
def test_what_the_kernel_refuses_leaves_nothing_behind(
    fixable_driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """Guards real sysctl on a node whose /proc/sys is read-only: reported, taken back, not written for the next
    boot."""
    if " ro," not in testbed_nodes[0].sh("grep ' /proc/sys ' /proc/mounts", check=False):
        pytest.skip("hardware: here the nodes could change the machine's own kernel")
    before = states(testbed_nodes)
    done = fixable_driver.run("check", "--fix", "--yes", "--json", "--only", "MEM009")
    assert {outcome for *_, outcome in outcomes(done)} == {"failed"}, str(done)
    assert all("nothing is changed" in row["why"] for row in done.json["changes"])
    assert states(testbed_nodes) == before
    assert fixable_driver.good("check", "--undo", "--yes").out == "nothing is recorded that --fix has changed\n"


def _until(node: ContainerNode, condition: str) -> None:
    wait_until(lambda: node.exec(["sh", "-c", condition], check=False).returncode == 0, condition, poll=0.1)


@pytest.mark.full
def test_a_clock_cap_lasts_over_a_boot_and_goes_without_trace(testbed_nodes: list[ContainerNode]) -> None:
    """Guards the unit on a real systemd: set now and at each boot, visible without root, undone completely."""
    node, fix = testbed_nodes[0], repair.clock_fix("spark-1", 1900)
    unit, calls = f"/etc/systemd/system/{repair.CLOCK_UNIT}", "/var/log/sparkwright-clock"
    node.write("/opt/clock/nvidia-smi", f'#!/bin/sh\necho "$*" >>{calls}\n', mode="755")
    as_root = ("env", "PATH=/opt/clock:/usr/bin:/bin")

    def look() -> str:
        return node.exec(list(fix.look.argv), user="spark", check=False).stdout.strip()

    try:
        before = look()
        node.exec([*as_root, *fix.do[0].argv])
        assert (look(), node.sh(f"cat {calls}")) == (fix.sets, "-lgc 200,1900")
        node.reboot()
        _until(node, f"systemctl is-active -q {repair.CLOCK_UNIT}")  # `reboot` does not wait for it
        assert look() == fix.sets and node.sh(f"cat {calls}").splitlines()[-1] == "-lgc 200,1900"
        node.exec([*as_root, *fix.undo[0].argv])
        assert node.sh(f"cat {calls}").splitlines()[-1] == "-rgc"
        assert (
            look() == before
            and node.sh(f"ls {unit} /etc/systemd/system/*.wants/{repair.CLOCK_UNIT}", check=False) == ""
        )
    finally:
        node.sh(f"rm -rf /opt/clock {calls}")
