"""A rank that a supervisor starts is in a control group of its own, whichever systemd runs the supervisor."""

import json
import shlex
from collections.abc import Iterator

import pytest

from sparkwright.domain.plan import RankSpec
from sparkwright.domain.recipe import Runtime
from sparkwright.remote import process
from testbed import ContainerNode

SUDO = "/etc/sudoers.d/scoped"
FOLDER = "/home/spark/.local/state/sparkwright/deployments/scoped/rank0"
LABELS = json.dumps({"deployment": "scoped", "rank": "0", "spec-hash": "abc"})


@pytest.fixture
def testbed_nodes(testbed_nodes: list[ContainerNode]) -> Iterator[list[ContainerNode]]:
    """Their user may use sudo without a password, as a user whose supervisors run under the system's own systemd."""
    testbed_nodes[0].write(SUDO, "spark ALL=(root) NOPASSWD: ALL\n", mode="440")
    yield testbed_nodes
    testbed_nodes[0].sh(f"rm {SUDO}")


@pytest.mark.full
@pytest.mark.parametrize("words", ["--uid=spark --gid=spark", ""], ids=["spark, who may sudo", "root"])
def test_a_rank_leaves_the_group_of_a_system_unit(testbed_nodes: list[ContainerNode], words: str) -> None:
    """Guards ranks against what is done to the supervisor's unit: `systemctl kill`, an end by the kernel, a stop."""
    spec = RankSpec(0, "spark-1", ("sleep", "300"), {}, Runtime.PROCESS)
    command = process.start(spec, FOLDER, LABELS)
    testbed_nodes[0].write("/tmp/start", shlex.join(command.argv))  # systemd-run would expand its dollars
    run = f"systemd-run {words} --quiet --wait --collect --setenv=HOME=/home/spark"
    testbed_nodes[0].sh(f"{run} --unit=sparkwright-supervisor-scoped --property=KillMode=control-group sh /tmp/start")
    pid = testbed_nodes[0].sh(f"cut -d' ' -f1 {FOLDER}/pid")
    assert testbed_nodes[0].sh(f"cat /proc/{pid}/cgroup").endswith(f"/sparkwright-rank-{pid}.scope")
    assert testbed_nodes[0].sh("pgrep -xc sleep") != "0", "the unit has ended, and the rank goes on"
    testbed_nodes[0].sh(shlex.join(process.remove([FOLDER], 1).argv))
