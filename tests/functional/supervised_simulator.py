"""The embedded simulator on two simulated nodes of this machine, served by `up` and then kept alive by a real
supervisor."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from fakes.ports import free_port
from patience import PATIENCE
from sparkwright.adapters.artifacts import FolderArtifacts, FolderCalibrations
from sparkwright.adapters.files import Places, open_recipe
from sparkwright.adapters.hosts import ClusterHosts
from sparkwright.adapters.machine import SystemClock
from sparkwright.adapters.openai_http import OpenAiEndpoint
from sparkwright.adapters.sqlite.store import SqliteStore
from sparkwright.adapters.ssh import SshSettings
from sparkwright.app.serve.launch import Options, up
from sparkwright.app.serve.stop import down
from sparkwright.app.services import LaunchRequest, Services
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.codec import from_json, to_json
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.errors import Unreachable
from sparkwright.domain.incident import News
from sparkwright.domain.live import DeploymentState, Desired, Live
from sparkwright.domain.progress import Happening, Notice
from sparkwright.domain.recipe import Recipe
from sparkwright.ports import Host
from sparkwright.simulator.nodes import make_cluster
from sparkwright.supervisor.context import DeploymentContext
from sparkwright.supervisor.core.state import Policy, State
from sparkwright.supervisor.home import Home
from sparkwright.supervisor.loop import supervise

READY = DeploymentState.READY
_PROGRAM = """
import sys
sys.modules["ahocorasick_rs"] = None
from sparkwright.supervisor.__main__ import main
sys.exit(main())
"""
Condition = Callable[[Live], bool]


@dataclass
class RecordingListener:
    """A sink and a notifier of which a test can read what was reported."""

    lines: list[str] = field(default_factory=list)
    news: list[News] = field(default_factory=list)

    def report(self, happening: Happening) -> None:
        if isinstance(happening, Notice):
            self.note(happening.text)

    def note(self, text: str) -> None:
        self.lines.append(f"{time.time():.2f} {text}")

    def announce(self, news: News) -> None:
        self.news.append(news)


class Cut:
    """A node's Host whose connections are lost while `gone` is set. Everything else is the real one's."""

    def __init__(self, host: Host, gone: asyncio.Event) -> None:
        self._host, self._gone, self.name, self.tunnel = host, gone, host.name, host.tunnel

    async def run(self, command: Command) -> Completed:
        return (await self.run_all([command]))[0]

    async def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        self._check()
        return await self._host.run_all(commands)

    async def put(self, content: bytes, path: str, mode: int = 0o644) -> None:
        self._check()
        await self._host.put(content, path, mode)

    async def stream(self, command: Command) -> AsyncIterator[str]:
        self._check()
        async with aclosing(self._host.stream(command)) as lines:  # type: ignore[type-var]
            while line := await self._next(lines):
                yield line[0]

    async def _next(self, lines: AsyncIterator[str]) -> list[str]:
        """The next line, [] at the end. Raises Unreachable once the node is gone."""

        async def come() -> list[str]:
            return [await anext(lines)]

        both = [asyncio.ensure_future(come()), asyncio.ensure_future(self._gone.wait())]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if not self._gone.is_set():
                return both[0].result()
        except StopAsyncIteration:
            return []
        finally:
            for one in both:
                one.cancel()
            await asyncio.gather(*both, return_exceptions=True)
        raise Unreachable(self.name, "the connection is lost")

    def _check(self) -> None:
        if self._gone.is_set():
            raise Unreachable(self.name, "the connection is lost")


class CutHosts:
    def __init__(self, hosts: ClusterHosts, gone: Mapping[str, asyncio.Event]) -> None:
        self._hosts, self._gone = hosts, gone

    def __getitem__(self, node: str) -> Host:
        return Cut(self._hosts[node], self._gone[node]) if node in self._gone else self._hosts[node]

    async def close(self) -> None:
        await self._hosts.close(persist=False)


@dataclass
class SupervisedSimulator:
    """scale: of the supervisor's waits; the simulator's own boot takes 0.3 s. gone: nodes whose connections can be
    cut."""

    folder: Path
    cluster: Cluster
    recipe: Recipe
    scale: float = 0.1
    heard: RecordingListener = field(default_factory=RecordingListener)
    gone: dict[str, asyncio.Event] = field(default_factory=dict)

    @property
    def state(self) -> Path:
        return self.folder / "spark-1/home/.local/state/sparkwright"

    @property
    def home(self) -> Path:
        return self.state / "supervision" / "twin"

    def desired(self) -> Desired:
        return Desired("twin", self.cluster, self.recipe, time_scale=self.scale, python=sys.executable)

    def write_home(self) -> None:
        self.home.mkdir(parents=True)
        self.write_desired()
        (self.home / "secrets.json").write_text("{}")
        (self.home / "secrets.json").chmod(0o600)

    def write_desired(self) -> None:
        (self.home / "desired.json").write_text(to_json(self.desired()))

    @asynccontextmanager
    async def services(self) -> AsyncIterator[Services]:
        clock = SystemClock()
        hosts = CutHosts(ClusterHosts(self.cluster, SshSettings(environ=dict(os.environ))), self.gone)
        try:
            yield Services(
                cluster=self.cluster,
                hosts=hosts,
                endpoint=OpenAiEndpoint(clock),
                clock=clock,
                save_evidence=FolderArtifacts(self.folder / "evidence", clock).save,
                calibrations=FolderCalibrations(self.folder / "calibrations"),
                sink=self.heard,
                who="tests",
                nonce="0123456789abcdef",
                python=sys.executable,
            )
        finally:
            await hosts.close()

    async def up(self) -> None:
        async with self.services() as services:
            await up(services, LaunchRequest(self.recipe, "twin"), Options())

    async def down(self) -> None:
        async with self.services() as services:
            await down(services, "twin", seize=True)

    async def supervise(self) -> None:
        """Supervises like sparkwright.supervisor.run, in this process."""
        store = SqliteStore(self.state, self.heard.note)
        policy = Policy().scaled(self.scale)
        try:
            async with self.services() as services:
                home = Home(self.home, self.heard.note)
                await supervise(DeploymentContext(services, self.desired(), home, store, (self.heard,), policy))
        finally:
            await store.aclose()

    @contextmanager
    def process(self) -> Iterator["subprocess.Popen[bytes]"]:
        """The real program, without the packages that are not copied to a node."""
        with subprocess.Popen([sys.executable, "-c", _PROGRAM, "run", "--home", str(self.home)]) as running:
            try:
                yield running
            finally:
                running.kill()

    def live(self) -> Live | None:
        with suppress(OSError):
            return from_json(Live, (self.home / "live.json").read_bytes())
        return None

    def journal(self) -> State:
        return from_json(State, (self.home / "state.json").read_bytes())

    async def until(self, condition: Condition, seconds: float = PATIENCE) -> float:
        """Seconds until live.json reports it."""
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            live = self.live()
            if live and condition(live):
                return time.monotonic() - began
            await asyncio.sleep(0.02)
        raise AssertionError(f"not within {seconds} s: {self.live()}\n" + "\n".join(self.heard.lines[-40:]))

    def pids(self, rank: int) -> list[int]:
        """All processes of the rank: they carry its folder. The leader first."""
        mark = f"SPARKWRIGHT_RANK_DIR={self.rank_dir(rank)}".encode()
        return [pid for pid in processes() if mark in environ(pid).split(b"\0")]

    def rank_dir(self, rank: int) -> Path:
        node = self.cluster.names[rank]
        return self.folder / node / "home/.local/state/sparkwright/deployments/twin" / f"rank{rank}"

    def kill(self, rank: int, number: int = signal.SIGKILL) -> None:
        for pid in self.pids(rank):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def starts(self, rank: int) -> int:
        """The number of the rank's starts, by the node's own audit log."""
        log = self.folder / self.cluster.names[rank] / "home/.local/state/sparkwright/audit.log"
        return sum(f"/twin/rank{rank}" in line and " start " in line for line in log.read_text().splitlines())


def processes() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").glob("[0-9]*"))


def environ(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def make_supervised(folder: Path, scale: float = 0.1, **env: str) -> SupervisedSimulator:
    recipe = open_recipe("twin", Places(folder, folder))
    serving = replace(recipe.serving, port=free_port(), master_port=free_port())
    env = {"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0.005", "SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "1", **env}
    made = replace(recipe, serving=serving, env={**recipe.env, **env})
    return SupervisedSimulator(folder, replace(make_cluster(folder), simulated=False), made, scale)
