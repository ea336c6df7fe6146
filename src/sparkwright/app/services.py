"""The services of a use case: the cluster, access to its nodes, the progress sink, and tasks with one error."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from sparkwright.domain.calibration import Calibration
from sparkwright.domain.checkpoint import Checkpoint, Published, Stored
from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.command import Command, Completed, Secret
from sparkwright.domain.errors import CommandFailed, UsageError
from sparkwright.domain.facts import EngineFound, NodeFacts, Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.domain.progress import Notice
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.replica import ReplicaPlace
from sparkwright.domain.values import dataclass, field
from sparkwright.engines.engine import PYTHON
from sparkwright.engines.flag_data import SHIPPED, FlagLibrary
from sparkwright.facts.fact import Fact
from sparkwright.ports import (
    Calibrations,
    Callers,
    Clock,
    Endpoint,
    FlagStore,
    Hosts,
    Keyring,
    PlanHistory,
    Program,
    Sink,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Services:
    """The services given to every use case. who: `user@host` for leases and audit. nonce: random, distinguishes this
    process from others.

    save_evidence: (deployment, name, text) -> the path to show; all of one process is in one folder on this machine.
    secrets: values of environment variables that recipes name (serving.api_key_env, HF_TOKEN), already masked.
    python: the interpreter of this machine; of use on the nodes that are this machine only (`python_on`).
    launch_key: random, for what the ranks of one launch must prove to each other.
    hub: (model, revision) -> what is published; Unknown with why when it refuses, None when it cannot be reached; it
    never raises. None to ask none.
    program: what a supervisor runs; None where nothing is supervised from here (in a supervisor itself).
    time_scale: of the supervisor's waits, for drills.
    headers: (model, revision) -> its files and their headers as a node lists them; else as hub.
    keyring: where keys of gateways are made and kept; None where nobody is who could be given one.
    flags: options of engines that were asked for them; None where none are kept.
    history: of predictions and what was measured; None: nothing is kept.
    callers: tells if a process of ours on this machine has ended; None where nobody can.
    """

    cluster: Cluster
    hosts: Hosts
    endpoint: Endpoint
    clock: Clock
    save_evidence: Callable[[str, str, str], str]
    calibrations: Calibrations
    sink: Sink
    who: str
    nonce: str
    secrets: Mapping[str, Secret] = field(default_factory=dict)
    python: str = "python3"
    launch_key: Secret | None = None
    hub: Callable[[str, str], Awaitable[Published | Unknown | None]] | None = None
    headers: Callable[[str, str], Awaitable[str | Unknown | None]] | None = None
    keyring: Keyring | None = None
    program: Program | None = None
    time_scale: float = 1.0
    flags: FlagStore | None = None
    history: PlanHistory | None = None
    callers: Callers | None = None

    def python_on(self, node: Node) -> str:
        """The interpreter for process-runtime engines whose recipe names no venv; another machine never gets a path of
        this one."""
        return self.python if node.is_local else PYTHON

    def state_on(self, node: str) -> str:
        """Our folder on a node."""
        return self.cluster.node(node).paths.state

    async def run(self, node: str, command: Command) -> Completed:
        return await self.hosts[node].run(command)

    async def read(self, node: str, fact: Fact[T]) -> T | Unknown:
        return fact.read(await self.run(node, fact.command))

    def notice(self, text: str, warning: bool = False) -> None:
        self.sink.report(Notice(text, warning))


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """The user's request. force: the reason given to override findings, '' for none.

    measured: figures of logs that were given by hand, in place of those of earlier starts. supervised: the engine
    listens where only the gateway reaches it. replaces: another deployment, whose memory and ports count as free.
    image: the id that runs wherever every node has it, whatever the recipe's tag means by now.
    replica: its part in a model with several replicas, None for a deployment that stands alone.
    """

    recipe: Recipe
    deployment: str
    force: str = ""
    api_key: Secret | None = None
    measured: tuple[Calibration, ...] = ()
    supervised: bool = False
    # Deployments that ran on the same nodes while it served, at the user's request.
    beside: tuple[str, ...] = ()
    replaces: str = ""
    image: str = ""
    replica: ReplicaPlace | None = None


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The answers of the nodes. images: node -> (id, bytes) of the recipe's image, absent if the node lacks it.
    digests: node -> `NAME@sha256:...` of it, absent where its registry is not known.

    engines: node -> the engine that is there, absent where nobody has looked yet. calibrations: node -> what the engine
    printed there (or elsewhere) at an earlier start. stored: every checkpoint on the cluster's disks, () where
    nobody has looked: that is done only for a plan that does not fit. published: what the hub has of a model that no
    node has, None where it was not asked or did not answer. draft: dimensions of a draft model of its own.
    flags: options of engines.
    """

    facts: Mapping[str, NodeFacts]
    checkpoints: Mapping[str, Checkpoint | Unknown] = field(default_factory=dict)
    images: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    engines: Mapping[str, EngineFound | Unknown] = field(default_factory=dict)
    calibrations: Mapping[str, Calibration] = field(default_factory=dict)
    stored: tuple[Stored, ...] = ()
    published: Published | None = None
    draft: ModelShape | None = None
    flags: FlagLibrary = SHIPPED
    digests: Mapping[str, str] = field(default_factory=dict)


def api_key(services: Services, recipe: Recipe) -> Secret | None:
    """The key that clients must send. Raises UsageError when the recipe names a variable that is not set here."""
    name = recipe.serving.api_key_env
    if not name:
        return None
    if name not in services.secrets:
        hint = f"export {name}=$(openssl rand -hex 24), and give the same value to the clients"
        raise UsageError(f"{recipe.name}: serving.api_key_env names {name}, which is not set here", hint)
    return services.secrets[name]


def understood(node: str, what: str, found: T | Unknown) -> T:
    """The value that a node reported. Raises CommandFailed with the text that could not be parsed."""
    if isinstance(found, Unknown):
        raise CommandFailed(node, f"{what}: {found.why} {found.raw}")
    return found


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Results in order. The first error cancels the others and is raised as itself."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except BaseExceptionGroup as error:
        raise first_error(error) from None
    return [task.result() for task in tasks]


async def by_node(nodes: Sequence[str], ask: Callable[[str], Coroutine[Any, Any, T]]) -> dict[str, T]:
    """Asks all nodes at once; returns the answers by node."""
    return dict(zip(nodes, await together(map(ask, nodes)), strict=True))


async def finish_all(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Runs all tasks like `together`, but lets the others finish after an error on one node, and raises it at the
    end."""
    done = await asyncio.gather(*work, return_exceptions=True)
    for result in done:
        if isinstance(result, BaseException):
            raise result
    return [result for result in done if not isinstance(result, BaseException)]


async def finished(work: Coroutine[Any, Any, T]) -> T:
    """Goes to its end also when the caller is cancelled, who is cancelled then.

    For changes on nodes: whether one that was cut off half-way has happened could not be known.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def first_error(error: BaseException) -> BaseException:
    """The first real error of a group; a cancellation only when there is nothing else."""
    while isinstance(error, BaseExceptionGroup):
        ours = [e for e in error.exceptions if not isinstance(e, asyncio.CancelledError)]
        error = (ours or list(error.exceptions))[0]
    return error
