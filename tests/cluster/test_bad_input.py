"""Bad input that only nodes can show: one clear message, the right exit code, and nodes as they were."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.drive import running
from cluster.stage_drive import REAL, TWIN, StageDriver, everything
from patience import wait_until
from testbed import ContainerNode, Testbed

SIMULATED = {**TWIN, "model": {**TWIN["model"], "id": "sparkwright/twin-tiny"}}


@pytest.fixture
def driver(tmp_path: Path, ssh_config: Path) -> StageDriver:
    return StageDriver(tmp_path, ssh_config)


@pytest.fixture(autouse=True)
def as_they_were(testbed_nodes: list[ContainerNode], fresh_nodes: None) -> Iterator[None]:
    """Asserts that a refused call leaves nothing on any node; its last remote commands may end after it."""
    before = [everything(node) for node in testbed_nodes]
    yield

    def differences() -> list[set[str]]:
        return [set(everything(node)) ^ set(was) for node, was in zip(testbed_nodes, before, strict=True)]

    wait_until(lambda: not any(differences()), lambda: f"nodes as they were: {differences()}", poll=0.5)


def in_docker(testbed: Testbed) -> dict[str, Any]:
    engine = {"name": "simulator", "version": "0.21.0", "runtime": "docker", "image": testbed.engine_image}
    return {**SIMULATED, "engine": {**engine, "image_note": "made by the testbed"}}


@pytest.mark.full
def test_a_node_whose_sshd_does_not_answer(driver: StageDriver) -> None:
    """The node and ssh's reason are named; the one that does answer is not touched."""
    driver.cluster("spark-1", {"name": "spark-2", "ssh": "ssh://spark@spark-2:2"})
    driver.up(SIMULATED).is_one_message(3, "spark-2: connection refused", "sshd")


@pytest.mark.full
def test_a_user_whom_the_node_does_not_know(driver: StageDriver) -> None:
    """Keys that are not accepted: reported with how to copy the key there."""
    driver.cluster("spark-1", {"name": "spark-2", "ssh": "root@spark-2"})
    driver.up(SIMULATED).is_one_message(3, "spark-2: it accepts none of your keys", "ssh-copy-id")


@pytest.mark.full
def test_a_host_that_is_in_no_known_hosts(driver: StageDriver, testbed_nodes: list[ContainerNode]) -> None:
    """An unknown host key is never accepted on the way; the user is asked to compare it."""
    driver.cluster("spark-1", {"name": "spark-2", "ssh": f"spark@{testbed_nodes[1].mgmt}"})
    (driver.folder / "config").write_text(
        f"Include {driver.ssh_config}\nHost *\n  UserKnownHostsFile {driver.folder}/known\n"
        "  StrictHostKeyChecking yes\n"
    )
    driver.ssh_config = driver.folder / "config"
    driver.up(SIMULATED).is_one_message(3, "spark-2: its host key is not known here", "compare the fingerprint")


@pytest.mark.full
def test_all_nodes_that_are_lost_are_named(driver: StageDriver) -> None:
    """Two nodes out of reach are one message, not two attempts."""
    wrong = [{"name": name, "ssh": f"ssh://spark@{name}:2"} for name in ("spark-1", "spark-2")]
    driver.cluster(*wrong)
    driver.up(SIMULATED).is_one_message(3, "spark-1: connection refused", "spark-2: connection refused")


@pytest.mark.full
def test_no_right_to_use_docker(driver: StageDriver, testbed: Testbed) -> None:
    """DOCK002 before anything is started, with the command that gives the right."""
    driver.cluster("spark-1", {"name": "spark-2", "ssh": "nodocker@spark-2"})
    driver.up(in_docker(testbed)).is_one_message(1, "DOCK002", "spark-2", "usermod -aG docker nodocker")


@pytest.mark.full
def test_an_engine_version_that_nobody_has_read(driver: StageDriver) -> None:
    """Its flags are checked against the nearest version that was read, and the plan reports which."""
    unread = {**REAL, "engine": {**REAL["engine"], "version": "0.99.0"}}
    told = driver.run("plan", driver.write("tiny.yaml", unread))
    assert [word for word in ("ENG005", "no flag data for 0.99.0", "vllm 0.33.0") if word not in told.text] == []


@pytest.mark.full
def test_an_interface_that_the_node_does_not_have(driver: StageDriver) -> None:
    """A fabric that is named in the cluster file and is not there is not replaced by another in silence."""
    driver.cluster("spark-1", {"name": "spark-2", "fabric": {"interface": "enp9s0"}})
    driver.up(SIMULATED).is_one_message(1, "spark-2", "enp9s0")


@pytest.mark.full
def test_a_flag_that_the_engine_does_not_have(driver: StageDriver) -> None:
    """It would end the engine after its start: found in the version's own list before."""
    told = driver.up({**SIMULATED, "flags": {"max-modle-len": 5}})
    told.is_one_message(1, "max-modle-len", "max-model-len")


@pytest.mark.full
def test_logs_of_a_deployment_that_is_not_there(driver: StageDriver) -> None:
    """Nothing runs under that name, and that is what is reported, with what there is."""
    driver.run("logs", "absent").is_one_message(2, "no deployment absent on spark-1, spark-2", "there are: none")


@pytest.mark.full
def test_down_of_another_name_touches_nothing(driver: StageDriver, testbed_nodes: list[ContainerNode]) -> None:
    """A typing error takes nobody's endpoint away: the names that exist are reported."""
    assert driver.up(SIMULATED, "--name", "mine").code == 0
    wait_until(lambda: all(running(testbed_nodes).values()), "both ranks to run")
    before = running(testbed_nodes)
    driver.run("down", "mien").is_one_message(2, "no deployment mien", "mine")
    assert running(testbed_nodes) == before
    driver.run("logs", "mine", "--rank", "7").is_one_message(2, "mine has no rank 7", "0, 1")
    assert driver.run("down", "mine").code == 0


@pytest.mark.full
def test_down_twice_is_down_once(driver: StageDriver) -> None:
    """Guards scripts that clean up, and those that have a typing error: a name that nobody took down is unknown."""
    assert driver.up(SIMULATED, "--name", "mine", "--no-supervise").code == 0
    assert [driver.run("down", "mine").code for _ in range(2)] == [0, 0]
    driver.run("down", "absent").is_one_message(2, "no deployment absent on spark-1, spark-2", "there are: none")
