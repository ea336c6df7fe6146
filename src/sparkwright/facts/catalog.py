"""The facts asked of every node, by field of NodeFacts and in this order: a new fact is a file, its field and a row
here."""

from collections.abc import Mapping, Sequence

from sparkwright.domain.cluster import Node
from sparkwright.facts.board import BOARD, IDENTITY
from sparkwright.facts.disk import disks_fact, model_stores
from sparkwright.facts.docker import CONTAINERS, DOCKER
from sparkwright.facts.fabric import RDMA
from sparkwright.facts.fact import Fact
from sparkwright.facts.gpu import DRIVER, GPU_PROCESSES, GPUS
from sparkwright.facts.kernel import KERNEL, KERNEL_LOG
from sparkwright.facts.memory import ACTIVITY, MEMORY
from sparkwright.facts.network import ADDRESSES, LISTENERS, NETWORK
from sparkwright.facts.nic import NIC
from sparkwright.facts.settings import SETTINGS, TIMES
from sparkwright.facts.upkeep import PACKAGES, UPKEEP

DOCKER_ROOT = "/var/lib/docker"
ALL: Mapping[str, Fact[object]] = {
    "identity": IDENTITY,
    "kernel": KERNEL,
    "memory": MEMORY,
    "gpus": GPUS,
    "gpu_processes": GPU_PROCESSES,
    "driver": DRIVER,
    "rdma": RDMA,
    "interfaces": ADDRESSES,
    "docker": DOCKER,
    "listeners": LISTENERS,
    "kernel_log": KERNEL_LOG,
    "packages": PACKAGES,
    "activity": ACTIVITY,
    "times": TIMES,
    "upkeep": UPKEEP,
    "board": BOARD,
    "nic": NIC,
    "network": NETWORK,
    "settings": SETTINGS,
    "containers": CONTAINERS,
}


def facts_of(node: Node, paths: Sequence[str] = ()) -> dict[str, Fact[object]]:
    """ALL, and the node's own folders. paths: file systems to inspect besides those of Node.paths and Docker's usual
    root; Disk.path is the path as given."""
    own = node.paths
    folders = (own.models, own.hub, own.cache, own.state, DOCKER_ROOT, *paths)
    return {**ALL, "disks": disks_fact(folders), "stores": model_stores((own.models, own.hub))}
