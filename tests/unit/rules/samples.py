"""A cluster of two healthy Sparks, a recipe and a plan for it, to be broken in one place by each test."""

from dataclasses import replace
from typing import Any

from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.facts import (
    Checkpoint,
    Disk,
    Docker,
    Driver,
    Gpu,
    Identity,
    Memory,
    NodeFacts,
    RankStatus,
    RdmaPort,
    Unknown,
)
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.flaw import MISSING, Defect, Flaw
from sparkwright.domain.plan import RankSpec
from sparkwright.domain.recipe import EngineChoice, Model, Parallelism, Recipe, RecipeState, Runtime, Serving
from sparkwright.domain.units import GIB
from sparkwright.planner.ledger import ledger
from sparkwright.rules.catalog import RULES
from sparkwright.rules.rule import Context

ODD = Unknown("odd text", "not understood")
NODES = ("spark-1", "spark-2")
CLUSTER = Cluster("desk", tuple(Node(name, name) for name in NODES), "spark-1", "cluster.yaml")
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
PLAYED = replace(RECIPE, engine=EngineChoice("twin", "0.21.0", Runtime.PROCESS), model=Model("org/big", simulated=True))
WHOLE = Checkpoint("/hub/big/snapshots/1", "/hub/big", "1", SIZE, 46)
ABSENT = Checkpoint("", "/hub/big", "", 0, 0)
OTHERS = dict.fromkeys(NODES, ABSENT)
EMBEDDED = replace(CLUSTER, simulated=True)
SHARD, INDEX = "model-00001-of-00046.safetensors", "model.safetensors.index.json"


def memory(used: float = 9.0, unexplained: float = 6.0) -> Memory:
    """GiB in use, and GiB that no counter explains."""
    available = TOTAL - int(used * GIB)
    return Memory(TOTAL, available, available, 0, 0, 0, int(unexplained * GIB))


def disk(path: str, free: float, mount: str = "/") -> Disk:
    return Disk(path, mount, 4000 * GIB, int(free * GIB))


def healthy(name: str, **changes: Any) -> NodeFacts:
    number = NODES.index(name) + 1
    facts = NodeFacts(
        name,
        0.0,
        identity=Identity(name, f"{number:032x}", "aarch64", f"boot-{number}", "ai", "/home/ai"),
        memory=memory(),
        gpus=(Gpu("NVIDIA GB10", "580.142", "12.1", ODD),),
        gpu_processes=(),
        driver=Driver("580.142", "580.142"),
        rdma=(RdmaPort("rocep1s0f0", 1, "ACTIVE", "LINK_UP", "enp1s0f0np0"),),
        docker=READY,
        disks=tuple(disk(p, 2000) for p in ("~/models", "~/.cache/huggingface/hub", "/var/lib/docker")),
        listeners=(),
        ranks=(),
    )
    return replace(facts, **changes)


def rank(deployment: str, node: str = "spark-1", number: int = 0, **more: Any) -> RankStatus:
    state = {"state": "running", "port": 8000, "world": 2, "recipe": "other"} | more
    return RankStatus(deployment, number, node, "docker", handle=f"sparkwright-{deployment}-rank{number}", **state)


def specs(recipe: Recipe = RECIPE, gpu: bool = True, rdma: bool = True) -> tuple[RankSpec, ...]:
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
        played = recipe.engine.name == "twin"
        made = Context(
            CLUSTER,
            facts,
            recipe,
            "big",
            specs(recipe, not played, not played),
            ledgers,
            checkpoints,
            dict.fromkeys(NODES, 20 * GIB),
        )
    return replace(made, **changes)


def found(code: str, where: Context) -> list[Finding]:
    """What the rule of that code says."""
    (rule,) = [rule for rule in RULES if code == rule.CODE]
    return list(rule.check(where))


def severities(code: str, where: Context) -> list[Severity]:
    return [finding.severity for finding in found(code, where)]


def flawed(defect: Defect, file: str, said: str, others: dict[str, Checkpoint] | None = None, **more: Any) -> Context:
    """The model on spark-1 with one thing wrong with it."""
    flaw = Flaw(defect, file, said)
    there = replace(WHOLE, flaws=(flaw,), missing=(str(flaw),) if defect in MISSING else ())
    return context(checkpoints={"spark-1": there, **(others or {})}, **more)
