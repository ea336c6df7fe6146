"""The harms that the testbed can do to its nodes for the drills are real, and a reset takes them back."""

import pytest

from cluster.drive import CommandDriver
from patience import wait_until
from testbed import ContainerNode, Testbed, TestbedError, harm

pytestmark = pytest.mark.full  # of the testbed itself


def available_gib(node: ContainerNode) -> float:
    return int(node.sh("sed -n 's/^MemAvailable: *//p' /opt/fixtures/proc/meminfo").split()[0]) / 1024**2


def utilization(node: ContainerNode) -> list[str]:
    asked = "nvidia-smi -i 0 --query-gpu=utilization.gpu,utilization.memory --format=csv,noheader"
    return node.sh(asked).split(", ")


def reaches(node: ContainerNode, address: str) -> bool:
    return node.exec(["timeout", "10", "bash", "-c", f"</dev/tcp/{address}/22"], check=False).returncode == 0


def test_memory_and_the_device_follow_the_ranks(
    testbed: Testbed, driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """A rank takes its claim and what it really holds; the device works while tokens are made; all comes back."""
    for node in testbed_nodes:
        node.set_shim("nvidia-smi", "twin")
        harm.live_memory(node, 116.0, 100.0)
    slow = {
        "SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0",
        "SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "1",
        "SPARKWRIGHT_SIMULATOR_STEP_MS": "40",
    }
    driver.good("up", driver.recipe("docker", slow))
    wait_until(lambda: all(15.0 < available_gib(node) < 16.0 for node in testbed_nodes), "their memory to be taken")
    wait_until(lambda: utilization(testbed_nodes[0]) == ["0 %", "0 %"], "the first answer's work to be over")
    body = '{"prompt": "x", "max_tokens": 2000, "ignore_eos": true}'
    asks = f"curl -s -H 'Content-Type: application/json' -d '{body}' http://127.0.0.1:8000/v1/completions"
    testbed_nodes[0].sh(f"{asks} >/dev/null 2>&1 &")
    wait_until(lambda: all(utilization(node) == ["94 %", "58 %"] for node in testbed_nodes), "both devices to work")
    driver.good("down", "drill")
    back = pytest.approx(116.0, abs=0.01)
    wait_until(lambda: all(available_gib(node) == back for node in testbed_nodes), "the ranks' memory to come back")
    testbed.reset()
    assert available_gib(testbed_nodes[0]) == pytest.approx(116.2, abs=0.1)


def test_cuts_are_cuts(testbed: Testbed, testbed_nodes: list[ContainerNode]) -> None:
    """ssh from the head only, the fabric for all; a reset fixes what a test has left."""
    head, worker = testbed_nodes
    harm.cut_ssh(worker, head)
    assert not reaches(head, worker.mgmt) and worker.ssh("true").returncode == 0
    harm.restore_ssh(worker)
    harm.set_fabric(worker, up=False)
    assert reaches(head, worker.mgmt) and not reaches(head, worker.fabric)
    harm.set_fabric(worker, up=True)
    assert reaches(head, worker.fabric)
    harm.cut_ssh(worker, head)
    testbed.reset()
    assert reaches(head, worker.mgmt)


def test_a_full_state_folder_and_a_stolen_port(testbed_nodes: list[ContainerNode]) -> None:
    """Not a byte can be written where the supervisor writes; the port answers to somebody else."""
    head = testbed_nodes[0]
    harm.small_state(head)
    harm.fill_state(head)
    with pytest.raises(TestbedError):
        head.sh("echo x > .local/state/sparkwright/x", user="spark")
    harm.empty_state(head)
    head.sh("echo x > .local/state/sparkwright/x", user="spark")
    harm.steal_port(head, 8000)
    wait_until(lambda: "0.0.0.0:8000" in head.sh("ss -ltn"), "the thief to listen")
    harm.give_port_back(head)
    assert "0.0.0.0:8000" not in head.sh("ss -ltn")
