"""A simulated cluster on whose head a supervisor has left what it leaves; tests state how it is now."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from functional.command import UserShell
from sparkwright.adapters.sqlite.store import SqliteStore
from sparkwright.cli.demo import cluster_yaml
from sparkwright.domain.codec import to_json
from sparkwright.domain.live import DeploymentState, Live, LiveCanary, LiveNode, LiveRank
from sparkwright.simulator.nodes import make_cluster

GIB = 1024**3
T = TypeVar("T")


class SupervisedHead:
    """The state folder of spark-1."""

    def __init__(self, shell: UserShell) -> None:
        cluster = make_cluster(shell.folder / "nodes")
        (shell.folder / "cluster.yaml").write_text(cluster_yaml(replace(cluster, simulated=False)))
        self.state = shell.folder / "nodes" / "spark-1" / "home" / ".local" / "state" / "sparkwright"
        self.home = self.state / "supervision" / "twin"
        self.home.mkdir(parents=True)
        self.write("desired.json", '{"deployment": "twin", "by": "me@laptop"}')

    def write(self, name: str, text: str) -> None:
        path = self.home / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def live(self, **changed: object) -> Live:
        """Written as a supervisor would have written it just now."""
        now = time.time()
        nodes = (
            LiveNode("spark-1", now, True, 130 * GIB, 20 * GIB, per_hour=-2.0 * GIB, time_left=18_000.0),
            LiveNode("spark-2", now, False),
            LiveNode("spark-3", 0.0, False),
        )
        made = Live(
            at=now,
            deployment="twin",
            phase=DeploymentState.READY,
            since=now - 3662,
            incidents=2,
            last_incident=2,
            relaunches=1,
            ranks=(LiveRank(0, "spark-1", True), LiveRank(1, "spark-2", True)),
            nodes=nodes,
            canary=LiveCanary(now - 4, 0.4, "4"),
            engine_address="http://127.0.0.1:8000",
            simulated=True,
        )
        made = replace(made, **changed)  # type: ignore[arg-type]
        self.write("live.json", to_json(made))
        return made

    def store(self, use: Callable[[SqliteStore], Awaitable[T]]) -> T:
        async def go() -> T:
            store = SqliteStore(self.state, print)
            try:
                return await use(store)
            finally:
                await store.aclose()

        return asyncio.run(go())

    def rows_only(self, number: int) -> None:
        """Removes the folder as 20 more incidents would."""
        folder = self.state / "incidents" / "twin" / str(number)
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


@contextmanager
def supervising(home: Path) -> Iterator[int]:
    """A process that looks like a supervisor to `status`; its pid."""
    words = [sys.executable, "-c", "import time; time.sleep(3600)", "run", "--home", str(home)]
    with subprocess.Popen(words) as process:
        try:
            yield process.pid
        finally:
            process.kill()
