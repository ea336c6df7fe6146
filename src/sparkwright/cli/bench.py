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
    """The request to an endpoint, and the way to it. keys: to be tried in this order.

    gateway: URL to go through, '' for the deployment's own; None goes to the engine.
    """

    where: ClusterOptions
    model: str
    keys: tuple[Secret | None, ...]
    key_given: bool
    request: BenchRequest
    gateway: str | None
    quiet: bool


def options_of(how: dict[str, Any], where: ClusterOptions, quiet: bool, request: BenchRequest) -> BenchOptions:
    """The options that `bench`, `soak` and `eval` share. how: all of them by name."""
    given = how["key_file"] is not None
    gateway = "" if how["gateway"] or how.get("front_door") else None
    return BenchOptions(where, how["model"], keys(how["key_file"]), given, request, gateway, quiet)


def request_of(how: dict[str, Any], workload: Workload, resume: Run | None = None) -> BenchRequest:
    """The request with the texts of all files that the workload replays."""
    files = texts_of(replayed_paths(workload), places())
    return BenchRequest(with_counts(workload, files), resume, how["tags"], how["note"], files)


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
    if how["dry"]:
        plans = asyncio.run(_planned(targets, where, as_json, how))
        if as_json:
            shared.print_json(plans[0] if len(plans) == 1 else {"plans": plans})
        return
    baseline, measured = asyncio.run(_all(targets, where, as_json, how))
    end = importlib.import_module("sparkwright.cli.bench_text")  # with numpy, which measuring has no use for
    done = end.BenchResult(measured, gates, how["allow_simulated"], baseline)
    shared.answer(as_json, end.done_json(done), end.done_text(done), end.exit_code(done))


async def _all(
    targets: _Names, where: ClusterOptions, quiet: bool, how: dict[str, Any]
) -> tuple[Run | None, tuple[Run, ...]]:
    """The baseline, as it was named before anything was measured, and the runs."""
    shared.end_like_ctrl_c()
    async with tools(how["tokenizer"]) as made:
        baseline = await loaded(made.runs, how["baseline"]) if how["baseline"] else None
        targets, options = await _asked(made, targets, where, quiet, how)
        for named in targets if len(targets) > 1 else ():
            async with endpoint(made, named, options):
                pass  # one that does not answer is told before the others are measured
        return baseline, tuple([await _one(made, named, options) for named in targets])


async def _planned(targets: _Names, where: ClusterOptions, quiet: bool, how: dict[str, Any]) -> list[dict[str, Any]]:
    """The plans of a dry run, one for each endpoint."""
    shared.end_like_ctrl_c()
    plans = []
    async with tools(how["tokenizer"]) as made:
        targets, options = await _asked(made, targets, where, quiet, how)
        for named in targets:
            async with endpoint(made, named, options) as (_, ready):
                plans.append(plan_json(ready))
                if not quiet:
                    echo(_opening(ready))
    return plans


async def _asked(
    made: Bench, targets: _Names, where: ClusterOptions, quiet: bool, how: dict[str, Any]
) -> tuple[_Names, BenchOptions]:
    """The targets, and what is asked of each: the resumed run's workload, or the profile's with the options applied."""
    if not how["resume"]:
        if not targets:
            raise UsageError("missing argument URL or DEPLOYMENT", "sparkwright bench http://127.0.0.1:8000")
        if (how["gateway"] or how["front_door"]) and any(map(is_endpoint_url, targets)):
            raise UsageError("--gateway needs a deployment's name: a URL is measured as it is")
        opened = open_workload(how["profile"] or _QUICK, places())
        workload = adjusted(opened, how["repeats"], how["seed"], how["seconds"])
        return targets, options_of(how, where, quiet, request_of(how, workload))
    if len(targets) > 1 or how["profile"] or how["repeats"] or how["seed"] is not None:
        raise UsageError(
            "--resume takes no other targets, --workload, --repeats or --seed",
            f"sparkwright bench --resume {how['resume']}",
        )
    run = resumed(await taken_up(made.runs, how["resume"]))
    workload = adjusted(run.workload, None, None, how["seconds"])
    options = options_of(how, where, quiet, request_of(how, workload, run))
    return targets or (target_of(run),), as_before(options, run)


def target_of(run: Run) -> str:
    """The deployment or the URL that a stored run measured."""
    return run.conditions.deployment or run.conditions.endpoint


def as_before(options: BenchOptions, run: Run) -> BenchOptions:
    """The options of a run that goes on: model and gateway are those it began with."""
    known = run.conditions
    model = options.model if known.ours else options.model or known.model
    return replace(options, model=model, gateway=known.front_door or options.gateway)


async def _one(made: Bench, named: str, options: BenchOptions) -> Run:
    async with endpoint(made, named, options) as (able, ready):
        if not options.quiet:
            echo(_opening(ready), err=True)
        simulated = ready.conditions.simulated
        with bench_screen(ready.levels, ready.workload.repeats, options.quiet, simulated) as screen:
            run = await run_benchmark(able, ready, screen, options.request.resume)
    if (found := compare_with_plan(FilePlanHistory(plan_history()), run)) and not options.quiet:
        told = f"{found.predicted:.1f} tokens/s ({found.low:.1f} to {found.high:.1f})"
        echo(f"one user: {found.measured:.1f} tokens/s; the plan promised {told}: plan --history", err=True)
    return run


def _opening(ready: PreparedBench) -> str:
    text = f"{found_text(ready)}\n\n{plan_text(ready)}\n"
    if ready.unfinished:
        text += f"  an unfinished run can be resumed: sparkwright bench --resume {ready.unfinished}\n"
    return text


@contextlib.asynccontextmanager
async def endpoint(made: Bench, named: str, options: BenchOptions) -> AsyncIterator[tuple[Bench, PreparedBench]]:
    """Yields the endpoint ready to be measured, and the bench that asks it: one for a gateway of ours trusts the
    cluster's certificates."""
    if named.startswith(("http://", "https://")):
        checked_url(named)
    if "://" in named and not is_endpoint_url(named):
        message = f"{named}: only http and https are measured, as in http://HOST:PORT"
        raise UsageError(message, "sparkwright bench http://127.0.0.1:8000")
    ours, gateway = ("", named) if is_endpoint_url(named) else (named, options.gateway)
    if not ours and named.startswith("https:"):
        ours = await _clustered().behind(named, options.where, True)
    if not ours:
        try:
            async with url_target(made, BenchTarget(named, options.model), options.keys, options.request) as ready:
                yield made, ready
                return
        except KeyWanted:
            ours = "" if options.key_given else await _clustered().behind(named, options.where, False)
            if not ours:
                raise
    async with _ours(made, ours, gateway, options) as found:
        yield found


def _ours(made: Bench, name: str, gateway: str | None, options: BenchOptions) -> "_Prepared":
    """gateway: the URL to go through, '' for the deployment's own; None goes to the engine."""
    named = _clustered().NamedDeployment(name, options.keys[0] if options.key_given else None, options.keys, gateway)
    return cast("_Prepared", _clustered().deployment(made, options.where, named, options.request))
