"""The output of `ps` and `systemctl status` on a node while a deployment serves: short words, no scripts."""

import pytest

from cluster.drive import RUNTIMES, CommandDriver, assert_clean
from cluster.test_supervised import STATE, UNIT, USER, read_live
from patience import wait_until
from testbed import ContainerNode

LONGEST = 1000
# The command lines on a node as `ps` would print them, one a line: what a script has of its own is too long.
LOOK = r"""
import os
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        words = open(f"/proc/{pid}/cmdline", "rb").read().decode(errors="replace")
    except OSError:
        continue
    if words:
        print(len(words), words.replace("\0", " ").replace("\n", " ")[:300])
"""


def command_lines(node: ContainerNode) -> dict[str, int]:
    """Command line -> characters, of all that runs on a node."""
    done = node.exec(["python3", "-c", LOOK], user="root", timeout=60)
    rows = (line.partition(" ") for line in done.stdout.splitlines())
    return {words: int(size) for size, _, words in rows if "import os for pid" not in words}


@pytest.mark.full
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_runs_for_a_deployment_has_short_command_lines(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str
) -> None:
    """Ranks, their wrappers, the supervisor and its helpers over ssh: on head and worker, again and again."""
    driver.supervise = True
    driver.env = {"SPARKWRIGHT_SUPERVISOR_SCALE": "0.3"}
    head, seen = testbed_nodes[0], [dict[str, int](), dict[str, int]()]
    driver.good("up", driver.recipe(runtime))
    wait_until(lambda: read_live(head).get("phase") == "ready", "to serve")
    for _ in range(20):
        for node, known in zip(testbed_nodes, seen, strict=True):
            known |= command_lines(node)
    for known in seen:
        long = {words: size for words, size in known.items() if size > LONGEST}
        assert long == {}, long
    if runtime == "process":
        assert any("/leader.sh " in words and STATE in words for words in seen[1]), seen[1]
    status = head.sh(f"{USER} status --no-pager {UNIT}", user="spark")
    assert max(map(len, status.splitlines())) < LONGEST, status
    driver.good("down", "drill")
    assert_clean(testbed_nodes)
