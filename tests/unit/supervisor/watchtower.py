"""A supervised deployment on two fake nodes: the scene of `up`, with what a supervisor has around it."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fakes.rank_node import STATE, Rank
from fakes.supervisor_home import FakeKeep
from sparkwright.domain.live import Desired
from sparkwright.facts import sample as asking
from sparkwright.supervisor.context import DeploymentContext
from sparkwright.supervisor.core.detect.detectors import Detectors
from sparkwright.supervisor.core.detect.setting import Setting
from sparkwright.supervisor.core.events import Event
from sparkwright.supervisor.core.state import Policy
from sparkwright.supervisor.event_bus import EventBus
from unit.app.scene import ClusterScene, make_scene, recipe

KIB = 1024
AVAILABLE = 100 * 1024**3


@dataclass
class Tower:
    scene: ClusterScene = field(default_factory=make_scene)
    keep: FakeKeep = field(default_factory=FakeKeep)
    more: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def context(self) -> DeploymentContext:
        desired = Desired("twin", self.scene.services.cluster, recipe(), force="a test", **self.more)
        return DeploymentContext(
            self.scene.services, desired, self.keep.journal, self.keep.store, (self.keep.notifier,), Policy()
        )

    @cached_property
    def bus(self) -> EventBus:
        return EventBus(self.context, Detectors(Setting.of(self.context.desired, self.context.nodes, rdma=False)))

    @property
    def events(self) -> list[Event]:
        """The events reported since the last call."""
        queue = self.bus.events
        return [queue.get_nowait() for _ in range(queue.qsize())]

    def runs(self, number: int, node: int | None = None) -> Rank:
        """A rank that is there, on its own node or on another."""
        labels = {"deployment": "twin", "rank": str(number), "world": "2", "bind": "127.0.0.1"}
        made = Rank(labels, ())
        host = self.scene.nodes[number if node is None else node]
        host.ranks[f"{STATE}/deployments/twin/rank{number}"] = made
        return made

    def memory(self, node: int, available: int, boot: str = "boot") -> None:
        """Sets the node's memory."""
        text = f"@@ sample\ntime 1.0\nboot {boot}:1\nMemTotal: {128 * KIB * KIB} kB\n"
        text += "".join(f"{name}: 1 kB\n" for name in ("MemFree", "Buffers", "Cached", "AnonPages"))
        text += f"MemAvailable: {available // KIB} kB\n@@ end\n"
        self.scene.nodes[node].on(lambda command: command == asking.memory(), text)


def make_tower(**more: Any) -> Tower:
    """Both ranks run; memory as before the start."""
    made = Tower(more=more)
    for number in (0, 1):
        made.runs(number)
        made.memory(number, AVAILABLE)
    made.keep.journal.figures = {f"available:spark-{n}": float(AVAILABLE) for n in (1, 2)}
    return made
