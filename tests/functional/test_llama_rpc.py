"""Real llama-server and rpc-server, started as render() states: the head at 127.0.0.1, a worker at 127.0.0.2.

Both programs come from PATH, or from the folder that SPARKWRIGHT_LLAMA_CPP names: a llama.cpp built with GGML_RPC=ON.
"""

import asyncio
import os
import shutil
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from fakes.ports import free_port
from functional.tiny_gguf import TO_THE_LIMIT, write_tiny_gguf
from patience import PATIENCE
from sparkwright.domain.cluster import NodePaths
from sparkwright.domain.facts import FabricChoice
from sparkwright.domain.plan import Placement, RankSpec
from sparkwright.domain.recipe import EngineChoice, Model, Parallelism, Recipe, Runtime, Serving
from sparkwright.engines.catalog import engine
from sparkwright.engines.engine import RenderContext
from sparkwright.engines.stuck import lost_a_peer
from sparkwright.facts.engine_log import read_log

WHERE = os.environ.get("SPARKWRIGHT_LLAMA_CPP", "")
SEARCHED = f"{WHERE}:{os.environ.get('PATH', '')}"
SERVER = shutil.which("llama-server", path=SEARCHED)
WORKER = shutil.which("ggml-rpc-server", path=SEARCHED) or shutil.which("rpc-server", path=SEARCHED)
pytestmark = pytest.mark.skipif(
    not (SERVER and WORKER), reason="hardware: no llama.cpp with RPC here (PATH or SPARKWRIGHT_LLAMA_CPP)"
)
READ = engine("llama-cpp").read


def rendered(folder: Path) -> tuple[RankSpec, ...]:
    recipe = Recipe(
        name="tiny",
        title="Random weights",
        model=Model(path="tiny.gguf", served_name="tiny"),
        engine=EngineChoice("llama-cpp", "2026.10.11549", Runtime.PROCESS, entrypoint=(str(SERVER),)),
        nodes=2,
        parallelism=Parallelism(pp=2),
        serving=Serving(context=512, sequences=2, master_port=free_port("127.0.0.2")),
    )
    nodes = ("spark-1", "spark-2")
    fabric = {node: FabricChoice(f"127.0.0.{i}", "lo") for i, node in enumerate(nodes, 1)}
    home = {node: NodePaths(str(folder), "/hub", f"{folder}/{node}", str(folder)) for node in nodes}
    model = str(write_tiny_gguf(folder / "tiny.gguf"))
    context = RenderContext(home, {"spark-1": model}, port=free_port("127.0.0.1"))
    return engine("llama-cpp").render(recipe, Placement(nodes, fabric), context)


@dataclass
class Running:
    process: asyncio.subprocess.Process
    log: Path

    async def prints(self, text: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while text not in self.log.read_text():
                assert self.process.returncode is None, self.log.read_text()
                await asyncio.sleep(0.02)


async def start(spec: RankSpec, folder: Path) -> Running:
    log = folder / f"rank{spec.rank}.log"
    with log.open("wb") as out:
        env = {**os.environ, **spec.env}
        return Running(await asyncio.create_subprocess_exec(*spec.argv, env=env, stdout=out, stderr=out), log)


@asynccontextmanager
async def running_pair(
    specs: tuple[RankSpec, ...], folder: Path, ahead: float = 0.0
) -> AsyncIterator[tuple[Running, Running]]:
    """The head, so many seconds ahead of its worker, is ready. Both are killed if the test did not end them."""
    started = []
    try:
        started.append(head := await start(specs[0], folder))
        await asyncio.sleep(ahead)
        assert head.process.returncode is None, head.log.read_text()
        started.append(worker := await start(specs[1], folder))
        await head.prints("listening on http://")
        yield head, worker
    finally:
        for running in started:
            if running.process.returncode is None:
                running.process.kill()
                await running.process.wait()


def head_errors(head: Running) -> tuple[str, ...]:
    return read_log(head.log.read_text().splitlines(), READ).errors


async def answer(spec: RankSpec, tokens: int = 8) -> httpx.Response:
    (host, port), *_ = spec.listens
    body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": tokens} | TO_THE_LIMIT
    async with httpx.AsyncClient(timeout=60) as client:
        return await client.post(f"http://{host}:{port}/v1/chat/completions", json=body)


async def test_two_nodes_answer_and_stop(tmp_path: Path) -> None:
    """The model's layers lie on the worker, which has no file of it; both logs are understood; SIGTERM ends both."""
    specs = rendered(tmp_path)
    async with running_pair(specs, tmp_path) as (head, worker):
        found = (await answer(specs[0])).json()
        assert (found["model"], found["usage"]["completion_tokens"]) == ("tiny", 8)
        await worker.prints("Accepted client connection")
        logs = [read_log(r.log.read_text().splitlines(), READ) for r in (head, worker)]
        assert logs[0].ready_after is not None
        assert (logs[1].ready_after, logs[0].root, logs[1].root) == (None, "", "")
        assert "rpc" in dict(logs[1].facts)
        for running in (head, worker):
            running.process.send_signal(signal.SIGTERM)
            await asyncio.wait_for(running.process.wait(), engine("llama-cpp").stop.grace)


async def test_the_worker_listens_on_its_own_address_only(tmp_path: Path) -> None:
    """Nobody who is not on the fabric can reach a port that has no authentication."""
    specs = rendered(tmp_path)
    ((_, port),) = specs[1].listens
    async with running_pair(specs, tmp_path):
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", port), timeout=5)


async def test_a_worker_that_dies_ends_the_head_with_the_reason(tmp_path: Path) -> None:
    """The head cannot go on without its layers: it ends at the next request, and its log reports who was lost."""
    specs = rendered(tmp_path)
    async with running_pair(specs, tmp_path) as (head, worker):
        worker.process.kill()
        await worker.process.wait()
        with pytest.raises(httpx.HTTPError):
            await answer(specs[0])
        assert await asyncio.wait_for(head.process.wait(), PATIENCE) != 0
        assert any("Remote RPC server crashed" in line for line in head_errors(head))
        assert lost_a_peer(head.log.read_text().splitlines())


async def test_a_head_without_its_worker_reports_it(tmp_path: Path) -> None:
    """A worker that is not there is named before anything is loaded."""
    specs = rendered(tmp_path)
    head = await start(specs[0], tmp_path)
    assert await asyncio.wait_for(head.process.wait(), PATIENCE) != 0
    ((address, port),) = specs[1].listens
    assert f"no rpc-server listens at {address}:{port}" in head_errors(head)[0]


async def test_a_head_waits_for_a_worker_that_is_slower(tmp_path: Path) -> None:
    """The head asks again until its worker listens, whichever is up first."""
    specs = rendered(tmp_path)
    async with running_pair(specs, tmp_path, ahead=1.0):
        assert (await answer(specs[0])).status_code == 200
