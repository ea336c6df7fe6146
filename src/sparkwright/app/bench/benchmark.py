"""One benchmark from its target to its run: what is probed, under which conditions, and the run itself."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from sparkwright.app.bench.measure import Outline, measure, outline, resumed, run_of, same_server
from sparkwright.app.bench.probe import probe
from sparkwright.app.bench.prompt_corpus import CorpusInputs, prepare
from sparkwright.app.bench.target import (
    Bench,
    BenchTarget,
    DeploymentInfo,
    KeyWanted,
    Order,
    Screen,
    no_incidents,
    no_memory,
)
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import UsageError
from sparkwright.domain.probed import Probed
from sparkwright.domain.run import Run, RunConditions
from sparkwright.domain.values import dataclass, field, replace
from sparkwright.domain.workload import Workload
from sparkwright.ports import Tokenizer


def conditions(bench: Bench, order: Order, tokenizer: str) -> RunConditions:
    """The version that the engine reports wins over the recipe's."""
    probed, ours = order.probed, order.ours
    outside = RunConditions(
        endpoint=order.target.name,
        model=probed.model,
        engine=probed.engine,
        engine_version=probed.engine_version,
        max_context=probed.context,
        tokenizer=tokenizer,
        client=bench.machine.client,
        client_host=bench.machine.host,
        seed=order.workload.seed,
        clock=bench.machine.clock,
        simulated=probed.simulated,
    )
    if ours is None:
        return outside
    head = ours.head
    place = f"gateway {ours.gateway}" if ours.gateway else f"rank 0 on {head.node}, port {head.port}"
    engine, _, version = head.engine.partition(" ")
    return replace(
        outside,
        endpoint=f"{head.deployment} ({place}{' through ssh' if ours.tunnelled else ''})",
        simulated=probed.simulated or head.simulated,
        ours=True,
        deployment=head.deployment,
        front_door=ours.gateway,
        recipe=head.recipe,
        recipe_hash=head.recipe_hash,
        image=ours.launched.image,
        engine=engine or probed.engine,
        engine_version=probed.engine_version or version,
        flags=ours.launched.argv,
        nodes=ours.nodes,
    )


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """The settings of a benchmark. resume: the run to continue. memory, incidents: of the nodes, if they are ours.

    files: path -> text of what the workload replays.
    """

    workload: Workload
    resume: Run | None = None
    tags: tuple[str, ...] = ()
    note: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    memory: Callable[[], Awaitable[Mapping[str, int]]] = no_memory
    incidents: Callable[[], Awaitable[Mapping[float, str]]] = no_incidents


@dataclass(frozen=True, slots=True)
class PreparedBench:
    """An endpoint that answered, and what would be done with it. unfinished: a run like it that can be resumed."""

    order: Order
    outline: Outline
    tokenizer: Tokenizer
    conditions: RunConditions
    unfinished: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


async def ready(bench: Bench, target: BenchTarget, ours: DeploymentInfo | None, request: BenchRequest) -> PreparedBench:
    """Raises NotReady, UsageError."""
    probed = await probe(bench.asker, bench.clock, target)
    planned = outline(request.workload, probed)
    _judgeable(request.workload, probed)
    levels = tuple(level.plan for level in planned.levels)
    target = replace(target, model=probed.model)
    order = Order(
        target, probed, request.workload, levels, ours, request.memory, request.incidents, request.tags, request.note
    )
    tokenizer = await bench.tokenizer(bench.asker, target.engine, probed)
    known = conditions(bench, order, tokenizer.name)
    earlier = "" if request.resume else await bench.runs.unfinished(request.workload, known.endpoint) or ""
    return PreparedBench(order, planned, tokenizer, known, earlier, request.files)


def _judgeable(workload: Workload, probed: Probed) -> None:
    if workload.search and workload.slo and workload.slo.tpot and not probed.usage:
        what = f"profile {workload.name}: a limit on TPOT cannot be searched for: the server's streams have no `usage`"
        raise UsageError(what, "a workload of your own with limits on ttft and end_to_end only")


async def go(bench: Bench, ready: PreparedBench, screen: Screen, resume: Run | None = None) -> Run:
    """The run as it was kept. Raises NotReady when the server is gone for good, UsageError for another server."""
    order = ready.order
    if resume:
        same_server(resume, ready.conditions)
    run = resumed(resume) if resume else await run_of(bench, order, ready.conditions)
    given = CorpusInputs(f"{run.id}/{bench.machine.nonce}", ready.files)
    fitting = replace(order.workload, levels=order.levels)
    texts = await prepare(fitting, order.probed, ready.tokenizer, screen.note, given)
    await (bench.runs.end(run.id, "running", 0.0) if resume else bench.runs.begin(run))
    screen.note(f"{'resuming' if resume else 'stored as'} {run.id}")
    return await measure(bench, order, screen, run, texts)


_URL = re.compile(r"https?://\S+|[\w.-]+:\d+(/\S*)?|\[[0-9a-fA-F:]+\]:\d+(/\S*)?|\d+(\.\d+){3}", re.ASCII)


def is_url(named: str) -> bool:
    return bool(_URL.fullmatch(named))


@asynccontextmanager
async def url_target(
    bench: Bench,
    target: BenchTarget,
    keys: Sequence[Secret | None],
    request: BenchRequest,
    ours: DeploymentInfo | None = None,
) -> AsyncIterator[PreparedBench]:
    """keys: tried in this order for as long as the server refuses them. Raises KeyWanted when all are refused."""
    refused: KeyWanted | None = None
    for key in keys:
        try:
            found = await ready(bench, replace(target, key=key), ours, request)
        except KeyWanted as error:
            refused = error
            continue
        yield found
        return
    raise refused or UsageError(f"{target.name}: no key to try")
