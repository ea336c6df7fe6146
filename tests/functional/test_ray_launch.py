"""The real Ray in two network namespaces, started with exactly the words, files and environment that render() gives."""

import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import pytest

from functional.netns import MISSING, two_nodes
from patience import PATIENCE, wait_until
from sparkwright.domain.cluster import NodePaths
from sparkwright.domain.command import Secret
from sparkwright.domain.facts import FabricChoice
from sparkwright.domain.plan import Placement, RankSpec
from sparkwright.domain.recipe import EngineChoice, Model, Parallelism, Recipe, Runtime
from sparkwright.engines.catalog import engine
from sparkwright.engines.engine import RenderContext, files_at
from sparkwright.engines.vllm import ray as ray_args
from sparkwright.facts.engine_log import read_log

pytest.importorskip("ray", reason="hardware: Ray has no wheel for this Python")
pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(MISSING, reason="hardware: network namespaces take root and iproute2"),
]
ADDRESSES = ("10.77.0.1", "10.77.0.2")
TOKEN = "ab" * 32
# In vLLM's place: a driver that puts one worker with a GPU on each node and tells where they are.
PROGRAM = """
import os, sys, time, ray
print("arguments", sys.argv[1:], flush=True)
ray.init(log_to_driver=False)
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy as On
group = placement_group([{"GPU": 1}] * 2, strategy="STRICT_SPREAD")
ray.get(group.ready(), timeout=300)
@ray.remote(num_gpus=1, num_cpus=0)
def where():
    return os.environ["VLLM_HOST_IP"]
asked = [where.options(scheduling_strategy=On(group, i)).remote() for i in (0, 1)]
print("workers", sorted(ray.get(asked)), flush=True)
print("INFO:     Application startup complete.", flush=True)
time.sleep(600)
"""


@dataclass
class RayCluster:
    """Two nodes and the ranks that were started on them. started: rank -> process, whose folder carries its log."""

    folder: Path
    namespaces: tuple[str, str]
    specs: tuple[RankSpec, ...]
    started: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, rank: int, token: str = TOKEN, wait: str = "240") -> None:
        spec = self.specs[rank]
        words = [wait if word == str(ray_args.WAIT) else word for word in spec.argv]
        env = {**os.environ, **spec.env, "RAY_AUTH_TOKEN": token}
        with (self.folder / f"log{rank}").open("wb") as log:
            command = ("ip", "netns", "exec", self.namespaces[rank], *words)
            self.started[rank] = subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)

    def log(self, rank: int) -> list[str]:
        return (self.folder / f"log{rank}").read_text(errors="replace").splitlines()

    def prints(self, rank: int, text: str) -> None:
        """Ray takes 20 CPU seconds to start: a minute and more on a machine that runs other things."""
        wait_until(
            lambda: any(text in line for line in self.log(rank)),
            lambda: f"{text!r} in {[self.log(one) for one in sorted(self.started)]}",
        )

    def left(self) -> list[str]:
        """Processes in the namespaces, whatever they call themselves."""
        listed = [subprocess.run(("ip", "netns", "pids", n), capture_output=True, text=True) for n in self.namespaces]
        pids = [pid for done in listed for pid in done.stdout.split()]
        return [pid for pid in pids if not _zombie(pid)]


def _zombie(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except OSError:
        return True


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RayCluster]:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    with two_nodes("ray", ADDRESSES) as names:
        here = RayCluster(tmp_path, names, rendered(tmp_path, program))
        try:
            yield here
        finally:
            for pid in here.left():
                os.kill(int(pid), signal.SIGKILL)
            for process in here.started.values():
                process.wait(PATIENCE)


def rendered(folder: Path, program: Path) -> tuple[RankSpec, ...]:
    """The ranks, with their files where they expect them."""
    choice = EngineChoice("vllm-ray", "0.21.0", Runtime.PROCESS, entrypoint=(sys.executable, str(program)))
    model = Model(path="/models/tiny", served_name="tiny")
    recipe = Recipe("tiny", "Tiny", model, choice, 2, parallelism=Parallelism(tp=2))
    fabric = {f"n{i}": FabricChoice(address, f"fab{i}", ()) for i, address in enumerate(ADDRESSES)}
    where = Placement(("n0", "n1"), fabric)
    paths = {node: NodePaths("/models", "/hub", str(folder / "cache"), str(folder / node)) for node in where.nodes}
    context = RenderContext(
        paths,
        pythons=dict.fromkeys(where.nodes, sys.executable),
        deployment=f"t{uuid.uuid4().hex[:8]}",
        launch_key=Secret(TOKEN),
        simulated=True,
    )
    specs = engine("vllm-ray").render(recipe, where, context)
    for spec in specs:
        place = Path(files_at(recipe, context, spec.node, spec.rank))
        place.mkdir(parents=True)
        for file in spec.files:
            (place / file.name).write_text(file.text)
    return specs


def test_the_program_runs_once_both_nodes_are_there_and_all_ends_with_the_head(cluster: RayCluster) -> None:
    """Two nodes and two GPUs by Ray's own word; SIGTERM to the head leaves no process and no folder on either node."""
    cluster.start(1)
    cluster.start(0)
    cluster.prints(0, "startup complete")
    cluster.prints(1, "ray: joined the cluster")
    head = cluster.log(0)
    assert "ray: 2 of 2 nodes active, 2 of 2 GPUs" in head
    assert f"workers {list(ADDRESSES)}" in head
    assert any(line.startswith("arguments ['serve', '/models/tiny'") for line in head)
    assert read_log(head, engine("vllm-ray").read).ready_after is not None
    cluster.started[0].send_signal(signal.SIGTERM)
    assert cluster.started[0].wait(PATIENCE) == 143
    assert cluster.started[1].wait(PATIENCE) == 1
    assert "ray: error: the head's Ray is gone; this worker ends" in cluster.log(1)
    wait_until(lambda: not cluster.left(), lambda: f"gone: {cluster.left()}")
    assert not Path(cluster.specs[0].argv[cluster.specs[0].argv.index("--folder") + 1]).exists()


def test_a_missing_node_is_named_before_the_program_starts(cluster: RayCluster) -> None:
    """A cluster of one node ends with that node's address; a stranger with another token does not count."""
    cluster.start(0, wait="12")
    cluster.start(1, token="cd" * 32, wait="12")
    assert cluster.started[0].wait(PATIENCE) == 1
    assert cluster.started[1].wait(PATIENCE) == 1
    # A machine that is busy with other things may not have brought up the head's own Ray by then.
    missing = re.compile(r"ray: error: the cluster did not come up: [01] of 2 nodes active.*missing:.* 10\.77\.0\.2")
    assert any(map(missing.match, cluster.log(0)))
    assert not any(line.startswith("arguments") for line in cluster.log(0))
    assert read_log(cluster.log(0), engine("vllm-ray").read).root.endswith("10.77.0.2")
    wait_until(lambda: not cluster.left(), lambda: f"gone: {cluster.left()}")


def test_a_killed_head_takes_its_worker_along(cluster: RayCluster) -> None:
    """Nobody reports the worker: it sees that the head's Ray is gone, and frees its node."""
    cluster.start(1)
    cluster.start(0)
    cluster.prints(0, "startup complete")
    cluster.started[0].kill()
    assert cluster.started[1].wait(PATIENCE) == 1
    wait_until(lambda: not cluster.left(), lambda: f"gone: {cluster.left()}")


def test_somebody_elses_folder_is_neither_used_nor_removed(tmp_path: Path) -> None:
    """Its name below /tmp can be guessed: anyone who made it first keeps it, and Ray's sockets do not go into it."""
    theirs = tmp_path / "sparkwright-ray"
    theirs.mkdir()
    (theirs / "kept").touch()
    os.chown(theirs, 12345, 12345)
    place = ("--listen", ADDRESSES[1], "--port", "1", "--head", ADDRESSES[0], "--folder", str(theirs))
    command = (sys.executable, str(files("sparkwright.engines.launchers") / "ray_launch.py"), "worker", *place)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, f"ray: error: {theirs} belongs to somebody else\n")
    assert (theirs / "kept").exists()
