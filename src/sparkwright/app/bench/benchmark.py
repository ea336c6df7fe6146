"""One benchmark from its target to its run: what is probed, under which conditions, and the run itself."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sparkwright.app.bench.measure import RunningBench, create_run, measure, resumed, same_server
from sparkwright.app.bench.probe import probe_server
from sparkwright.app.bench.prompt_corpus import prepare
from sparkwright.app.bench.target import (
    Bench,
    BenchRequest,
    BenchTarget,
    DeploymentInfo,
    KeyWanted,
    PreparedBench,
    Screen,
)
from sparkwright.domain.errors import UsageError
from sparkwright.domain.probed import Probed
from sparkwright.domain.run import Run, RunConditions
from sparkwright.domain.values import replace
from sparkwright.domain.workload import LevelPlan, Workload


def conditions(bench: Bench, target: BenchTarget, probed: Probed, ours: DeploymentInfo | None) -> RunConditions:
    """The version that the engine reports wins over the recipe's. Tokenizer and seed are still empty."""
    outside = RunConditions(
        endpoint=target.name,
        model=probed.model,
        engine=probed.engine,
        engine_version=probed.engine_version,
        max_context=probed.context,
        client=bench.machine.client,
        client_host=bench.machine.host,
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


def fitting_levels(workload: Workload, probed: Probed) -> tuple[tuple[LevelPlan, ...], tuple[str, ...]]:
    """The levels that fit the server's context, and a sentence for each other one. Raises UsageError if none fits."""
    fitting = tuple(plan for plan in workload.levels if plan.fits_context(probed.context))
    left_out = tuple(
        f"{plan.name} needs {plan.most_tokens:,} tokens of context, and the server takes {probed.context:,}"
        for plan in workload.levels
        if plan not in fitting
    )
    if workload.levels and not fitting:
        hint = "choose a profile with shorter prompts, or start the engine with a larger context"
        raise UsageError(f"profile {workload.name}: no level fits {probed.model}: {'; '.join(left_out)}", hint)
    return fitting, left_out


def adjusted(workload: Workload, repeats: int | None, seed: int | None, seconds: float | None) -> Workload:
    """The workload with the command line's values; None keeps the profile's."""
    changed = replace(workload, repeats=repeats or workload.repeats, deadline=seconds or workload.deadline)
    return changed if seed is None else replace(changed, seed=seed)


async def prepare_run(
    bench: Bench, target: BenchTarget, ours: DeploymentInfo | None, request: BenchRequest
) -> PreparedBench:
    """Raises NotReady, UsageError."""
    workload, probed = request.workload, await probe_server(bench.asker, bench.clock, target)
    levels, left_out = fitting_levels(workload, probed)
    if workload.search and workload.slo and workload.slo.tpot and not probed.usage:
        what = f"profile {workload.name}: a limit on TPOT cannot be searched for: the server's streams have no `usage`"
        raise UsageError(what, "a workload of your own with limits on ttft and end_to_end only")
    target = replace(target, model=probed.model)
    tokenizer = await bench.tokenizer(bench.asker, target.engine, probed)
    known = conditions(bench, target, probed, ours)
    known = replace(known, tokenizer=tokenizer.name, seed=workload.seed)
    earlier = "" if request.resume else await bench.runs.unfinished(workload, known.endpoint) or ""
    return PreparedBench(bench, target, probed, request, levels, left_out, tokenizer, known, earlier)


async def run_benchmark(prepared: PreparedBench, screen: Screen) -> Run:
    """The run as it was kept: a new one, or that of the request, resumed.

    Raises NotReady when the server is gone for good, UsageError for another server than the resumed run had.
    """
    bench, resume = prepared.bench, prepared.request.resume
    if resume:
        same_server(resume, prepared.conditions)
    run = resumed(resume) if resume else await create_run(prepared)
    texts = await prepare(prepared, f"{run.id}/{bench.machine.nonce}", screen.note)
    await (bench.runs.end(run.id, "running", 0.0) if resume else bench.runs.begin(run))
    screen.note(f"{'resuming' if resume else 'stored as'} {run.id}")
    return await measure(RunningBench(prepared, screen, run, texts))


_URL = re.compile(r"https?://\S+|[\w.-]+:\d+(/\S*)?|\[[0-9a-fA-F:]+\]:\d+(/\S*)?|\d+(\.\d+){3}", re.ASCII)


def is_endpoint_url(named: str) -> bool:
    return bool(_URL.fullmatch(named))


@asynccontextmanager
async def url_target(
    bench: Bench, target: BenchTarget, request: BenchRequest, ours: DeploymentInfo | None = None
) -> AsyncIterator[PreparedBench]:
    """Tries the request's keys for as long as the server refuses them. Raises KeyWanted when all are refused."""
    refused: KeyWanted | None = None
    for key in request.keys:
        try:
            found = await prepare_run(bench, replace(target, key=key), ours, request)
        except KeyWanted as error:
            refused = error
            continue
        yield found
        return
    raise refused or UsageError(f"{target.name}: no key to try")
