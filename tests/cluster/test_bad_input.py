"""Bad input that only nodes can show: one clear message, the right exit code, and nodes as they were."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.stage_drive import REAL, TWIN, Drive, everything
from testbed import Node, Testbed

SIMULATED = {**TWIN, "model": {**TWIN["model"], "id": "sparkwright/twin-tiny"}}


@pytest.fixture
def drive(tmp_path: Path, ssh_config: Path) -> Drive:
    return Drive(tmp_path, ssh_config)


@pytest.fixture(autouse=True)
def as_they_were(nodes: list[Node], fresh_nodes: None) -> Iterator[None]:
    """Asserts that a refused call leaves nothing on any node."""
    before = [everything(node) for node in nodes]
    yield
    assert [everything(node) for node in nodes] == before


def in_docker(testbed: Testbed) -> dict[str, Any]:
    engine = {"name": "simulator", "version": "0.21.0", "runtime": "docker", "image": testbed.engine_image}
    return {**SIMULATED, "engine": {**engine, "image_note": "made by the testbed"}}


@pytest.mark.full
def test_a_node_whose_sshd_does_not_answer(drive: Drive) -> None:
    """The node and ssh's reason are named; the one that does answer is not touched."""
    drive.cluster("spark-1", {"name": "spark-2", "ssh": "ssh://spark@spark-2:2"})
    drive.up(SIMULATED).is_one_message(3, "spark-2: connection refused", "sshd")


@pytest.mark.full
def test_a_user_whom_the_node_does_not_know(drive: Drive) -> None:
    """Keys that are not accepted: reported with how to copy the key there."""
    drive.cluster("spark-1", {"name": "spark-2", "ssh": "root@spark-2"})
    drive.up(SIMULATED).is_one_message(3, "spark-2: it accepts none of your keys", "ssh-copy-id")


@pytest.mark.full
def test_a_host_that_is_in_no_known_hosts(drive: Drive, nodes: list[Node]) -> None:
    """An unknown host key is never accepted on the way; the user is asked to compare it."""
    drive.cluster("spark-1", {"name": "spark-2", "ssh": f"spark@{nodes[1].mgmt}"})
    (drive.folder / "config").write_text(
        f"Include {drive.ssh_config}\nHost *\n  UserKnownHostsFile {drive.folder}/known\n  StrictHostKeyChecking yes\n"
    )
    drive.ssh_config = drive.folder / "config"
    drive.up(SIMULATED).is_one_message(3, "spark-2: its host key is not known here", "compare the fingerprint")


@pytest.mark.full
def test_all_nodes_that_are_lost_are_named(drive: Drive) -> None:
    """Two nodes out of reach are one message, not two attempts."""
    wrong = [{"name": name, "ssh": f"ssh://spark@{name}:2"} for name in ("spark-1", "spark-2")]
    drive.cluster(*wrong)
    drive.up(SIMULATED).is_one_message(3, "spark-1: connection refused", "spark-2: connection refused")


@pytest.mark.full
def test_no_right_to_use_docker(drive: Drive, testbed: Testbed) -> None:
    """DOCK002 before anything is started, with the command that gives the right."""
    drive.cluster("spark-1", {"name": "spark-2", "ssh": "nodocker@spark-2"})
    drive.up(in_docker(testbed)).is_one_message(1, "DOCK002", "spark-2", "usermod -aG docker nodocker")


@pytest.mark.full
def test_an_engine_version_that_nobody_has_read(drive: Drive) -> None:
    """Its flags are checked against the nearest version that was read, and the plan reports which."""
    unread = {**REAL, "engine": {**REAL["engine"], "version": "0.99.0"}}
    told = drive.run("plan", drive.write("tiny.yaml", unread))
    assert [word for word in ("ENG005", "no flag data for 0.99.0", "vllm 0.33.0") if word not in told.text] == []


@pytest.mark.full
def test_an_interface_that_the_node_does_not_have(drive: Drive) -> None:
    """A fabric that is named in the cluster file and is not there is not replaced by another in silence."""
    drive.cluster("spark-1", {"name": "spark-2", "fabric": {"interface": "enp9s0"}})
    drive.up(SIMULATED).is_one_message(1, "spark-2", "enp9s0")


@pytest.mark.full
def test_a_flag_that_the_engine_does_not_have(drive: Drive) -> None:
    """It would end the engine after its start: found in the version's own list before."""
    told = drive.up({**SIMULATED, "flags": {"max-modle-len": 5}})
    told.is_one_message(1, "max-modle-len", "max-model-len")


@pytest.mark.full
def test_logs_of_a_deployment_that_is_not_there(drive: Drive) -> None:
    """Nothing runs under that name, and that is what is reported, with what there is."""
    drive.run("logs", "absent").is_one_message(2, "no deployment absent on spark-1, spark-2", "there are: none")


@pytest.mark.full
def test_down_of_another_name_touches_nothing(drive: Drive, nodes: list[Node]) -> None:
    """A typing error takes nobody's endpoint away: the names that exist are reported."""
    assert drive.up(SIMULATED, "--name", "mine").code == 0
    running = [node.processes() for node in nodes]
    drive.run("down", "mien").is_one_message(2, "no deployment mien", "mine")
    assert {p.pid for p in running[0]} <= {p.pid for p in nodes[0].processes()} | {
        p.pid for p in running[0] if "sshd" in p.command
    }
    drive.run("logs", "mine", "--rank", "7").is_one_message(2, "mine has no rank 7", "0, 1")
    assert drive.run("down", "mine").code == 0


@pytest.mark.full
def test_down_twice_is_down_once(drive: Drive) -> None:
    """Guards scripts that clean up, and those that have a typing error: a name that nobody took down is unknown."""
    assert drive.up(SIMULATED, "--name", "mine", "--no-supervise").code == 0
    assert [drive.run("down", "mine").code for _ in range(2)] == [0, 0]
    drive.run("down", "absent").is_one_message(2, "no deployment absent on spark-1, spark-2", "there are: none")
