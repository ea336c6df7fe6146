"""The nodes are as real as the other tests here take them to be."""

import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fakes.processes import command_lines
from patience import PATIENCE
from sparkwright.adapters.bundle import Bundle
from testbed import ContainerNode, Testbed
from testbed.daemon import Daemon
from testbed.rootfs import CONTAINED
from testbed.shell import wait_until

pytestmark = pytest.mark.full  # of the testbed itself


@pytest.fixture(params=[0, 1], ids=["spark-1", "spark-2"])
def testbed_node(testbed: Testbed, request: pytest.FixtureRequest) -> ContainerNode:
    return testbed.nodes[request.param]


@pytest.fixture
def first_node(testbed: Testbed) -> ContainerNode:
    return testbed.nodes[0]


def test_systemd_runs_the_node_without_failed_units(testbed_node: ContainerNode) -> None:
    """PID 1 is systemd and calls the node healthy."""
    wait = f"timeout {PATIENCE} systemctl is-system-running --wait"
    assert testbed_node.sh(wait, check=False, timeout=2 * PATIENCE) == "running"
    assert testbed_node.sh("hostname") == testbed_node.name


def test_ssh_checks_the_host_key_and_knows_the_node(testbed_node: ContainerNode) -> None:
    """A user comes in by name with strict host keys, to a shell that finds the shims first and sees the fixtures."""
    told = testbed_node.ssh(
        'hostname; echo "$SPARKWRIGHT_SYSROOT"; command -v nvidia-smi; command -v rdma'
    ).stdout.split()
    assert told == [testbed_node.name, "/opt/fixtures", "/usr/local/bin/nvidia-smi", "/usr/local/bin/rdma"]


def test_a_changed_host_key_is_refused_until_it_is_restored(first_node: ContainerNode) -> None:
    """A node that was reinstalled cannot pass for the one that is known."""
    first_node.regenerate_host_key()
    refused = first_node.ssh("true", check=False)
    assert refused.returncode == 255
    assert "HOST IDENTIFICATION HAS CHANGED" in refused.stderr
    first_node.restore_host_key()
    assert first_node.ssh("true").returncode == 0


def test_only_members_of_the_docker_group_may_use_docker(testbed_node: ContainerNode) -> None:
    """One user can run engines, the other means the owner who forgot the group."""
    assert testbed_node.ssh("docker ps -q").returncode == 0
    denied = testbed_node.ssh("docker ps -q", user="nodocker", check=False)
    assert denied.returncode != 0
    assert "permission denied" in denied.stderr


def test_root_is_granted_for_the_page_cache_only(first_node: ContainerNode) -> None:
    """sudo asks nothing for dropping caches, and gives nothing else."""
    assert first_node.ssh("sudo -n drop-caches").returncode == 0
    assert first_node.ssh("sudo -n id", check=False).returncode != 0


def test_nodes_reach_each_other_over_the_fabric_with_jumbo_frames(testbed_nodes: list[ContainerNode]) -> None:
    """Both functions of the cage carry 9000-byte frames to the peer, under the names that they have on a GB10."""
    here, there = testbed_nodes
    for device, address in (("enp1s0f0np0", there.fabric), ("enP2p1s0f0np0", there.fabric_b)):
        assert here.sh(f"cat /sys/class/net/{device}/mtu") == "9000"
        here.sh(f"ping -q -c1 -W2 -M do -s 8972 -I {device} {address}")
    assert here.sh("ip -o route show default").split()[4] == "enP7s7"


def test_nodes_trust_each_other_over_the_fabric(testbed_nodes: list[ContainerNode]) -> None:
    """Weights can go from node to node by ssh without a question."""
    here, there = testbed_nodes
    assert here.ssh(f"ssh -o BatchMode=yes {there.fabric} hostname").stdout.strip() == there.name


def test_a_cut_fabric_leaves_the_management_network(testbed_nodes: list[ContainerNode]) -> None:
    """A pulled cable is seen as one."""
    here, there = testbed_nodes
    here.set_link(up=False)
    assert here.exec(["ping", "-q", "-c1", "-W1", there.fabric], check=False).returncode != 0
    assert here.ssh("true").returncode == 0


def test_the_engine_image_has_one_digest_and_the_source(testbed: Testbed, testbed_node: ContainerNode) -> None:
    """Every node holds the same image, and python3 in it finds this checkout's sparkwright and what it needs."""
    assert testbed_node.image_id(testbed.engine_image) == testbed.engine_image_id
    script = "import sparkwright, uvicorn, starlette, pydantic, httpcore; print(sparkwright.__file__)"
    run = f"docker run --rm --network host {testbed.engine_image} python3 -c '{script}'"
    assert testbed_node.ssh(run).stdout.strip() == "/opt/sparkwright/src/sparkwright/__init__.py"


def test_a_container_may_ask_for_all_that_a_gpu_engine_needs(testbed: Testbed, first_node: ContainerNode) -> None:
    """GPU, verbs devices, pinned memory and host namespaces are granted, as on a real node."""
    wants = "--network host --ipc host --init --gpus all --device /dev/infiniband --cap-add IPC_LOCK"
    limits = "--ulimit memlock=-1:-1 --ulimit stack=67108864 --shm-size 1g"
    seen = first_node.ssh(
        f"docker run --rm {wants} {limits} {testbed.engine_image} sh -c 'ls /dev/infiniband; hostname'"
    )
    assert seen.stdout.split() == ["rdma_cm", "uverbs0", "uverbs1", "uverbs2", "uverbs3", first_node.name]


def test_a_memory_limit_kills_with_137(testbed: Testbed, first_node: ContainerNode) -> None:
    """Out of memory in a container is the kernel's, not an imitation."""
    program = "bytearray(300 << 20)"
    killed = first_node.ssh(f"docker run --memory 96m {testbed.engine_image} python3 -c '{program}'", check=False)
    assert killed.returncode == 137
    assert first_node.sh("docker inspect --format '{{.State.OOMKilled}}' $(docker ps -aq)") == "true"


def test_the_nodes_own_python_runs_engines_as_processes(first_node: ContainerNode) -> None:
    """The venv of the process runtime holds sparkwright, llama.cpp and the hub's client; Debian's python3 does not."""
    assert (
        first_node.ssh("/opt/sparkwright/bin/python -c 'import sparkwright, xllamacpp, huggingface_hub'").returncode
        == 0
    )
    assert first_node.ssh("python3 -c 'import sparkwright'", check=False).returncode == 1
    assert first_node.ssh("hf --help").returncode == 0


def test_a_reboot_ends_what_ran_and_restores_the_services(testbed: Testbed, first_node: ContainerNode) -> None:
    """Processes and containers die, enabled units and files stay: PID 1's start time reports."""
    started = first_node.pid1_started()
    first_node.ssh(f"docker run --detach --name survivor {testbed.engine_image} sleep 600; touch kept")
    first_node.ssh("setsid sleep 600 >/dev/null 2>&1 </dev/null &")
    first_node.reboot()
    assert first_node.pid1_started() != started
    assert not [process for process in first_node.processes() if "sleep 600" in process.command]
    assert first_node.sh("docker inspect --format '{{.State.Running}}' survivor") == "false"
    assert first_node.ssh("ls kept; cat /sys/class/net/enp1s0f0np0/mtu").stdout.split() == ["kept", "9000"]


def test_a_node_without_power_is_unreachable(first_node: ContainerNode, ssh_config: Path) -> None:
    """Nothing answers at its address, and it comes back when it is started."""
    first_node.power_cut()
    argv = ["ssh", "-F", str(ssh_config), "-o", "ConnectTimeout=1", first_node.name, "true"]
    assert subprocess.run(argv, capture_output=True, timeout=30, check=False).returncode == 255
    first_node.start()
    assert first_node.ssh("true").returncode == 0


def test_a_frozen_node_freezes_its_containers(testbed: Testbed, first_node: ContainerNode) -> None:
    """A ticking container is still with its node and goes on after it."""
    ticker = "import time\nwhile True: print(time.time(), flush=True); time.sleep(0.05)"
    first_node.exec(["docker", "run", "-d", "--name", "ticker", testbed.engine_image, "python3", "-c", ticker])

    def ticks() -> list[float]:
        return [float(line) for line in first_node.sh("docker logs ticker").split()]

    wait_until(lambda: bool(ticks()), "the first tick", PATIENCE)
    first_node.freeze()
    assert first_node.state() == "paused"
    time.sleep(1)
    end = time.time()
    first_node.thaw()
    wait_until(lambda: ticks()[-1] > end, "a tick after the freeze", PATIENCE)
    assert max(after - before for before, after in itertools.pairwise(ticks())) > 0.9


def test_a_full_disk_is_full(first_node: ContainerNode) -> None:
    """Writing more than is left fails as on a real file system."""
    first_node.fill_disk("/home/spark/models", leave_bytes=1 << 20)
    assert first_node.ssh("head -c 500K /dev/zero > models/fits").returncode == 0
    full = first_node.ssh("head -c 2M /dev/zero > models/bursts", check=False)
    assert full.returncode != 0
    assert "No space left on device" in full.stderr


def test_shims_answer_as_the_tools_do_and_can_be_switched(testbed_node: ContainerNode) -> None:
    """nvidia-smi answers queries with [N/A] where a GB10 has no figure, and fails when a drill reports it."""
    query = "nvidia-smi --query-gpu=name,memory.total,driver_version --format=csv,noheader"
    assert testbed_node.ssh(query).stdout == "NVIDIA GB10, [N/A], 580.159.03\n"
    testbed_node.set_shim("nvidia-smi", "failed")
    failed = testbed_node.ssh(query, check=False)
    assert failed.returncode == 9
    assert "has failed because" in failed.stdout
    testbed_node.set_shim("nvidia-smi", "absent")
    assert testbed_node.ssh(query, check=False).returncode == 127


def test_facts_of_the_fabric_agree_with_its_addresses(testbed_node: ContainerNode) -> None:
    """rdma, show_gids and the GID files report of the devices and addresses that the node really has."""
    assert (
        "link rocep1s0f0/1 state ACTIVE physical_state LINK_UP netdev enp1s0f0np0"
        in testbed_node.ssh("rdma link").stdout
    )
    assert testbed_node.fabric in testbed_node.ssh("show_gids").stdout
    octets = [int(part) for part in testbed_node.fabric.split(".")]
    wanted = "0000:0000:0000:0000:0000:ffff:{:02x}{:02x}:{:02x}{:02x}".format(*octets)
    port = "$SPARKWRIGHT_SYSROOT/sys/class/infiniband/rocep1s0f0/ports/1"
    assert testbed_node.ssh(f"cat {port}/gids/3 {port}/gid_attrs/types/3").stdout.split("\n")[:2] == [wanted, "RoCE v2"]
    testbed_node.set_fixture("drifted-gids")
    assert testbed_node.ssh(f"cat {port}/gids/5").stdout.strip() == wanted
    testbed_node.set_shim("rdma", "down")
    assert "ACTIVE" not in testbed_node.ssh("rdma link").stdout


def test_reset_leaves_nothing_of_a_test(testbed: Testbed, first_node: ContainerNode) -> None:
    """Containers, processes, files, switches and removed images are put right."""
    state = "/home/spark/.local/state/sparkwright"
    first_node.ssh(
        f"docker run -d {testbed.engine_image} sleep 600; mkdir -p {state}; touch {state}/audit.log {state}/x"
    )
    first_node.ssh("setsid sleep 600 >/dev/null 2>&1 </dev/null &")
    first_node.ssh("touch /run/lock/sparkwright.lease")
    first_node.set_shim("rdma", "down")
    found = sorted(what.split()[0] for what in first_node.leftovers())
    assert found == ["container", "file", "file", "process"]
    testbed.reset()
    assert first_node.leftovers() == []
    assert "ACTIVE" in first_node.ssh("rdma link").stdout


def test_reset_restores_a_removed_image(testbed: Testbed, first_node: ContainerNode) -> None:
    """A test may take the engine's image away: the next one finds it again, with the same digest."""
    first_node.sh(f"docker image rm --force {testbed.engine_image}")
    assert first_node.image_id(testbed.engine_image) == ""
    testbed.reset()
    assert first_node.image_id(testbed.engine_image) == testbed.engine_image_id


def test_nodes_that_nobody_changed_are_not_reset(testbed: Testbed, first_node: ContainerNode) -> None:
    """Guards the time between tests, and that whatever writes to a node is seen."""
    testbed.reset()
    assert not first_node.changed
    first_node.containers()
    first_node.processes()
    first_node.leftovers()
    assert not first_node.changed
    first_node.write("/tmp/remains", "of a test")
    assert first_node.changed
    testbed.reset()
    assert not first_node.changed
    assert first_node.look("ls /tmp") == ""


def test_a_killed_build_leaves_no_process() -> None:
    """Guards the next build against one that was killed and still writes."""
    word = f"sleep {os.getpid()}.5"

    def step_runs() -> bool:
        return any(line.startswith(word) for line in command_lines())

    script = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    builder = subprocess.Popen([sys.executable, "-c", script, *CONTAINED, "sh", "-c", f"{word}; true"])
    wait_until(step_runs, "the step to run", 60)
    builder.kill()
    builder.wait()
    wait_until(lambda: not step_runs(), "the step to end", 60)


@pytest.mark.parametrize("user", ["root", "spark"])
def test_a_command_comes_in_as_by_docker(testbed: Testbed, first_node: ContainerNode, user: str) -> None:
    """User, groups, folder, variables, capabilities, cgroups and exit code are those of `docker exec`."""
    show = "id; pwd; umask; env | sort; grep -E 'Cap|Seccomp|NoNew' /proc/self/status; grep -v ^0: /proc/self/cgroup"
    show += "; exit 7"
    home = "/root" if user == "root" else f"/home/{user}"
    words = ["exec", "-i", "--user", user, "--workdir", home, "--env", f"HOME={home}", first_node.spec.container]
    by_docker = subprocess.run(Daemon(testbed.settings).argv(*words, "sh", "-c", show), capture_output=True, text=True)
    mine = first_node.exec(["sh", "-c", show], user=user, check=False)
    assert (mine.stdout.splitlines(), mine.returncode) == (by_docker.stdout.splitlines(), 7)
    first_node.freeze()
    assert "paused" in first_node.exec(["true"], check=False).stderr
    first_node.thaw()


def test_the_program_is_compiled_once_on_a_node(first_node: ContainerNode) -> None:
    """Guards that `up` unpacks the archive's content there: compiled and linked, also after a file was damaged, and
    unpacked where no link can be."""
    archive = Bundle().archive()
    first_node.put("/home/spark/a/BUNDLE.tar.gz", archive)
    unpack = "mkdir -p $1 && tar -xzf a/BUNDLE.tar.gz -C $1 && cd $1 && sha256sum -c --status MANIFEST"
    unpack += " && stat -c %h MANIFEST"
    first = first_node.exec(["sh", "-c", unpack, "sh", "b"], user="spark").stdout
    second = first_node.exec(["sh", "-c", unpack, "sh", "c"], user="spark").stdout
    assert (int(first), int(second)) == (2, 3)
    compiled = "b/sparkwright/supervisor/__pycache__/run.cpython-*.pyc"
    assert first_node.sh(f"cd /home/spark && stat -c %h {compiled}", check=False) == "3"
    elsewhere = unpack + " && rm -r $1"
    assert int(first_node.exec(["sh", "-c", elsewhere, "sh", "/dev/shm/e"], user="spark").stdout) == 1
    first_node.sh("cd /home/spark && echo damaged >> c/sparkwright/supervisor/run.py")
    assert int(first_node.exec(["sh", "-c", unpack, "sh", "d"], user="spark").stdout) == 2
