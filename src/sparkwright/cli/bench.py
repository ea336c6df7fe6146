"""`sparkwright bench`: how fast an endpoint is, with all that must be known to believe it."""

import asyncio
import contextlib
import importlib
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

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
from sparkwright.cli.columns import echo_text
from sparkwright.cli.gate_file import gates_of
from sparkwright.cli.kinds import Whole, checked_url, renamed_option, time_option
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Run
from sparkwright.domain.values import dataclass, replace
from sparkwright.domain.workload import Workload
from sparkwright.loadgen import profiles
from sparkwright.loadgen.recorded import with_counts
from sparkwright.wiring import bench as tools
from sparkwright.wiring import keys_to_try, places, plan_history

_QUICK = "quick"
_Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """The command line of `bench`. None: the workload's own. seconds: of --time. dry: of --dry-run."""

    targets: _Names
    where: ClusterOptions
    as_json: bool
    profile: str
    listing: bool
    model: str
    key_file: Path | None
    gateway: bool
    tokenizer: Path | None
    repeats: int | None
    seed: int | None
    seconds: float | None
    resume: str
    dry: bool
    gate: Path | None
    baseline: str
    tags: _Names
    note: str
    allow_simulated: bool


class EndpointOptions(Protocol):
    """The options that `bench`, `soak` and `eval` share."""

    @property
    def model(self) -> str: ...

    @property
    def key_file(self) -> Path | None: ...

    @property
    def gateway(self) -> bool: ...

    @property
    def tags(self) -> _Names: ...

    @property
    def note(self) -> str: ...


def request_of(options: EndpointOptions, workload: Workload, resume: Run | None = None) -> BenchRequest:
    """The request with the texts of all files that the workload replays. resume: it keeps that run's model and gateway.

    Raises UsageError for a key file without a key.
    """
    files = texts_of(replayed_paths(workload), places())
    request = BenchRequest(
        with_counts(workload, files),
        resume,
        options.tags,
        options.note,
        files,
        model=options.model,
        keys=keys_to_try(options.key_file),
        key_given=options.key_file is not None,
        gateway="" if options.gateway else None,
    )
    if resume is None:
        return request
    known = resume.conditions
    model = request.model if known.ours else request.model or known.model
    return replace(request, model=model, gateway=known.front_door or request.gateway)


def target_of(run: Run) -> str:
    """The deployment or the URL that a stored run measured."""
    return run.conditions.deployment or run.conditions.endpoint


def _clustered() -> ModuleType:
    """Loaded when it is needed: nine of ten runs are of a URL, and start in half the time without it."""
    return importlib.import_module("sparkwright.cli.bench_cluster")


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
@renamed_option(
    "--gateway", was="--front-door", is_flag=True, help="Measure a deployment through its gateway, with TLS and keys."
)
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
def bench(**given: Any) -> None:
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
    options = BenchOptions(**given)
    if options.listing:
        found = [(name, open_workload(name, places())) for name in profiles.profile_names()]
        width = max(len(name) for name, _ in found)
        text = "\n".join(f"{name:<{width}}  {workload.title}" for name, workload in found)
        listed = [{"name": name, "version": one.version, "title": one.title} for name, one in found]
        shared.answer(options.as_json, {"workloads": listed}, text)
        return
    gates = gates_of(options.gate, options.baseline)
    if options.dry:
        plans = asyncio.run(_planned(options))
        if options.as_json:
            shared.print_json(plans[0] if len(plans) == 1 else {"plans": plans})
        return
    baseline, measured = asyncio.run(_all(options))
    end = importlib.import_module("sparkwright.cli.bench_text")  # with numpy, which measuring has no use for
    shared.answer(options.as_json, *end.bench_outcome(measured, gates, baseline, options.allow_simulated))


async def _all(options: BenchOptions) -> tuple[Run | None, tuple[Run, ...]]:
    """The baseline, as it was named before anything was measured, and the runs."""
    shared.end_like_ctrl_c()
    async with tools(options.tokenizer) as made:
        baseline = await loaded(made.runs, options.baseline) if options.baseline else None
        targets, request = await _asked(made, options)
        for named in targets if len(targets) > 1 else ():
            async with endpoint(made, named, options.where, request):
                pass  # one that does not answer is told before the others are measured
        return baseline, tuple([await _one(made, named, options, request) for named in targets])


async def _planned(options: BenchOptions) -> list[dict[str, Any]]:
    """The plans of a dry run, one for each endpoint."""
    shared.end_like_ctrl_c()
    plans = []
    async with tools(options.tokenizer) as made:
        targets, request = await _asked(made, options)
        for named in targets:
            async with endpoint(made, named, options.where, request) as ready:
                plans.append(plan_json(ready))
                if not options.as_json:
                    echo_text(_opening(ready))
    return plans


async def _asked(made: Bench, options: BenchOptions) -> tuple[_Names, BenchRequest]:
    """The targets, and what is asked of each: the resumed run's workload, or the profile's with the options applied."""
    targets, name = options.targets, options.resume
    if not name:
        if not targets:
            raise UsageError("missing argument URL or DEPLOYMENT", "sparkwright bench http://127.0.0.1:8000")
        if options.gateway and any(map(is_endpoint_url, targets)):
            raise UsageError("--gateway needs a deployment's name: a URL is measured as it is")
        opened = open_workload(options.profile or _QUICK, places())
        return targets, request_of(options, adjusted(opened, options.repeats, options.seed, options.seconds))
    if len(targets) > 1 or options.profile or options.repeats or options.seed is not None:
        raise UsageError(
            "--resume takes no other targets, --workload, --repeats or --seed", f"sparkwright bench --resume {name}"
        )
    run = resumed(await taken_up(made.runs, name))
    request = request_of(options, adjusted(run.workload, None, None, options.seconds), run)
    return targets or (target_of(run),), request


async def _one(made: Bench, named: str, options: BenchOptions, request: BenchRequest) -> Run:
    quiet = options.as_json
    async with endpoint(made, named, options.where, request) as ready:
        if not quiet:
            echo_text(_opening(ready), err=True)
        with bench_screen(ready.levels, ready.workload.repeats, quiet, ready.conditions.simulated) as screen:
            run = await run_benchmark(ready, screen)
    if (found := compare_with_plan(FilePlanHistory(plan_history()), run)) and not quiet:
        told = f"{found.predicted:.1f} tokens/s ({found.low:.1f} to {found.high:.1f})"
        echo_text(f"one user: {found.measured:.1f} tokens/s; the plan promised {told}: plan --history", err=True)
    return run


def _opening(ready: PreparedBench) -> str:
    text = f"{found_text(ready)}\n\n{plan_text(ready)}\n"
    if ready.unfinished:
        text += f"  an unfinished run can be resumed: sparkwright bench --resume {ready.unfinished}\n"
    return text


@contextlib.asynccontextmanager
async def endpoint(
    made: Bench, named: str, where: ClusterOptions, request: BenchRequest
) -> AsyncIterator[PreparedBench]:
    """Yields the endpoint ready to be measured. Its bench trusts the cluster's certificates for a gateway of ours."""
    if named.startswith(("http://", "https://")):
        checked_url(named)
    if "://" in named and not is_endpoint_url(named):
        message = f"{named}: only http and https are measured, as in http://HOST:PORT"
        raise UsageError(message, "sparkwright bench http://127.0.0.1:8000")
    ours = "" if is_endpoint_url(named) else named
    if not ours:
        request = replace(request, gateway=named)
    if not ours and named.startswith("https:"):
        ours = await _clustered().behind(named, where, True)
    if not ours:
        try:
            async with url_target(made, BenchTarget(named, request.model), request) as ready:
                yield ready
                return
        except KeyWanted:
            ours = "" if request.key_given else await _clustered().behind(named, where, False)
            if not ours:
                raise
    async with _clustered().deployment(made, where, ours, request) as found:
        yield found
