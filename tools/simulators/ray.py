"""vLLM with workers that Ray starts: the simulator over a real Ray, for `--distributed-executor-backend ray`."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparkwright.simulator.__main__ import main
from sparkwright.simulator.link import Frame, HeadLink, PeerLost
from sparkwright.simulator.rank import SimulatedRank, StartFailed

NOT_CARRIED = "ray_non_carry_over_env_vars.json"
TOLD = ("VLLM_HOST_IP", "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")
TOO_FEW = "The number of required GPUs exceeds the total number of available GPUs in the placement group."
NO_GROUP = (
    "ValueError: Cannot provide a placement group requiring {} GPUs. Make sure the cluster has enough resources by "
    "checking `ray status`."
)


class RayWorkerProc:
    """A worker as Ray runs it; what it prints is in the head's log behind Ray's prefix."""

    def __init__(self, number: int, world: int, carried: Mapping[str, str]) -> None:
        os.environ.update(carried)
        told = " ".join(f"{name}={os.environ.get(name, '')}" for name in TOLD)
        line = f"INFO [parallel_state.py:1410] world_size={world} rank={number} local_rank=0 backend=nccl"
        sys.stdout.write(f"{line}\n(simulated) rank {number} has {told}\n")
        sys.stdout.flush()

    def do(self, frame: Frame) -> Frame:
        return {"op": "done", "of": frame["op"]}

    async def last(self) -> None:
        """Ends with the process."""
        await asyncio.Event().wait()


def carried(env: Mapping[str, str]) -> dict[str, str]:
    """The variables that the head's environment gives to its workers."""
    path = Path(env.get("VLLM_CONFIG_ROOT", "")) / NOT_CARRIED
    kept = set(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else set()
    return {name: value for name, value in env.items() if name not in kept}


class RayRanks(HeadLink):
    """Rank 0's view of a world that Ray spans."""

    notices = True

    def __init__(self, rank: SimulatedRank) -> None:
        super().__init__(rank.nodes)
        self.rank = rank
        self.ray: Any = importlib.import_module("ray")
        self.workers: list[Any] = []
        self._lives: list[asyncio.Future[Any]] = []

    async def listen(self, host: str, port: int) -> None:
        """Joins the cluster that is there. Raises StartFailed when it has too few GPUs."""
        handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        self.ray.init(address="auto", logging_level="warning")
        for number, handler in handlers.items():
            signal.signal(number, handler)  # Ray takes SIGTERM for itself
        say, world = self.rank.voices.core, self.rank.limits.world
        say.line("ray_utils.py:621")
        if self.ray.cluster_resources().get("GPU", 0) < world:
            say.warning("ray_utils.py:627", TOO_FEW)
            raise StartFailed("core-failed", {"ERROR": NO_GROUP.format(world)})

    async def all_joined(self) -> None:
        """One actor with one GPU on each node, rank 0's on this one."""
        given, world = carried(os.environ), self.rank.limits.world
        kind = self.ray.remote(num_gpus=1, num_cpus=0, max_concurrency=4)(RayWorkerProc)
        here = self.ray.get_runtime_context().get_node_id()
        alive = [node["NodeID"] for node in self.ray.nodes() if node["Alive"]]
        places = sorted(alive, key=lambda node: str(node) != here)[:world]
        affinity = importlib.import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
        for number, place in enumerate(places):
            there = kind.options(scheduling_strategy=affinity(place, soft=False))
            self.workers.append(there.remote(number, world, given))
        await self.ask({"op": "hello"})
        self._lives = [asyncio.wrap_future(worker.last.remote().future()) for worker in self.workers]

    async def ask(self, frame: Frame) -> list[Frame]:
        """Raises PeerLost."""
        try:
            asked = [asyncio.wrap_future(worker.do.remote(frame).future()) for worker in self.workers]
            return list(await asyncio.gather(*asked))
        except self.ray.exceptions.RayError:
            raise PeerLost(1) from None

    def gone(self) -> bool:
        return bool(self.dead())

    def dead(self) -> list[int]:
        """Ranks whose process has ended."""
        return [number for number, life in enumerate(self._lives) if life.done() and life.exception()]

    def lost(self) -> bool:
        text = f"RayWorkerProc rank={self.dead()} died unexpectedly, shutting down executor."
        self.rank.voices.core.error("ray_executor_v2.py:464", text)
        return True

    async def bye(self) -> None:
        for life in self._lives:
            life.cancel()
        for worker in self.workers:
            self.ray.kill(worker)
        self.ray.shutdown()


def run(argv: list[str], env: Mapping[str, str]) -> int:
    """`vllm serve ...`."""
    return main(argv, _link)


def _link(rank: SimulatedRank) -> HeadLink:
    spread = rank.args.distributed_executor_backend == "ray" and rank.limits.world > 1
    return RayRanks(rank) if spread else HeadLink(rank.nodes)
