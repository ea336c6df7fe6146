"""A cluster of two healthy Sparks, a recipe and a plan for it, to be broken in one place by each test."""

from dataclasses import replace
from typing import Any

from sparkwright.checks.catalog import CHECKS
from sparkwright.domain.check import Context
from sparkwright.domain.checkpoint import MISSING, Checkpoint, Defect, Flaw
from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.fabric_facts import (
    Containers,
    Network,
    Nic,
    PciFunction,
    RdmaDevice,
    Route,
    Settings,
    Store,
)
from sparkwright.domain.facts import (
    Address,
    Disk,
    Docker,
    Driver,
    Gid,
    Gpu,
    Identity,
    Interface,
    Listener,
    Memory,
    NodeFacts,
    RankStatus,
    RdmaPort,
    Unknown,
)
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.model import ModelShape
from sparkwright.domain.plan import RankSpec
from sparkwright.domain.recipe import EngineChoice, Model, Parallelism, Recipe, RecipeState, Runtime, Serving
from sparkwright.domain.units import GIB
from sparkwright.planner.ledger import ledger
from unit.checks.host_samples import host_facts

ODD = Unknown("odd text", "not understood")
NODES = ("spark-1", "spark-2")
CLUSTER = Cluster("desk", tuple(Node(name, name) for name in NODES), "spark-1", "cluster.yaml")
DGX = ("NVIDIA NVIDIA_DGX_Spark", "DGX Spark", "7.6.0")
READY = Docker("28.5.1", runtimes=("nvidia", "runc"), root="/var/lib/docker", can_raise_memlock=True)
TOTAL = 130_596_000_000  # 121.6 GiB
SIZE = 149_000_000_000

RECIPE = Recipe(
    name="big",
    title="A big model",
    model=Model(id="org/big", size=SIZE),
    engine=EngineChoice("vllm", "0.21.0", Runtime.DOCKER, "registry/vllm:1"),
    nodes=2,
    state=RecipeState.READY,
    parallelism=Parallelism(tp=2),
    serving=Serving(memory_fraction=0.8),
)
BY_PATH = replace(RECIPE, model=Model(path="big", size=SIZE))
PLAYED = replace(
    RECIPE, engine=EngineChoice("simulator", "0.21.0", Runtime.PROCESS), model=Model("org/big", simulated=True)
)
WHOLE = Checkpoint("/hub/big/snapshots/1", "/hub/big", "1", SIZE, 46)
ABSENT = Checkpoint("", "/hub/big", "", 0, 0)
OTHERS = dict.fromkeys(NODES, ABSENT)
EMBEDDED = replace(CLUSTER, simulated=True)
SHARD, INDEX = "model-00001-of-00046.safetensors", "model.safetensors.index.json"


RAILS = (("rocep1s0f0", "enp1s0f0np0", 40), ("roceP2p1s0f0", "enP2p1s0f0np0", 41))
NIC = Nic(
    functions=tuple(PciFunction(f"000{d}:01:00.{f}", 32.0, 4) for d in (0, 2) for f in (0, 1)),
    devices=tuple(RdmaDevice(device, "28.45.4028", 200.0) for device, _, _ in RAILS),
    verbs=("uverbs0", "uverbs1"),
    tools=("ib_write_bw", "rdma"),
)

DENSE = ModelShape(
    32, 32, 8, hidden=4096, vocab=128000, head_dim=128, intermediate=14336, positions=1 << 20, format="bf16"
)


def memory(used: float = 9.0, unexplained: float = 6.0) -> Memory:
    """GiB in use, and GiB that no counter explains."""
    available = TOTAL - int(used * GIB)
    return Memory(TOTAL, available, available, 0, 0, 0, int(unexplained * GIB))


def make_disk(path: str, free: float, mount: str = "/") -> Disk:
    return Disk(path, mount, 4000 * GIB, int(free * GIB))


def healthy(name: str, **changes: Any) -> NodeFacts:
    number = NODES.index(name) + 1
    facts = NodeFacts(
        name,
        0.0,
        identity=Identity(name, f"{number:032x}", "aarch64", f"boot-{number}", "ai", "/home/ai", *DGX),
        memory=memory(),
        gpus=(Gpu("NVIDIA GB10", "580.142", "12.1", ODD),),
        gpu_processes=(),
        driver=Driver("580.142", "580.142"),
        rdma=rdma_ports(number),
        interfaces=interfaces(number),
        nic=NIC,
        network=Network((Route("default", "10.1.0.1", "enP7s7"), Route("10.1.0.0/24", "", "enP7s7"))),
        settings=Settings(),
        containers=Containers(toolkit="1.19.0", daemon=('"max-size": "64m"',)),
        stores=tuple(Store(path, "ext4", 1000, 900) for path in ("~/models", "~/.cache/huggingface/hub")),
        docker=READY,
        disks=tuple(make_disk(p, 2000) for p in ("~/models", "~/.cache/huggingface/hub", "/var/lib/docker")),
        listeners=(),
        ranks=(),
    )
    return replace(facts, **(host_facts(number) | changes))


def rdma_ports(number: int, *down: str) -> tuple[RdmaPort, ...]:
    """Both ports of a pair of the first cage; `down`: devices that are not ACTIVE."""
    return tuple(
        RdmaPort(device, 1, "DOWN" if device in down else "ACTIVE", "LINK_UP", netdev, gids_of(f"10.{net}.0.{number}"))
        for device, netdev, net in RAILS
    )


def gids_of(ipv4: str, index: int = 3) -> tuple[Gid, ...]:
    return (
        Gid(0, "fe80::1", "v1"),
        Gid(1, "fe80::1", "v2"),
        Gid(2, "::ffff", "v1", ipv4),
        Gid(index, "::", "v2", ipv4),
    )


def interfaces(number: int) -> tuple[Interface, ...]:
    """Both rails in a subnet of their own with jumbo frames, and the wire to the house."""
    rails = (Interface(n, True, 9000, (Address(f"10.{net}.0.{number}", 24),), 200_000) for _, n, net in RAILS)
    return (*rails, Interface("enP7s7", True, 1500, (Address(f"10.1.0.{number}", 24),), 10_000))


def rank_status(deployment: str, node: str = "spark-1", number: int = 0, **more: Any) -> RankStatus:
    state = {"state": "running", "port": 8000, "world": 2, "recipe": "other"} | more
    return RankStatus(deployment, number, node, "docker", handle=f"sparkwright-{deployment}-rank{number}", **state)


def rank_specs(recipe: Recipe = RECIPE, gpu: bool = True, rdma: bool = True) -> tuple[RankSpec, ...]:
    """Head with API and rendezvous ports, worker with none."""
    head = (("127.0.0.1", 8000), ("192.168.100.1", 25000))
    return tuple(
        RankSpec(i, node, ("serve",), {}, recipe.engine.runtime, listens=() if i else head, gpu=gpu, rdma=rdma)
        for i, node in enumerate(NODES)
    )


def context(first: dict[str, Any] | None = None, recipe: Recipe | None = RECIPE, **changes: Any) -> Context:
    """first: what is different on spark-1. Without a recipe as `check` has it, else as `plan` and `up` do."""
    facts = {"spark-1": healthy("spark-1", **(first or {})), "spark-2": healthy("spark-2")}
    made = Context(CLUSTER, facts)
    if recipe:
        checkpoints = dict.fromkeys(NODES, WHOLE)
        ledgers = tuple(ledger(recipe, facts[name], WHOLE, 2, "big") for name in NODES)
        played = recipe.engine.name == "simulator"
        made = Context(
            CLUSTER,
            facts,
            recipe,
            "big",
            rank_specs(recipe, not played, not played),
            ledgers,
            checkpoints,
            dict.fromkeys(NODES, 20 * GIB),
        )
    return replace(made, **changes)


def run_check(code: str, where: Context) -> list[Finding]:
    """The findings of the check of that code."""
    (check,) = [check for check in CHECKS if code == check.code]
    return list(check.findings(where))


def severities(code: str, where: Context) -> list[Severity]:
    return [finding.severity for finding in run_check(code, where)]


def flawed(defect: Defect, file: str, said: str, others: dict[str, Checkpoint] | None = None, **more: Any) -> Context:
    """The model on spark-1 with one thing wrong with it."""
    flaw = Flaw(defect, file, said)
    there = replace(WHOLE, flaws=(flaw,), missing=(str(flaw),) if defect in MISSING else ())
    return context(checkpoints={"spark-1": there, **(others or {})}, **more)


def taken_port(address: str, port: int = 8000, process: str = "uvicorn") -> dict[str, object]:
    return {"listeners": (Listener(address, port, process),)}
