"""`sparkwright soak`: does it still serve well after hours?"""

import asyncio
import importlib
from pathlib import Path
from typing import Any

import click

from sparkwright import __version__
from sparkwright.adapters.files import open_workload
from sparkwright.app.bench.benchmark import adjusted
from sparkwright.app.bench.runs import taken_up
from sparkwright.app.bench.target import Bench, BenchRequest
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.cli import complete
from sparkwright.cli import options as shared
from sparkwright.cli.bench import endpoint, request_of, target_of
from sparkwright.cli.bench_screen import found_text
from sparkwright.cli.columns import echo_text
from sparkwright.cli.gate_file import read_gates
from sparkwright.cli.kinds import renamed_option, time_option
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Lag, Row, Run
from sparkwright.domain.units import duration, gib, parse_size
from sparkwright.domain.values import asdict, dataclass, replace
from sparkwright.domain.workload import LevelPlan, Soak, Workload
from sparkwright.wiring import bench as tools
from sparkwright.wiring import places

SCHEMA = 1
_PROFILE = "soak"


def _floor(_: click.Context, __: click.Parameter, value: str) -> int | None:
    try:
        return parse_size(value) if value else None
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@dataclass(frozen=True, slots=True)
class SoakOptions:
    """The command line of `soak`. None: the workload's own. seconds: of --time. out: of --report. dry: of --dry-run."""

    target: str
    where: ClusterOptions
    as_json: bool
    profile: str
    seconds: float | None
    floor: int | None
    resume: str
    model: str
    key_file: Path | None
    gateway: bool
    gate: Path | None
    out: str
    tags: tuple[str, ...]
    note: str
    dry: bool


@click.command()
@click.argument("target", default="", metavar="[DEPLOYMENT | URL]", shell_complete=complete.targets)
@time_option("Time under load, such as 12h. [default: the workload's]", 0.0, hours=3600.0, minutes=60.0)
@renamed_option(
    "--workload",
    "profile",
    was="--profile",
    default="",
    metavar="NAME|FILE",
    shell_complete=complete.workloads,
    help="Shipped workload or YAML file. [default: soak]",
)
@click.option(
    "--floor", default="", callback=_floor, metavar="SIZE", help="Stop at this much memory left. [default: 2g]"
)
@click.option(
    "--resume", default="", metavar="RUN", shell_complete=complete.runs, help="Resume a soak for the time that is left."
)
@click.option("--model", default="", metavar="NAME", help="Model to ask, where the server has several.")
@click.option(
    "--key-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="File with the API key. [default: $SPARKWRIGHT_API_KEY]",
)
@click.option("--gateway", is_flag=True, help="Ask a deployment through its gateway, with TLS and keys.")
@click.option("--gate", type=click.Path(path_type=Path), metavar="FILE", help="Exit 1 if a threshold is not met.")
@renamed_option(
    "--report", "out", was=("-o", "--out"), default="", metavar="FILE", help="Write the page here. [default: RUN.html]"
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Tag the run; may be repeated.")
@click.option("--note", default="", metavar="TEXT", help="Store a note with the run.")
@click.option("--dry-run", "dry", is_flag=True, help="Print the rounds and exit; ask nothing.")
@shared.cluster_options
@shared.json_option
def soak(**given: Any) -> None:
    """Load an endpoint for hours and find leaks, drift and faults.

    Rounds of mixed load (users, agents, long prompts, bursts, idle spells, clients that leave), with quality probes in
    between. Found are: memory that shrinks steadily (an hour, a request, time left), latency that changes at a time,
    failed requests, restarts, incidents, wrong answers. It stops when memory meets the floor. Every request is stored;
    a soak that ended early, even by SIGKILL, can be resumed. It ends with a page.

    Exit status: 0 nothing found, 1 something found, stopped early or a threshold not met, 2 usage error, 5 no answer.

    \b
    Examples:
      sparkwright soak deepseek-v4-flash --time 12h
      sparkwright soak http://127.0.0.1:8000 --time 30m --gate gates.txt
      sparkwright soak --resume r-20261122-7f3a
    """
    options = SoakOptions(**given)
    gates = read_gates(options.gate) if options.gate else ()
    if options.dry:
        work = _workload(options)
        shared.answer(options.as_json, {"schema": SCHEMA, "workload": asdict(work)}, _rounds(work))
        return
    shared.writable(options.out)
    run = asyncio.run(_soaked(options))
    end = importlib.import_module("sparkwright.cli.soak_text")  # with numpy, which loading has no use for
    page = _page(run, options.out)
    done = end.soak_result(run, gates)
    document = {"schema": SCHEMA, **end.document(done), "page": str(page)}
    shared.answer(options.as_json, document, f"{end.soak_text(done)}\n\nwrote {page}", end.exit_code(done))


def _workload(options: SoakOptions) -> Workload:
    work = adjusted(open_workload(options.profile or _PROFILE, places()), 1, None, options.seconds)
    terms = work.soak or Soak()
    return replace(work, soak=terms if options.floor is None else replace(terms, floor=options.floor))


def _rounds(work: Workload) -> str:
    terms = work.soak or Soak()
    lines = [f"{work.name}@{work.version}: {work.title}, {duration(work.deadline)}, rounds of"]
    for plan in work.levels:
        rest = f", then {duration(plan.rest)} idle" if plan.rest else ""
        lines.append(f"  {plan.name}: up to {plan.requests} requests in {duration(plan.seconds)}{rest}")
    probes = f"probes every {duration(terms.probe_every)}" if terms.probe_every else "no probes"
    leaves = f"a client that leaves every {duration(terms.leave_every)}" if terms.leave_every else "no client leaves"
    lines.append(f"  {probes}, {leaves}")
    return "\n".join([*lines, f"  stops at {gib(terms.floor)} available on a node"])


async def _soaked(options: SoakOptions) -> Run:
    from sparkwright.app.bench.soak import soak as run_soak

    shared.end_like_ctrl_c()
    async with tools(None) as made:
        named, request = await _asked(made, options)
        async with endpoint(made, named, options.where, request) as ready:
            if not options.as_json:
                echo_text(f"{found_text(ready)}\n{_rounds(ready.workload)}\n", err=True)
            return await run_soak(ready, SoakLines(options.as_json))


async def _asked(made: Bench, options: SoakOptions) -> tuple[str, BenchRequest]:
    """The endpoint, and what is asked of it: the resumed run's workload, or the profile's with the options applied."""
    from sparkwright.app.bench.soak import resumable

    target = options.target
    if not options.resume:
        if not target:
            raise UsageError("missing argument DEPLOYMENT or URL", "sparkwright soak http://127.0.0.1:8000 --time 8h")
        return target, request_of(options, _workload(options))
    if options.profile or options.seconds or options.floor is not None:
        raise UsageError("--resume takes no --workload, --time or --floor: the run has its own")
    run = resumable(await taken_up(made.runs, options.resume))
    return target or target_of(run), request_of(options, run.workload, run)


def _page(run: Run, out: str) -> Path:
    from sparkwright.app.bench.report import ReportForm, evaluated

    path = Path(out or f"{run.id}.html").expanduser()
    try:
        path.write_text(evaluated((run,), ReportForm.HTML, f"sparkwright {__version__}"), encoding="utf-8")
    except OSError as error:
        hint = f"sparkwright report {run.id} -o FILE writes it elsewhere"
        raise UsageError(f"{path}: cannot be written: {error.strerror}", hint) from None
    return path


@dataclass(frozen=True, slots=True)
class SoakLines:
    """Implements Screen: a line when a level has ended, and what happens."""

    quiet: bool

    def level(self, plan: LevelPlan, repeat: int, of: int) -> None: ...

    def row(self, row: Row) -> None: ...

    def lag(self, lag: Lag) -> None: ...

    def note(self, text: str) -> None:
        if not self.quiet:
            echo_text(text, err=True)

    def done(self) -> None: ...
