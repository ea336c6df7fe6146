"""Facts of all nodes at once: each node is asked everything in one round trip."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from sparkwright.domain.cluster import Node
from sparkwright.domain.command import Completed
from sparkwright.domain.errors import NodeError
from sparkwright.domain.facts import NOT_ASKED, Driver, NodeFacts, RankStatus, Unknown
from sparkwright.facts.activity import ACTIVITY
from sparkwright.facts.addresses import ADDRESSES
from sparkwright.facts.board import BOARD
from sparkwright.facts.containers import CONTAINERS
from sparkwright.facts.disk import disks
from sparkwright.facts.docker import DOCKER
from sparkwright.facts.driver import DRIVER
from sparkwright.facts.fabric import RDMA
from sparkwright.facts.fact import Fact
from sparkwright.facts.gpu import GPU_PROCESSES, GPUS
from sparkwright.facts.identity import IDENTITY
from sparkwright.facts.kernel import KERNEL
from sparkwright.facts.kernel_log import KERNEL_LOG
from sparkwright.facts.memory import MEMORY
from sparkwright.facts.network import NETWORK
from sparkwright.facts.nic import NIC
from sparkwright.facts.packages import PACKAGES
from sparkwright.facts.ports import LISTENERS
from sparkwright.facts.settings import SETTINGS
from sparkwright.facts.stores import model_stores
from sparkwright.facts.times import TIMES
from sparkwright.facts.upkeep import UPKEEP
from sparkwright.ports import Clock, Host, Hosts

T = TypeVar("T")
RanksFact = Callable[[Node], Fact[tuple[RankStatus, ...]]]
Gathered = dict[str, NodeFacts | NodeError]

DOCKER_ROOT = "/var/lib/docker"
_ALWAYS: tuple[Fact[object], ...] = (
    IDENTITY,
    KERNEL,
    MEMORY,
    GPUS,
    GPU_PROCESSES,
    DRIVER,
    RDMA,
    ADDRESSES,
    DOCKER,
    LISTENERS,
    KERNEL_LOG,
    PACKAGES,
    ACTIVITY,
    TIMES,
    UPKEEP,
    BOARD,
    NIC,
    NETWORK,
    SETTINGS,
    CONTAINERS,
)


async def gather(
    hosts: Hosts, nodes: Sequence[Node], clock: Clock, ranks: RanksFact | None = None, paths: Sequence[str] = ()
) -> Gathered:
    """Facts by node name, in the order of `nodes`; the error (Unreachable) of a node that could not be asked.

    ranks: how to ask a node for our ranks, when they are wanted. paths: file systems to look at beside those of
    Node.paths and Docker's usual root; Disk.path is the path as given.
    """
    asked = {node.name: (hosts[node.name], _Questions(node, ranks, paths)) for node in nodes}
    async with asyncio.TaskGroup() as group:
        tasks = {name: group.create_task(_ask(host, clock, questions)) for name, (host, questions) in asked.items()}
    return {name: task.result() for name, task in tasks.items()}


def reached(gathered: Mapping[str, NodeFacts | NodeError]) -> dict[str, NodeFacts]:
    """The nodes that answered."""
    return {name: found for name, found in gathered.items() if isinstance(found, NodeFacts)}


def lost(gathered: Mapping[str, NodeFacts | NodeError]) -> dict[str, NodeError]:
    """The nodes that did not answer, with what is wrong."""
    return {name: found for name, found in gathered.items() if isinstance(found, NodeError)}


class _Questions:
    """The facts to ask of one node."""

    def __init__(self, node: Node, ranks: RanksFact | None, paths: Sequence[str]) -> None:
        own = node.paths
        self.node = node.name
        self.disks = disks((own.models, own.hub, own.cache, own.state, DOCKER_ROOT, *paths))
        self.stores = model_stores((own.models, own.hub))
        self.ranks = ranks(node) if ranks else None
        self.facts = (*_ALWAYS, self.disks, self.stores, *([self.ranks] if self.ranks else []))


async def _ask(host: Host, clock: Clock, questions: _Questions) -> NodeFacts | NodeError:
    began = clock.now()
    try:
        answers = await host.run_all([fact.command for fact in questions.facts])
    except NodeError as error:
        return error
    return replace(_read(questions, answers, clock.now()), asked=began)


def _read(questions: _Questions, answers: Sequence[Completed], at: float) -> NodeFacts:
    given = {id(fact): answer for fact, answer in zip(questions.facts, answers, strict=True)}

    def of(fact: Fact[T]) -> T | Unknown:
        return fact.read(given[id(fact)])

    driver = of(DRIVER)
    return NodeFacts(
        node=questions.node,
        at=at,
        identity=of(IDENTITY),
        kernel=of(KERNEL),
        memory=of(MEMORY),
        gpus=of(GPUS),
        gpu_processes=of(GPU_PROCESSES),
        driver=driver,
        gsp_firmware=driver.gsp_firmware if isinstance(driver, Driver) else driver,
        rdma=of(RDMA),
        interfaces=of(ADDRESSES),
        docker=of(DOCKER),
        disks=of(questions.disks),
        listeners=of(LISTENERS),
        ranks=of(questions.ranks) if questions.ranks else NOT_ASKED,
        kernel_log=of(KERNEL_LOG),
        packages=of(PACKAGES),
        activity=of(ACTIVITY),
        times=of(TIMES),
        upkeep=of(UPKEEP),
        board=of(BOARD),
        nic=of(NIC),
        network=of(NETWORK),
        settings=of(SETTINGS),
        containers=of(CONTAINERS),
        stores=of(questions.stores),
    )
