"""`bench`: one endpoint asked what it is, told what will be done, measured, and its run kept."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

from sparkwright.app.bench.conditions import conditions
from sparkwright.app.bench.measure import measure, resumed, run_of, same_server
from sparkwright.app.bench.outline import Outline, outline
from sparkwright.app.bench.probe import probe
from sparkwright.app.bench.target import Target
from sparkwright.app.bench.texts import Given, prepare
from sparkwright.app.bench.tools import Bench, Order, Ours, Screen, no_memory
from sparkwright.domain.errors import UsageError
from sparkwright.domain.probed import Probed
from sparkwright.domain.run import Conditions, Run
from sparkwright.domain.workload import Workload
from sparkwright.ports import Tokenizer


@dataclass(frozen=True, slots=True)
class Wish:
    """What to measure with. resume: the run to go on with. memory: of the nodes, where they are ours.

    files: path -> text of what the workload replays.
    """

    workload: Workload
    resume: Run | None = None
    tags: tuple[str, ...] = ()
    note: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    memory: Callable[[], Awaitable[Mapping[str, int]]] = no_memory


@dataclass(frozen=True, slots=True)
class Ready:
    """An endpoint that answered, and what would be done with it. unfinished: a run like it that can be gone on with."""

    order: Order
    outline: Outline
    tokenizer: Tokenizer
    conditions: Conditions
    unfinished: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


async def ready(bench: Bench, target: Target, ours: Ours | None, wish: Wish) -> Ready:
    """Raises NotReady, UsageError."""
    probed = await probe(bench.asker, bench.clock, target)
    planned = outline(wish.workload, probed)
    _judgeable(wish.workload, probed)
    levels = tuple(level.plan for level in planned.levels)
    target = replace(target, model=probed.model)
    order = Order(target, probed, wish.workload, levels, ours, wish.memory, wish.tags, wish.note)
    tokenizer = await bench.tokenizer(bench.asker, target.engine, probed)
    known = conditions(bench, order, tokenizer.name)
    earlier = "" if wish.resume else await bench.runs.unfinished(wish.workload, known.endpoint) or ""
    return Ready(order, planned, tokenizer, known, earlier, wish.files)


def _judgeable(workload: Workload, probed: Probed) -> None:
    if workload.search and workload.slo and workload.slo.tpot and not probed.usage:
        raise UsageError(
            f"profile {workload.name}: a limit on TPOT cannot be searched for: the server's streams have no `usage`",
            "a workload of your own with limits on ttft and end_to_end only",
        )


async def go(bench: Bench, ready: Ready, screen: Screen, resume: Run | None = None) -> Run:
    """The run as it was kept. Raises NotReady when the server is gone for good, UsageError for another server."""
    order = ready.order
    if resume:
        same_server(resume, ready.conditions)
    run = resumed(resume) if resume else await run_of(bench, order, ready.conditions)
    given = Given(f"{run.id}/{bench.machine.nonce}", ready.files)
    fitting = replace(order.workload, levels=order.levels)
    texts = await prepare(fitting, order.probed, ready.tokenizer, screen.say, given)
    await (bench.runs.end(run.id, "running", 0.0) if resume else bench.runs.begin(run))
    screen.say(f"{'going on with' if resume else 'kept as'} {run.id}")
    return await measure(bench, order, screen, run, texts)
