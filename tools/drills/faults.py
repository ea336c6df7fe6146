"""The faults: each does its harm for real and records when."""

import time
from dataclasses import dataclass

from drills.ground import DrillGround
from testbed import harm


@dataclass(frozen=True, slots=True)
class Mark:
    """Epoch seconds. at: the harm was done; restored: what it took was there again, 0 when nothing had to come back."""

    at: float
    restored: float = 0.0


def kill_worker(ground: DrillGround) -> Mark:
    return Mark(ground.signal(ground.worker, "KILL"))


def kill_head(ground: DrillGround) -> Mark:
    return Mark(ground.signal(ground.head, "KILL"))


def stop_worker_container(ground: DrillGround) -> Mark:
    at = ground.worker.sh(f"date +%s.%N; docker stop --time 5 {ground.container(1)}").split()[0]
    return Mark(float(at))


def freeze_worker(ground: DrillGround) -> Mark:
    return Mark(ground.signal(ground.worker, "STOP"))


def pause_worker(ground: DrillGround) -> Mark:
    return Mark(float(ground.worker.sh(f"date +%s.%N; docker pause {ground.container(1)}").split()[0]))


def freeze_api(ground: DrillGround) -> Mark:
    return Mark(ground.inject("freeze_api", ground.head))


def deadlock(ground: DrillGround) -> Mark:
    """The worker never leaves its next step, and so neither does the head."""
    return Mark(ground.inject("spin_after=0", ground.worker))


def garbage(ground: DrillGround) -> Mark:
    return Mark(ground.inject("garbage", ground.head))


def out_of_memory(ground: DrillGround) -> Mark:
    """The kernel kills the rank at a limit of its cgroup: exit code 137, OOMKilled."""
    worker = ground.worker
    worker.sh(f"docker update --memory 192m --memory-swap 192m {ground.container(1)}")
    return Mark(ground.inject("grow=400", worker))


def leak_memory(ground: DrillGround) -> Mark:
    return Mark(ground.inject("leak=14"))


def worse_drafts(ground: DrillGround) -> Mark:
    return Mark(ground.inject("accept=0.3"))


def lost_prefixes(ground: DrillGround) -> Mark:
    return Mark(ground.inject("hits=0"))


def cut_ssh(ground: DrillGround) -> Mark:
    at = time.time()
    harm.cut_ssh(ground.worker, ground.head)
    return Mark(at)


def cut_fabric(ground: DrillGround) -> Mark:
    at = time.time()
    harm.set_fabric(ground.worker, up=False)
    ground.worker.set_shim("rdma", "down")
    return Mark(at)


def restore_fabric(ground: DrillGround) -> None:
    harm.set_fabric(ground.worker, up=True)
    ground.worker.set_shim("rdma", "default")


def reboot_worker(ground: DrillGround) -> Mark:
    at = time.time()
    ground.worker.reboot()
    return Mark(at, time.time())


def reboot_head(ground: DrillGround) -> Mark:
    at = time.time()
    ground.head.reboot()
    return Mark(at, time.time())


def reboot_both(ground: DrillGround) -> Mark:
    at = time.time()
    for node in ground.nodes:
        node.stop()
    for node in ground.nodes:
        node.start()
    return Mark(at, time.time())


def fill_disk(ground: DrillGround) -> Mark:
    """Fills the disk, which stays full."""
    harm.fill_state(ground.head)
    return Mark(ground.signal(ground.worker, "KILL"))


def crash_loop(ground: DrillGround) -> Mark:
    ground.inject("die@load")
    return Mark(ground.signal(ground.worker, "KILL"))


def remove_image(ground: DrillGround) -> Mark:
    ground.worker.sh(f"docker image rm --force {ground.testbed.engine_image}")
    return Mark(ground.signal(ground.head, "KILL"))


def steal_port(ground: DrillGround) -> Mark:
    harm.steal_port(ground.head, 8000)
    return Mark(ground.signal(ground.head, "KILL"))


def restart_docker(ground: DrillGround) -> Mark:
    at, back = ground.worker.sh("date +%s.%N; systemctl restart docker; date +%s.%N").split()
    return Mark(float(at), float(back))
