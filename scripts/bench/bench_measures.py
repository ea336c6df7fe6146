"""The bench's measurements. Every figure is taken several times, in turn with the one it is compared to."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench_nodes import Nodes

from sparkwright.adapters.hosts import ClusterHosts
from sparkwright.adapters.machine import SystemClock
from sparkwright.adapters.ssh import SshSettings
from sparkwright.app.gather import gather
from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.command import Command, Completed
from sparkwright.facts.board import IDENTITY
from sparkwright.facts.ranks import ranks_fact

HELP = (sys.executable, "-m", "sparkwright", "--help")


@dataclass(frozen=True)
class BenchFigure:
    """values: one per repeat, in `unit`. base: what it is compared to (medians), '' for nothing. target: at most."""

    name: str
    where: str
    values: tuple[float, ...]
    unit: str
    target: float
    base: str = ""
    note: str = ""
    simulated: bool = True

    @property
    def median(self) -> float:
        return statistics.median(self.values)


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


# up


def up_adds(nodes: Nodes, repeats: int) -> BenchFigure:
    """`up` against starting the same ranks with the same words by hand, each to the first answer."""
    ranks, port = nodes.plan()["ranks"], nodes.plan()["port"]
    with_it, by_hand = [], []
    for _ in range(repeats):
        by_hand.append(seconds(lambda: _by_hand(nodes, ranks, port)))
        with_it.append(seconds(lambda: nodes.run("up", str(nodes.recipe), "--json")))
        nodes.run("down", "recipe")
    added = tuple(one - other for one, other in zip(with_it, by_hand, strict=True))
    base = f"up {statistics.median(with_it):.2f} s, by hand {statistics.median(by_hand):.2f} s"
    return BenchFigure("up adds", nodes.kind, added, "s", 3.0, base, "process start of the command included")


def _by_hand(nodes: Nodes, ranks: Sequence[dict[str, Any]], port: int) -> None:
    with ExitStack() as stack:
        for rank in reversed(ranks):
            stack.enter_context(_rank(nodes, rank, port))
        _first_answer(port)


@contextmanager
def _rank(nodes: Nodes, rank: dict[str, Any], port: int) -> Iterator[None]:
    program = ["env", *(f"{name}={value}" for name, value in rank["env"].items()), *rank["argv"]]
    if nodes.ssh:
        # On loopback the engine itself listens there.
        forward = [] if rank["rank"] or nodes.local else ["-L", f"{port}:127.0.0.1:{port}"]
        program = [*nodes.ssh, "-tt", *forward, rank["node"], f"exec {shlex.join(program)}"]
    null = subprocess.DEVNULL
    process = subprocess.Popen(program, stdin=null, stdout=null, stderr=null)
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


def _first_answer(port: int, limit: float = 120.0) -> None:
    """Asks until a completion with tokens comes back."""
    body = {"model": "twin-tiny", "messages": [{"role": "user", "content": "Write hello."}], "max_tokens": 64}
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            if answer.status == 200 and json.load(answer)["usage"]["completion_tokens"]:
                return
        except (OSError, http.client.HTTPException):
            time.sleep(0.02)
        finally:
            connection.close()
    raise RuntimeError(f"no answer on port {port} within {limit:.0f} s")


# facts and status


def facts_of(nodes: Nodes, cluster: Cluster, counts: Sequence[int], repeats: int) -> dict[int, tuple[float, ...]]:
    """Seconds for the facts of the first n nodes, connections open, by n; the counts take turns."""
    return asyncio.run(_facts(nodes, cluster, counts, repeats))


async def _facts(nodes: Nodes, cluster: Cluster, counts: Sequence[int], repeats: int) -> dict[int, tuple[float, ...]]:
    hosts = ClusterHosts(cluster, SshSettings(config=nodes.ssh_config, control=nodes.folder / "k"))
    taken: dict[int, list[float]] = {count: [] for count in counts}
    try:
        for node in cluster.nodes:
            await hosts[node.name].run(IDENTITY.command)
        for _ in range(repeats):
            for count in counts:
                taken[count].append(await _timed(gather(hosts, cluster.nodes[:count], SystemClock(), ranks_fact)))
    finally:
        await hosts.close(persist=False)
    return {count: tuple(values) for count, values in taken.items()}


async def _timed(work: Coroutine[Any, Any, Any]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


class Replayed:
    """A Host that gives the answers of another one after the time that it took, without work for this machine."""

    def __init__(self, answers: dict[Any, Completed], delay: float) -> None:
        self._answers, self._delay = answers, delay

    async def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        await asyncio.sleep(self._delay)
        return tuple(self._answers.get(_key(command), Completed(1, "")) for command in commands)


def _key(command: Command) -> Any:
    return command.argv


def facts_replayed(nodes: Nodes, cluster: Cluster, repeats: int) -> dict[int, tuple[float, ...]]:
    """The times of `facts_of` for one and eight nodes, with only sparkwright's own work done on this machine."""
    return asyncio.run(_replayed(nodes, cluster.nodes[0], repeats))


async def _replayed(nodes: Nodes, node: Node, repeats: int) -> dict[int, tuple[float, ...]]:
    cluster = Cluster("one", (node,), node.name)
    hosts = ClusterHosts(cluster, SshSettings(config=nodes.ssh_config, control=nodes.folder / "k"))
    recorder = _Recorder(hosts[node.name])
    await hosts[node.name].run(IDENTITY.command)
    delay = await _timed(gather(_One(recorder), [node], SystemClock(), ranks_fact))  # type: ignore[arg-type]
    await hosts.close(persist=False)
    fleet = _One(Replayed(recorder.answers, delay))
    taken: dict[int, list[float]] = {1: [], 8: []}
    for _ in range(repeats):
        for count in taken:
            named = [replace(node, name=f"n{number}") for number in range(count)]
            taken[count].append(await _timed(gather(fleet, named, SystemClock(), ranks_fact)))  # type: ignore[arg-type]
    return {count: tuple(values) for count, values in taken.items()}


class _Recorder:
    def __init__(self, host: Any) -> None:
        self._host = host
        self.answers: dict[Any, Completed] = {}

    async def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        done: tuple[Completed, ...] = await self._host.run_all(commands)
        self.answers |= {_key(command): one for command, one in zip(commands, done, strict=True)}
        return done


class _One:
    """Hosts that are all the same one."""

    def __init__(self, host: Any) -> None:
        self._host = host

    def __getitem__(self, _: str) -> Any:
        return self._host


def status_takes(nodes: Nodes, repeats: int) -> BenchFigure:
    """`status` as a call of its own, with connections that an earlier call has left open."""
    nodes.run("up", str(nodes.recipe), "--json")
    try:
        nodes.run("status")
        taken = tuple(seconds(lambda: nodes.run("status")) for _ in range(repeats))
        bare = tuple(seconds(lambda: nodes.run("status", "--no-probe")) for _ in range(repeats))
    finally:
        nodes.run("down", "recipe")
    base = f"without the token {statistics.median(bare):.2f} s"
    return BenchFigure("status", nodes.kind, taken, "s", 0.7, base, "two nodes, a whole call, one real token")


def check_takes(nodes: Nodes, repeats: int) -> BenchFigure:
    """`check` as a call of its own, with connections that an earlier call has left open."""

    def check() -> None:
        done = subprocess.run(nodes.argv("check", "--json"), capture_output=True, text=True, env=nodes.environment)
        if done.returncode not in (0, 1) or json.loads(done.stdout)["unreachable"]:
            raise RuntimeError(f"check ended with {done.returncode}: {done.stderr}")

    check()
    taken = tuple(seconds(check) for _ in range(repeats))
    note = f"a whole call; all nodes share {os.cpu_count()} CPUs, and do not sample their swapping, 0.4 s on real ones"
    return BenchFigure("check of four", nodes.kind, taken, "s", 3.0, "connections open", note)


def python_alone() -> float:
    """Seconds of a start of Python that does nothing: what this program's own work is compared to."""
    return seconds(lambda: subprocess.run((sys.executable, "-c", "pass"), check=True))


def help_takes(repeats: int) -> BenchFigure:
    taken, bare = [], []
    for _ in range(repeats):
        taken.append(seconds(lambda: subprocess.run(HELP, capture_output=True, check=True)))
        bare.append(python_alone())
    base = f"python alone {statistics.median(bare):.2f} s"
    return BenchFigure("--help", "this machine", tuple(taken), "s", 0.25, base, simulated=False)


_FAKE_SSH = '#!/bin/sh\n[ -e "$FIRST_SSH" ] || date +%s%N >"$FIRST_SSH"\nexit 255\n'


def starts_take(verb: str, repeats: int) -> BenchFigure:
    """The time from the call of a command to its first ssh, in turn with `--help`. Its cluster file was read once
    before."""
    taken, bare = [], []
    with TemporaryDirectory(prefix="swb-") as name:
        folder = Path(name)
        (folder / "cluster.yaml").write_text("nodes: [spark-1, spark-2]\n")
        (folder / "ssh").write_text(_FAKE_SSH)
        (folder / "ssh").chmod(0o755)
        _first_ssh(folder, verb)
        for _ in range(repeats):
            bare.append(seconds(lambda: subprocess.run(HELP, capture_output=True, check=True)))
            taken.append(_first_ssh(folder, verb))
    base = f"--help {statistics.median(bare):.2f} s"
    note = f"{statistics.median(taken) / statistics.median(bare):.1f} times --help"
    return BenchFigure(f"start of {verb}", "this machine", tuple(taken), "s", 0.3, base, note, simulated=False)


def _first_ssh(folder: Path, verb: str) -> float:
    """Seconds until ssh was called. Raises RuntimeError where it was not."""
    mark = folder / "first"
    mark.unlink(missing_ok=True)
    environ = {**os.environ, "HOME": str(folder), "PATH": f"{folder}:{os.environ['PATH']}", "FIRST_SSH": str(mark)}
    began = time.time_ns()
    done = subprocess.run((*HELP[:-1], *verb.split()), cwd=folder, env=environ, capture_output=True, text=True)
    if not mark.exists():
        raise RuntimeError(f"{verb} has called no ssh: {done.stderr}")
    return (int(mark.read_text()) - began) / 1e9
