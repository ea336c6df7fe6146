"""Copies that are cut off at any point continue; what cannot be copied ends with the reason and no half file."""

import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.stage_drive import (
    MIB,
    ROOT,
    TWIN,
    StageDriver,
    put_hub_model,
    received,
    restore_fabric,
    slow_fabric,
    tree_checksums,
    wait_for,
    wait_for_result,
)
from sparkwright.domain.cluster import Transfer
from sparkwright.remote import staging
from testbed import ContainerNode
from testbed.harm import set_fabric

FROM, TO = "/home/spark/cut/from", "/home/spark/cut/to"
PARTIAL = f"{TO}/.sparkwright-partial"
RANGE = 64 * MIB
TOTAL = 800 * MIB
NOTED = (
    f"cat {PARTIAL}/*.journal 2>/dev/null | awk 'NF == 3 && /^[0-9]/ {{ n += $2 }} END {{ print n + 0 }}';"
    f"find {TO} -name '[12]' -printf '%s\\n' 2>/dev/null"
)


@pytest.fixture
def driver(tmp_path: Path, ssh_config: Path) -> StageDriver:
    return StageDriver(tmp_path, ssh_config)


@pytest.fixture
def slow_sender(testbed_nodes: list[ContainerNode]) -> Iterator[ContainerNode]:
    """The first node sends slowly over the fabric: a copy from it can be met on its way."""
    slow_fabric(testbed_nodes[0], "600mbit")
    yield testbed_nodes[0]
    restore_fabric(testbed_nodes[0])


class Copies:
    """The program that copies, from the first node to the second, each time in a process of its own."""

    def __init__(self, nodes: list[ContainerNode], ssh_config: Path) -> None:
        self.here, self.there = nodes
        keys = self.there.sh("cat /etc/ssh/ssh_host_*_key.pub").splitlines()
        peer = staging.Peer("spark", self.there.fabric, 22, staging.known_hosts(self.there.fabric, 22, keys))
        self._command = staging.push_tree(FROM, TO, peer, Transfer(streams=4))
        self._words = ["ssh", "-F", str(ssh_config), "-l", "spark", self.here.name]

    def start(self) -> "subprocess.Popen[bytes]":
        words = " ".join("'" + word.replace("'", "'\\''") + "'" for word in self._command.argv)
        pipe = subprocess.PIPE
        process = subprocess.Popen([*self._words, words], stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT)
        assert process.stdin
        process.stdin.write(self._command.stdin or b"")
        process.stdin.close()
        process.stdin = None
        return process

    def noted(self) -> int:
        """Bytes that journals name, or files that are whole have."""
        return sum(map(int, self.there.sh(NOTED, check=False).split()))

    def kill(self, source: bool) -> None:
        """SIGKILL for the programs of one side."""
        node, mark = (self.here, '"source"') if source else (self.there, "python3 -I -S -c import sys;f=")
        pids = [str(one.pid) for one in node.processes() if mark in one.command]
        node.exec(["kill", "-9", *pids], check=False)


def wait_until_more(copies: Copies, than: int) -> None:
    for _ in range(2000):
        if copies.noted() > than:
            return
        time.sleep(0.05)
    raise AssertionError(f"no more than {than} bytes have arrived")


@pytest.mark.full
def test_killed_at_many_points_it_sends_one_range_again(
    testbed_nodes: list[ContainerNode], slow_sender: ContainerNode, ssh_config: Path
) -> None:
    """One range at most is sent again after SIGKILL on either side: bytes over the fabric less the journals' gain, each
    time."""
    copies, dice = Copies(testbed_nodes, ssh_config), random.Random(11)
    here, there = testbed_nodes
    here.sh(f"mkdir -p {FROM} && cd {FROM} && for n in 1 2; do head -c 400M /dev/urandom > $n; done", user="spark")
    lost, sound = [], set[str]()
    for cut in range(20):
        before = copies.noted()
        if before > TOTAL - RANGE:  # on a busy machine more arrives between two cuts
            break
        wire, process = received(there)[0], copies.start()
        wait_until_more(copies, before + dice.randrange(4) * 8 * MIB)
        copies.kill(source=bool(cut % 2))
        process.communicate(timeout=60)
        wait_for(there, "! pgrep -u spark -f 'import sys;f=' > /dev/null")
        lost.append(received(there)[0] - wire - (copies.noted() - before))
        for whole in set(there.sh(f"find {TO} -maxdepth 1 -name '[12]' -printf '%f:%i:%T@ '").split()) - sound:
            name = whole[0]  # the rest of the word tells whether it was written again
            assert there.sh(f"sha256sum < {TO}/{name}") == here.sh(f"sha256sum < {FROM}/{name}")
            sound.add(whole)
    assert len(lost) >= 6, lost
    assert max(lost) <= RANGE, lost
    restore_fabric(slow_sender)
    out, _ = copies.start().communicate(timeout=120)
    assert b"100%" in out, out
    assert [line for line in tree_checksums(there, TO) if "incomplete" not in line] == tree_checksums(here, FROM)
    print("sent again, MiB:", [round(one / MIB, 1) for one in lost])


@pytest.mark.full
def test_a_node_that_restarts_in_the_middle_continues(driver: StageDriver, testbed_nodes: list[ContainerNode]) -> None:
    """The start fails with the reason; the next one sends what the disk of the restarted node lacks."""
    here, there = testbed_nodes
    put_hub_model(there, shards=2, size=48 * MIB)
    slow_fabric(there, "30mbit")  # a look and an orderly stop take seconds: the first file must not be whole by then
    with driver.running("up", driver.write("tiny.yaml", TWIN), "--detach") as first:
        wait_for(here, f"[ $(cat {ROOT}/.sparkwright-partial/*.journal 2>/dev/null | grep -vc of) -ge 4 ]")
        here.reboot()
        cut = wait_for_result(first)
    restore_fabric(there)
    assert cut.code not in (0, None) and "Traceback" not in cut.text, cut.text
    assert here.sh(f"find {ROOT}/blobs -size +1M | wc -l") == "0"
    before = received(here)[0]
    again = driver.up(TWIN)
    assert again.code == 0, again.text
    assert received(here)[0] - before < 70 * MIB
    assert tree_checksums(here, ROOT) == tree_checksums(there, ROOT)


@pytest.mark.full
def test_without_a_fabric_nothing_is_copied(driver: StageDriver, testbed_nodes: list[ContainerNode]) -> None:
    """Weights never go over the management network: the start is refused with the finding, and nothing has changed."""
    put_hub_model(testbed_nodes[1])
    set_fabric(testbed_nodes[0], up=False)
    try:
        refused = driver.up(TWIN)
    finally:
        set_fabric(testbed_nodes[0], up=True)
    refused.is_one_message(1, "FAB")
    assert tree_checksums(testbed_nodes[0], ROOT) == []


@pytest.mark.full
def test_a_target_that_is_read_only_is_named(driver: StageDriver, testbed_nodes: list[ContainerNode]) -> None:
    """The path and the reason, and the other node keeps serving what it has."""
    put_hub_model(testbed_nodes[1])
    hub = str(Path(ROOT).parent)
    testbed_nodes[0].sh(f"mkdir -p {hub} && chown -R spark /home/spark/.cache && mount -t tmpfs -o ro tmpfs {hub}")
    try:
        told = driver.up(TWIN)
    finally:
        testbed_nodes[0].sh(f"umount {hub}")
    told.is_one_message(1, "could not be copied there from spark-2", "Read-only file system")
