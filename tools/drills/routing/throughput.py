"""`python -m drills.routing.throughput [--engine llama]`: tokens a second through the gateway with more replicas.

The speed of each replica is fixed, so that the figures do not depend on what else this machine does: simulated engines
sleep between tokens, and llama.cpp's servers share one core, of which a control group gives each of them a part. On
cores of their own they would slow each other down where those are two threads of one core. The other cores are for the
gateway, Caddy and the clients. Exit status: 1 if two replicas give less than 1.9
times what one gives. `PYTHONPATH=../tests` is needed, as for `drills.routing`; the share of a core needs root.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import httpx

from drills.routing.candidates import KEY, RoutingCandidate, free_port, start_ours, wait_for_answer
from functional import tiny_gguf
from functional.simulator.process import CAPTURES, FAST
from sparkwright.domain.cluster import NodePaths
from sparkwright.domain.plan import Placement
from sparkwright.domain.recipe import EngineChoice, Model, Recipe, Runtime, Serving
from sparkwright.engines.catalog import engine
from sparkwright.engines.engine import RenderContext, files_at

WANTED = 1.9
STEP_MS = 50
TOKENS = 64
EACH = 3  # streams for each sequence of two replicas: some always wait, so that no sequence is free
WARM = 6.0  # seconds, until all replicas are full
GROUPS = Path("/sys/fs/cgroup")
# Microseconds in which an engine gets its share of a core; what others keep it from in one period it makes good in the
# next. Weight against others on that core, as far as they are in our own group: they cannot keep it from much.
PERIOD, WEIGHT = 100_000, 10_240
CHAT = "/v1/chat/completions"


@dataclass
class Engines:
    """Engines that listen. counts: numbers of replicas to measure; slots: sequences that one engine computes at
    once."""

    ports: list[int]
    counts: tuple[int, ...]
    slots: int
    what: str
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)


@contextmanager
def cpu_share(name: str, share: float) -> Iterator[Path | None]:
    """A control group whose processes get so much of a core, no more and no less, below our own; None if there can be
    none here."""
    old = (GROUPS / "cpu").is_dir()
    rows = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    mine = next((path for _, kinds, path in rows if "cpu" in kinds.split(",")), "/")
    group = (GROUPS / "cpu" / mine.lstrip("/") if old else GROUPS) / name
    quota = int(PERIOD * share)
    wanted: dict[str, int | str]
    if old:
        wanted = {"cfs_period_us": PERIOD, "cfs_quota_us": quota, "cfs_burst_us": quota, "shares": WEIGHT}
    else:
        wanted = {"max": f"{quota} {PERIOD}", "max.burst": quota, "weight": min(WEIGHT, 10_000)}
    try:
        group.mkdir()
    except OSError as error:
        print(f"no share of a core: {error}; llama.cpp takes what it gets")
        yield None
        return
    try:
        for file, value in wanted.items():
            (group / f"cpu.{file}").write_text(str(value))
        yield group
    finally:
        group.rmdir()


def simulators(folder: Path, slots: int, stack: ExitStack) -> Engines:
    """Four simulated engines that give each of their sequences a token every STEP_MS and a bit."""
    made = Engines(
        [free_port() for _ in range(4)], (1, 2, 4), slots, f"simulated, {slots} sequences, {STEP_MS} ms a token"
    )
    env = {**FAST, "SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "1", "SPARKWRIGHT_SIMULATOR_STEP_MS": str(STEP_MS)}
    for port in made.ports:
        (own := folder / f"engine{port}").mkdir()
        shutil.copy(CAPTURES / "tiny-qwen3.config.json", own / "config.json")
        words = ["serve", str(own), "--served-model-name", "alpha", "--load-format", "dummy", "--host", "127.0.0.1"]
        words += ["--port", str(port), "--max-num-seqs", str(slots), "--max-model-len", "4096"]
        argv = [sys.executable, "-m", "sparkwright.simulator", *words]
        made.processes.append(_started(argv, own, stack, env))
    return made


def llamas(folder: Path, slots: int, share: float, stack: ExitStack) -> Engines:
    """Two of llama.cpp's servers with random weights, one thread and a share of one core each; we go to the others."""
    core, *others = sorted(os.sched_getaffinity(0))
    if not others:
        raise SystemExit("two cores are needed, one of them for the replicas")
    os.sched_setaffinity(0, others)
    what = f"llama.cpp, {slots} sequences, {share:.0%} of a core"
    made = Engines([free_port(), free_port()], (1, 2), slots, what)
    tiny_gguf.WIDTH, tiny_gguf.LAYERS, tiny_gguf.FEED_FORWARD = 512, 6, 1408  # 16 million weights
    model = tiny_gguf.write_tiny_gguf(folder / "tiny.gguf")
    for port in made.ports:
        (own := folder / f"engine{port}").mkdir()
        argv = [f"{shutil.which('taskset')}", "-c", str(core), *_llama_argv(own, model, port, slots)]
        group = stack.enter_context(cpu_share(f"sparkwright-throughput-{port}", share))
        process = _started(argv, own, stack, {})
        made.processes.append(process)
        if group:
            (group / "cgroup.procs").write_text(str(process.pid))
    return made


def _llama_argv(own: Path, model: Path, port: int, slots: int) -> tuple[str, ...]:
    flags = {"n-gpu-layers": 0, "threads": 1, "threads-batch": 1}
    recipe = Recipe(
        "alpha",
        "Random weights",
        Model(path=str(model), served_name="alpha"),
        EngineChoice("llama-cpp", "2026.10.11549", Runtime.PROCESS, venv=sys.prefix),
        serving=Serving(context=1024, sequences=slots, batched_tokens=256),
        flags=flags,
    )
    paths = {"here": NodePaths(str(own), str(own), str(own), str(own))}
    context = RenderContext(paths, {"here": str(model)}, port=port, deployment="alpha")
    (spec,) = engine("llama-cpp").render(recipe, Placement(("here",), {}), context)
    files = Path(files_at(recipe, context, "here", 0))
    files.mkdir(parents=True, exist_ok=True)
    for file in spec.files:
        (files / file.name).write_text(file.text)
    return spec.argv


def _started(argv: list[str], own: Path, stack: ExitStack, env: dict[str, str]) -> subprocess.Popen[bytes]:
    with (own / "log").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log, env={**os.environ, **env})

    def end() -> None:
        process.kill()
        process.wait()

    stack.callback(end)
    return process


def until_ready(engines: Engines, folder: Path) -> None:
    """Each engine answers a chat. Raises SystemExit for one that ends or takes five minutes."""
    for port, process in zip(engines.ports, engines.processes, strict=True):
        until = time.monotonic() + 300
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > until:
                raise SystemExit((folder / f"engine{port}/log").read_text()[-2000:])
            time.sleep(0.2)


def _answers(port: int) -> bool:
    body = {"model": "alpha", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 1}
    try:
        return httpx.post(f"http://127.0.0.1:{port}{CHAT}", json=body, timeout=30).status_code == 200
    except httpx.HTTPError:
        return False


async def tokens_a_second(gateway: RoutingCandidate, streams: int, seconds: float, numbers: Iterator[int]) -> float:
    """Tokens of all streams in the window after WARM seconds; each stream asks again as soon as it has its answer.

    numbers: of questions. One that was asked before would be cached, in one replica and not in the other.
    """
    began = time.monotonic() + WARM
    until, counted = began + seconds, 0
    limits = httpx.Limits(max_connections=None)
    headers = {"Authorization": f"Bearer {KEY}"}
    base = f"http://127.0.0.1:{gateway.port}"

    async def one_stream(client: httpx.AsyncClient) -> None:
        nonlocal counted
        while time.monotonic() < until:
            text = f"question {next(numbers)} of somebody else " * 8
            body = {"model": "alpha", "messages": [{"role": "user", "content": text}], "max_tokens": TOKENS}
            async with client.stream("POST", CHAT, json={**body, "stream": True, **tiny_gguf.TO_THE_LIMIT}) as answer:
                if answer.status_code != 200:
                    raise SystemExit(f"{answer.status_code}: {(await answer.aread())[:500]!r}")
                async for line in answer.aiter_lines():
                    now = time.monotonic()
                    if now > until:
                        return
                    counted += now >= began and _is_token(line)

    async with httpx.AsyncClient(base_url=base, headers=headers, limits=limits, timeout=120) as client:
        await asyncio.gather(*(one_stream(client) for _ in range(streams)))
    return counted / seconds


def _is_token(line: str) -> bool:
    if not line.startswith("data: {"):
        return False
    choices = json.loads(line[6:]).get("choices") or [{}]
    return bool(choices[0].get("delta", {}).get("content"))


async def measure(
    engines: Engines, gateways: dict[int, RoutingCandidate], rounds: int, seconds: float
) -> dict[int, float]:
    """Medians of rounds, by number of replicas. Each round measures all numbers, every other one in the other order: a
    machine that gets faster or slower meanwhile favours none."""
    streams = engines.slots * 2 * EACH
    found: dict[int, list[float]] = {count: [] for count in engines.counts}
    numbers = itertools.count()
    for number in range(rounds):
        for count in engines.counts if number % 2 == 0 else reversed(engines.counts):
            found[count].append(await tokens_a_second(gateways[count], streams, seconds, numbers))
            await asyncio.sleep(2)
        print(f"round {number + 1}: " + ", ".join(f"{n}: {rates[-1]:.0f}" for n, rates in found.items()), flush=True)
    print(f"{engines.what}; {streams} streams through Caddy and our process, {rounds} rounds of {seconds:g} s, medians")
    print("| replicas | tokens/s | of one's |")
    print("| -- | -- | -- |")
    medians = {count: median(rates) for count, rates in found.items()}
    for count, rate in medians.items():
        ratios = [mine / one for mine, one in zip(found[count], found[1], strict=True) if one]
        print(f"| {count} | {rate:,.0f} | {median(ratios):.2f} |")
    return medians


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--engine", choices=("simulator", "llama"), default="simulator")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--slots", type=int, default=0, help="sequences of one replica [8, of llama.cpp 2]")
    parser.add_argument("--share", type=float, default=0.12, help="of a core, for each of llama.cpp's servers")
    given = parser.parse_args()
    llama = given.engine == "llama"
    slots = given.slots or (2 if llama else 8)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        engines = llamas(folder, slots, given.share, stack) if llama else simulators(folder, slots, stack)
        until_ready(engines, folder)
        gateways: dict[int, RoutingCandidate] = {}
        for count in engines.counts:
            (own := folder / f"gateway{count}").mkdir()
            alone, gateways[count] = start_ours(own, *engines.ports[:count])
            for process in (*alone.processes, *gateways[count].processes):
                stack.callback(process.wait)
                stack.callback(process.terminate)
            wait_for_answer(gateways[count])
        medians = asyncio.run(measure(engines, gateways, given.rounds, given.seconds))
    return int(medians[2] < WANTED * medians[1])


if __name__ == "__main__":
    sys.exit(main())
