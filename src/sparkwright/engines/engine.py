"""The seam that every engine fits: what it is given, what it gives back.

Adding an engine is one file and one row in the catalog.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

from sparkwright.domain.cluster import NodePaths
from sparkwright.domain.command import Secret
from sparkwright.domain.deployment import LogEvent
from sparkwright.domain.finding import Finding
from sparkwright.domain.plan import Placement, RankSpec
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.domain.values import dataclass, field
from sparkwright.engines.definitions import FromFile
from sparkwright.engines.traits import Traits
from sparkwright.remote import docker, process

SHM_BYTES = 64 * 1024**3
PYTHON = "python3"


@dataclass(frozen=True, slots=True)
class RenderContext:
    """The input of an engine besides recipe and placement; every path is absolute on its node, no `~`.

    models: node -> the folder (or GGUF file) of the weights on the host; '' or no entry for a simulated model.
    from_hub: those folders are snapshots inside paths[node].hub. bind, port: where the API listens on the head.
    pythons: node -> the interpreter of process-runtime engines written in Python whose recipe names no venv; where a
    node has no entry, its own `python3`.
    simulated: the engine is the simulator, or the cluster is simulated: no GPU and no RDMA device is passed.
    deployment: its name. launch_key: random per call, shared by the ranks of one launch (RankSpec.secrets); never argv.
    """

    paths: Mapping[str, NodePaths]
    models: Mapping[str, str] = field(default_factory=dict)
    from_hub: bool = False
    bind: str = "127.0.0.1"
    port: int = 8000
    api_key: Secret | None = None
    simulated: bool = False
    pythons: Mapping[str, str] = field(default_factory=dict)
    deployment: str = ""
    launch_key: Secret | None = None

    def python(self, recipe: Recipe, node: str) -> str:
        """The interpreter of the recipe's venv, or else the node's."""
        venv = recipe.engine.venv.rstrip("/")
        return f"{venv}/bin/python" if venv else self.pythons.get(node, PYTHON)


def files_at(recipe: Recipe, context: RenderContext, node: str, rank: int) -> str:
    """The folder of RankSpec.files as the rank's own processes see it."""
    if recipe.engine.runtime is Runtime.DOCKER:
        return docker.FILES_AT
    return process.files_dir(process.rank_dir(context.paths[node].state, context.deployment, rank))


@dataclass(frozen=True, slots=True)
class Stop:
    """The way to end a rank: the signal's name, and the seconds to wait before SIGKILL."""

    signal: str = "SIGTERM"
    grace: float = 30.0


class Engine(Protocol):
    """One inference engine: pure knowledge of its command line, its log and its metric names."""

    name: str

    @property
    def metrics_page(self) -> str:
        """Its path, below the server's root."""
        ...

    @property
    def stop(self) -> Stop: ...

    @property
    def traits(self) -> Traits:
        """The facts that memory, splits and speed are planned by."""
        ...

    def check(self, recipe: Recipe) -> Iterator[Finding]:
        """Findings for parts of the recipe that this engine cannot do; flags are checked apart, against a version's
        data."""
        ...

    def render(self, recipe: Recipe, placement: Placement, context: RenderContext) -> tuple[RankSpec, ...]:
        """One RankSpec per rank, in rank order: argv, environment, mounts, secrets, ports."""
        ...

    def read(self, line: str) -> LogEvent | None:
        """One line of a rank's log, understood; None for lines that are not about start-up. Never raises."""
        ...


PAGE = FromFile(lambda made: made.metrics_page.lstrip("/"))
STOP = FromFile(lambda made: Stop(made.stop_signal, made.stop_grace))


def served_name(recipe: Recipe) -> str:
    """The model name that clients use: as given, or the last part of the hub id or path."""
    return recipe.model.served_name or recipe.model.label.rstrip("/").rpartition("/")[2].removesuffix(".gguf")
