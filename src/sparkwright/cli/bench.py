"""`sparkwright bench`: how fast an endpoint is, with all that must be known to believe it."""

import asyncio
import contextlib
import importlib
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import click

from sparkwright.adapters.files import open_workload, texts_of
from sparkwright.adapters.plan_history import FilePlanHistory
from sparkwright.app.bench.benchmark import adjusted, is_endpoint_url, run_benchmark, url_target
from sparkwright.app.bench.measure import resumed
from sparkwright.app.bench.prediction import compare_with_plan
from sparkwright.app.bench.prompt_corpus import replayed_paths
from sparkwright.app.bench.runs import loaded, taken_up
from sparkwright.app.bench.target import Bench, BenchRequest, BenchTarget, KeyWanted, PreparedBench
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.cli import complete
from sparkwright.cli import options as shared
from sparkwright.cli.bench_screen import bench_screen, found_text, plan_json, plan_text
from sparkwright.cli.columns import echo
from sparkwright.cli.gate_file import gates_of
from sparkwright.cli.kinds import Whole, checked_url, renamed_option, time_option
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Run
from sparkwright.domain.values import dataclass, replace
from sparkwright.domain.workload import Workload
from sparkwright.loadgen import profiles
from sparkwright.loadgen.recorded import with_counts
from sparkwright.wiring import bench as tools
from sparkwright.wiring import keys, places, plan_history

_QUICK = "quick"
_Names = tuple[str, ...]
_Prepared = AbstractAsyncContextManager[tuple[Bench, PreparedBench]]


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """The command line. keys: to be tried in this order. gateway: to measure through, as `_ours` has it."""

    where: ClusterOptions
    model: str
    keys: tuple[Secret | None, ...]
    key_given: bool
    request: BenchRequest
    gateway: str | None
    quiet: bool


def _clustered() -> ModuleType:
    """Loaded when it is needed: nine of ten runs are of a URL, and start in half the time without it."""
    return importlib.import_module("sparkwright.cli.bench_cluster")


def _list_workloads(as_json: bool) -> None:
    found = [(name, open_workload(name, places())) for name in profiles.profile_names()]
    width = max(len(name) for name, _ in found)
    text = "\n".join(f"{name:<{width}}  {workload.title}" for name, workload in found)
    listed = [{"name": name, "version": one.version, "title": one.title} for name, one in found]
    shared.answer(as_json, {"workloads": listed}, text)


@click.command()
@click.argument("targets", nargs=-1, metavar="[URL | DEPLOYMENT]...", shell_complete=complete.targets)
@renamed_option(
    "--workload",
    "profile",
    was="--profile",
    default="",
    metavar="NAME|FILE",
    shell_complete=complete.workloads,
    help="Shipped workload or YAML file. [default: quick]",
)
@renamed_option("--workloads", "listing", was="--profiles", is_flag=True, help="List shipped workloads and exit.")
@click.option("--model", default="", metavar="NAME", help="Model to measure, where the server has several.")
@click.option(
    "--key-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="File with the API key. [default: $SPARKWRIGHT_API_KEY]",
)
@click.option("--gateway", is_flag=True, help="Measure a deployment through its gateway, with TLS and keys.")
@click.option("--front-door", is_flag=True, hidden=True)
@click.option(
    "--tokenizer",
    metavar="FILE|FOLDER",
    type=click.Path(path_type=Path, exists=True),
    help="Count tokens with this tokenizer.json or its folder.",
)
@click.option("--repeats", type=Whole(1, 100), default=None, help="Number of repeats. [default: the profile's]")
@click.option("--seed", type=Whole(), default=None, help="Seed of lengths and send times. [default: the profile's]")
@time_option("End the run after this time, such as 90s or 5m.", 10.0, seconds=1.0)
@click.option("--resume", default="", metavar="RUN", shell_complete=complete.runs, help="Resume an interrupted run.")
@click.option("--dry-run", "dry", is_flag=True, help="Probe the server, print the benchmark plan and exit.")
@click.option(
    "--gate", type=click.Path(path_type=Path), metavar="FILE", help="Exit 1 if a threshold in FILE is not met."
)
@click.option(
    "--baseline",
    default="",
    metavar="RUN",
    shell_complete=complete.runs,
    help="Run that `x baseline` in the gate file refers to.",
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Tag the run; may be repeated.")
@click.option("--note", default="", metavar="TEXT", help="Store a note with the run.")
@click.option("--allow-simulated", is_flag=True, help="Allow comparing a simulated endpoint with a real one.")
@shared.cluster_options
@shared.json_option
def bench(targets: tuple[str, ...], where: ClusterOptions, as_json: bool, **how: Any) -> None:
    """Benchmark any OpenAI-compatible endpoint, or a deployment of the cluster by its name.

    Several endpoints are measured one after the other under the same workload and compared with the first. Every
    request is stored on this machine; an interrupted run can be continued with --resume.

    Exit status: 0 measured, 1 the run is not valid or a threshold is not met, 2 usage error, unknown model or invalid
    key, or results cannot be stored, 4 another process is measuring this run, 5 no answer.

    \b
    Examples:
      sparkwright bench http://127.0.0.1:8000
      sparkwright bench deepseek-v4-flash --workload agentic
      sparkwright bench http://spark-1:8000 http://spark-2:8001 --workload agentic-quick
      sparkwright bench http://127.0.0.1:8000 --workload sweep --gate gates.txt --baseline v0.21
    """
    if how["listing"]:
        _list_workloads(as_json)
        return
    gates = gates_of(how["gate"], how["baseline"])
    said = BenchOptions(
        where,
        how["model"],
        keys(how["key_file"]),
        how["key_file"] is not None,
        BenchRequest(Workload("", "", ()), tags=how["tags"], note=how["note"]),
        "" if how["gateway"] or how["front_door"] else None,
        as_json,
    )
    if how["dry"]:
        plans = asyncio.run(_planned(targets, said, how))
        if as_json:
            shared.print_json(plans[0] if len(plans) == 1 else {"plans": plans})
        return
    baseline, measured = asyncio.run(_all(targets, said, how))
    end = importlib.import_module("sparkwright.cli.bench_text")  # with numpy, which measuring has no use for
    done = end.BenchResult(measured, gates, how["allow_simulated"], baseline)
    shared.answer(as_json, end.done_json(done), end.done_text(done), end.exit_code(done))


async def _all(targets: _Names, said: BenchOptions, how: dict[str, Any]) -> tuple[Run | None, tuple[Run, ...]]:
    """The baseline, as it was named before anything was measured, and the runs."""
    shared.end_like_ctrl_c()
    async with tools(how["tokenizer"]) as made:
        baseline = await loaded(made.runs, how["baseline"]) if how["baseline"] else None
        targets, said = await _wanted(made, targets, said, how)
        for named in targets if len(targets) > 1 else ():
            async with endpoint(made, named, said):
                pass  # one that does not answer is told before the others are measured
        return baseline, tuple([await _one(made, named, said) for named in targets])


async def _planned(targets: _Names, said: BenchOptions, how: dict[str, Any]) -> list[dict[str, Any]]:
    """The plans of a dry run, one for each endpoint."""
    shared.end_like_ctrl_c()
    plans = []
    async with tools(how["tokenizer"]) as made:
        targets, said = await _wanted(made, targets, said, how)
        for named in targets:
            async with endpoint(made, named, said) as (_, ready):
                plans.append(plan_json(ready))
                if not said.quiet:
                    echo(_opening(ready))
    return plans


async def _wanted(made: Bench, targets: _Names, said: BenchOptions, how: dict[str, Any]) -> tuple[_Names, BenchOptions]:
    """The targets and the workload: that of the resumed run, or the profile's with the options applied."""
    if not how["resume"]:
        if not targets:
            raise UsageError("missing argument URL or DEPLOYMENT", "sparkwright bench http://127.0.0.1:8000")
        if said.gateway is not None and any(map(is_endpoint_url, targets)):
            raise UsageError("--gateway needs a deployment's name: a URL is measured as it is")
        opened = open_workload(how["profile"] or _QUICK, places())
        workload = adjusted(opened, how["repeats"], how["seed"], how["seconds"])
        return targets, replace(said, request=filled(said.request, workload))
    if len(targets) > 1 or how["profile"] or how["repeats"] or how["seed"] is not None:
        raise UsageError(
            "--resume takes no other targets, --workload, --repeats or --seed",
            f"sparkwright bench --resume {how['resume']}",
        )
    run = await taken_up(made.runs, how["resume"])
    resumed(run)
    workload = adjusted(run.workload, None, None, how["seconds"])
    known = run.conditions
    model = said.model if known.ours else said.model or known.model
    request = replace(filled(said.request, workload), resume=run)
    said = replace(said, model=model, gateway=known.front_door or said.gateway, request=request)
    return targets or (known.deployment or known.endpoint,), said


def filled(request: BenchRequest, workload: Workload) -> BenchRequest:
    files = texts_of(replayed_paths(workload), places())
    return replace(request, workload=with_counts(workload, files), files=files)


async def _one(made: Bench, named: str, said: BenchOptions) -> Run:
    async with endpoint(made, named, said) as (able, ready):
        if not said.quiet:
            echo(_opening(ready), err=True)
        simulated = ready.conditions.simulated
        with bench_screen(ready.levels, ready.workload.repeats, said.quiet, simulated) as screen:
            run = await run_benchmark(able, ready, screen, said.request.resume)
    if (found := compare_with_plan(FilePlanHistory(plan_history()), run)) and not said.quiet:
        told = f"{found.predicted:.1f} tokens/s ({found.low:.1f} to {found.high:.1f})"
        echo(f"one user: {found.measured:.1f} tokens/s; the plan promised {told}: plan --history", err=True)
    return run


def _opening(ready: PreparedBench) -> str:
    text = f"{found_text(ready)}\n\n{plan_text(ready)}\n"
    if ready.unfinished:
        text += f"  an unfinished run can be resumed: sparkwright bench --resume {ready.unfinished}\n"
    return text


@contextlib.asynccontextmanager
async def endpoint(made: Bench, named: str, said: BenchOptions) -> AsyncIterator[tuple[Bench, PreparedBench]]:
    """Yields the endpoint ready to be measured, and the bench that asks it: one for a gateway of ours trusts the
    cluster's certificates."""
    if named.startswith(("http://", "https://")):
        checked_url(named)
    if "://" in named and not is_endpoint_url(named):
        message = f"{named}: only http and https are measured, as in http://HOST:PORT"
        raise UsageError(message, "sparkwright bench http://127.0.0.1:8000")
    ours, gateway = ("", named) if is_endpoint_url(named) else (named, said.gateway)
    if not ours and named.startswith("https:"):
        ours = await _clustered().behind(named, said.where, True)
    if not ours:
        try:
            async with url_target(made, BenchTarget(named, said.model), said.keys, said.request) as ready:
                yield made, ready
                return
        except KeyWanted:
            ours = "" if said.key_given else await _clustered().behind(named, said.where, False)
            if not ours:
                raise
    async with _ours(made, ours, gateway, said) as found:
        yield found


def _ours(made: Bench, name: str, gateway: str | None, said: BenchOptions) -> "_Prepared":
    """gateway: the URL to go through, '' for the deployment's own; None goes to the engine."""
    named = _clustered().NamedDeployment(name, said.keys[0] if said.key_given else None, said.keys, gateway)
    return cast("_Prepared", _clustered().deployment(made, said.where, named, said.request))
