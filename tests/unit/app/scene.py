"""Two fake nodes, a world around them, and the log lines of vLLM 0.21.0 that their ranks print."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fakes.artifacts import FakeArtifacts
from fakes.calibrations import FakeCalibrations
from fakes.clock import FakeClock
from fakes.endpoint import FakeEndpoint
from fakes.hosts import FakeHosts
from fakes.rank_node import HOME, STATE, RankNode, Script
from fakes.sink import FakeSink
from sparkwright.adapters.files import Places, find_recipe
from sparkwright.app.services import LaunchRequest, Services
from sparkwright.domain.cluster import Cluster, Fabric, Node, NodePaths
from sparkwright.domain.command import Secret
from sparkwright.domain.recipe import Recipe
from sparkwright.recipes.load import load_recipe

NOWHERE = Places(Path("/nonexistent"), Path("/nonexistent"))
SHIPPED = Path(__file__).parents[3] / "src/sparkwright/recipes/shipped"
PATHS = NodePaths(f"{HOME}/models", f"{HOME}/hub", f"{HOME}/cache", STATE)
JOINS = (
    "(Worker pid=1) INFO 11-21 09:01:56 [parallel_state.py:1410] world_size=2 rank=0 local_rank=0 "
    "distributed_init_method=tcp://192.168.100.10:25000 backend=nccl"
)
LOADS = "(Worker_TP0 pid=1) INFO 11-21 09:01:57 [gpu_model_runner.py:4857] Starting to load model m..."
SHARD = "Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:00<00:00,  4.62it/s]"
COMPILES = "(Worker_TP0 pid=1) INFO 11-21 09:01:57 [backends.py:1148] Dynamo bytecode transform time: 1.80 s"
WARM = "(Worker_TP1 pid=1) INFO 11-21 09:01:58 [jit_monitor.py:54] Kernel JIT monitor activated — Triton JIT"
READY = "(APIServer pid=1) INFO:     Application startup complete."
HEAD: Script = (JOINS, 1.0, LOADS, SHARD, 2.0, COMPILES, 1.0, READY)
WORKER: Script = (JOINS, 1.0, LOADS, 2.0, COMPILES, 1.0, WARM)


@dataclass
class ClusterScene:
    """nodes[0] is the head's. The world is made again from these parts at each use."""

    nodes: list[RankNode]
    clock: FakeClock
    sink: FakeSink = field(default_factory=FakeSink)
    endpoint: FakeEndpoint = field(default_factory=FakeEndpoint)
    artifacts: FakeArtifacts = field(default_factory=FakeArtifacts)
    calibrations: FakeCalibrations = field(default_factory=FakeCalibrations)
    secrets: Mapping[str, Secret] = field(default_factory=dict)
    nonce: str = "0123456789abcdef"

    @property
    def services(self) -> Services:
        return Services(
            cluster=cluster(len(self.nodes)),
            hosts=FakeHosts(*self.nodes),
            endpoint=self.endpoint,
            clock=self.clock,
            save_evidence=self.artifacts.save,
            calibrations=self.calibrations,
            sink=self.sink,
            who="anna@laptop",
            nonce=self.nonce,
            secrets=self.secrets,
            python="/opt/python",
        )

    @property
    def journal(self) -> list[tuple[str, str]]:
        """The changes on the nodes, in order."""
        return self.nodes[0].journal

    def did(self, *kinds: str) -> list[tuple[str, str]]:
        """The entries of the journal that begin with one of the words."""
        return [entry for entry in self.journal if entry[1].split(" ")[0] in kinds]

    @property
    def clean(self) -> bool:
        """No rank, lease, folder or file of ours on any node, but the note of what has served."""
        paths = (path for n in self.nodes for path in (*n.folders, *n.files))
        kept = all("/served" in path for path in paths)
        return kept and not any(n.ranks or n.holder for n in self.nodes)


def cluster(count: int = 2) -> Cluster:
    nodes = tuple(
        Node(f"spark-{i}", f"spark-{i}", Fabric(f"192.168.100.{9 + i}", "enp1s0f0np0", ()), PATHS)
        for i in range(1, count + 1)
    )
    return Cluster("lab", nodes, "spark-1")


def make_scene(count: int = 2, **more: Any) -> ClusterScene:
    clock, journal = FakeClock(), []
    scripts = [HEAD, *[WORKER] * (count - 1)]
    nodes = [RankNode(f"spark-{i}", clock=clock, journal=journal, script=script) for i, script in enumerate(scripts, 1)]
    return ClusterScene(nodes, clock, **more)


def recipe(name: str = "twin", profile: str = "", **serving: Any) -> Recipe:
    found = load_recipe(find_recipe(name, NOWHERE).text, f"{name}.yaml", profile)
    return replace(found, serving=replace(found.serving, **serving))


def request(**more: Any) -> LaunchRequest:
    return LaunchRequest(**{"recipe": recipe(), "deployment": "twin", "force": "a test", **more})
