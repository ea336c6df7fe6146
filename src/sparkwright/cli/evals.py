"""`sparkwright eval`: are the answers right? Probes of the protocol, instructions, and one setting against another."""

import asyncio
import contextlib
import re
import shlex
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from sparkwright.adapters.run_files.formats import of_content
from sparkwright.adapters.tool_eval import program, running
from sparkwright.app.bench import evaluate as use
from sparkwright.app.bench import tool_eval as tool_use
from sparkwright.app.bench.benchmark import is_endpoint_url
from sparkwright.app.bench.runs import loaded
from sparkwright.app.bench.target import PreparedBench
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.cli import complete
from sparkwright.cli import options as shared
from sparkwright.cli.bench import endpoint, request_of
from sparkwright.cli.bench_screen import found_text
from sparkwright.cli.columns import aligned, echo_text
from sparkwright.cli.engine_files import described
from sparkwright.cli.eval_text import SCHEMA, EvalLines, document, eval_text, exit_code
from sparkwright.cli.kinds import Whole, renamed_option, time_option
from sparkwright.domain.errors import UsageError
from sparkwright.domain.evaluation import Evaluation
from sparkwright.domain.run import Run
from sparkwright.domain.values import dataclass, fields, replace
from sparkwright.domain.workload import Workload
from sparkwright.evals import catalog
from sparkwright.evals import instructions as made_of
from sparkwright.evals import same as compare
from sparkwright.wiring import bench as tools
from sparkwright.wiring import run_store

F = TypeVar("F", bound=Callable[..., Any])
_SCENARIO = re.compile(r"TC-\d{1,3}", re.ASCII)
_ADDRESS = "sparkwright eval probes http://127.0.0.1:8000"


@click.group(name="eval")
def evals() -> None:
    """Check the answers of an endpoint: protocol and instructions.

    Everything that is asked is generated from a seed; results are stored with the benchmark runs.

    \b
    Examples:
      sparkwright eval probes http://127.0.0.1:8000
      sparkwright eval instructions deepseek-v4-flash
      sparkwright eval same r-20261122-7f3a http://127.0.0.1:8000
    """


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """The command line of every evaluation. seconds: of --time. dry: of --dry-run."""

    target: str
    where: ClusterOptions
    as_json: bool
    base_url: str
    model: str
    key_file: Path | None
    gateway: bool
    seed: int
    seconds: float
    tags: tuple[str, ...]
    note: str
    dry: bool


def target_options(function: F) -> F:
    """The options of every evaluation; the function gets them as `options`."""

    @wraps(function)
    def packed(**given: Any) -> Any:
        common = {field.name: given.pop(field.name) for field in fields(EvalOptions)}
        return function(options=EvalOptions(**common), **given)

    given = (
        click.option("--base-url", default="", hidden=True),
        click.option("--model", default="", metavar="NAME", help="Model to ask, where the server has several."),
        click.option(
            "--key-file",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="File with the API key. [default: $SPARKWRIGHT_API_KEY]",
        ),
        click.option("--gateway", is_flag=True, help="Ask a deployment through its gateway, with TLS and keys."),
        click.option("--seed", type=Whole(), default=1, help="Seed of everything that is asked. [default: 1]"),
        time_option("End after this time, such as 90s or 5m. [default: 30m]", 5.0, 1800.0, seconds=1.0),
        click.option("--tag", "tags", multiple=True, metavar="TAG", help="Tag the run; may be repeated."),
        click.option("--note", default="", metavar="TEXT", help="Store a note with the run."),
        click.option("--dry-run", "dry", is_flag=True, help="Print what would be asked and exit; ask nothing."),
        shared.cluster_options,
        shared.json_option,
    )
    made: Any = packed
    for option in reversed(given):
        made = option(made)
    return made  # type: ignore[no-any-return]


def _named(options: EvalOptions) -> str:
    if bool(options.target) == bool(options.base_url):
        raise UsageError("expected one URL or DEPLOYMENT", _ADDRESS)
    return options.target or options.base_url


@contextlib.asynccontextmanager
async def _opened(named: str, options: EvalOptions, workload: Workload) -> AsyncIterator[PreparedBench]:
    shared.end_like_ctrl_c()
    request = request_of(options, replace(workload, deadline=options.seconds))
    async with tools(None) as made, endpoint(made, named, options.where, request) as ready:
        if not options.as_json:
            echo_text(f"{found_text(ready)}\n", err=True)
        yield ready


def _answer(run: Run, as_json: bool) -> None:
    shared.answer(as_json, {"schema": SCHEMA, "run": document(run)}, eval_text(run), exit_code(run))


@evals.command()
@click.argument("target", default="", metavar="[URL | DEPLOYMENT]", shell_complete=complete.targets)
@renamed_option(
    "--probe",
    "only",
    was="--only",
    multiple=True,
    metavar="NAME",
    shell_complete=complete.probes,
    help="Ask only this probe and what it needs; may be repeated.",
)
@click.option("--quick", is_flag=True, help="Only the probes that take seconds.")
@click.option("--longest", type=Whole(600), default=16_000, metavar="TOKENS", help="Longest prompt. [default: 16000]")
@target_options
def probes(options: EvalOptions, only: tuple[str, ...], quick: bool, longest: int) -> None:
    """Probe tools, streams, reasoning, formats and context.

    Each probe that fails names what breaks, what that usually means and how to go on, with the exchange that shows it.
    What the server refuses counts as unsupported, what cannot be judged as skipped; neither is a pass.

    Exit status: 0 nothing failed, 1 a probe failed or the time was up, 2 usage error, 5 no answer.

    \b
    Examples:
      sparkwright eval probes http://127.0.0.1:8000
      sparkwright eval probes deepseek-v4-flash --longest 128000
      sparkwright eval probes http://127.0.0.1:8000 --probe tool-stream --probe logprobs --json
    """
    entries = catalog.chosen([name for given in only for name in given.split(",")], quick)
    if options.dry:
        listed = {entry.name: entry.checks for entry in entries}
        shared.answer(options.as_json, {"schema": SCHEMA, "probes": listed}, aligned(list(listed.items())))
        return
    named, work = _named(options), use.workload("probes", options.seed, "Probes of the protocol")

    async def run() -> Run:
        async with _opened(named, options, work) as ready:
            watch = EvalLines(options.as_json)
            outcomes = use.probe_all(ready, entries, longest, watch)
            plan = use.EvaluationPlan("probes", tuple(entry.name for entry in entries))
            return await use.evaluate(ready, plan, outcomes, watch)

    _answer(asyncio.run(run()), options.as_json)


@evals.command()
@click.argument("target", default="", metavar="[URL | DEPLOYMENT]", shell_complete=complete.targets)
@click.option("--prompts", "count", type=Whole(1, 5000), metavar="N", default=108, help="Prompts. [default: 108]")
@target_options
def instructions(options: EvalOptions, count: int) -> None:
    """Score verifiable instructions, with intervals.

    27 kinds (lengths, formats, keywords, language, JSON, repetition), generated and checked here. Strict takes the
    answer as it is; loose also without its first or last line and without emphasis. Intervals are 95 %. This is not
    IFEval: scores are not comparable with its.

    Exit status: 0 scored, 2 usage error, 5 prompts stayed without an answer.

    \b
    Examples:
      sparkwright eval instructions http://127.0.0.1:8000
      sparkwright eval instructions deepseek-v4-flash --prompts 540 --tag nvfp4
    """
    if options.dry:
        listed = [prompt.text for prompt in made_of.prompts(options.seed, count)]
        shared.answer(options.as_json, {"schema": SCHEMA, "prompts": listed}, "\n".join(listed))
        return
    named, work = _named(options), use.workload("instructions", options.seed, "Verifiable instructions")

    async def run() -> Run:
        async with _opened(named, options, work) as ready:
            return await use.instruct(ready, count, EvalLines(options.as_json))

    _answer(asyncio.run(run()), options.as_json)


@evals.command(name="tool-eval-bench")
@click.argument("target", default="", metavar="[URL | DEPLOYMENT]", shell_complete=complete.targets)
@click.option("--short", is_flag=True, help="Only its 15 core scenarios.")
@renamed_option(
    "--scenario", "only", was="--only", multiple=True, metavar="TC-NN", help="Run only this one; may be repeated."
)
@click.option("--parallel", type=Whole(1, 64), default=1, help="Scenarios at once. [default: 1]")
@click.option("--no-think", is_flag=True, help="Turn reasoning off.")
@target_options
def tool_eval_bench(options: EvalOptions, short: bool, only: tuple[str, ...], parallel: int, no_think: bool) -> None:
    """Run the scenarios of tool-eval-bench, and store its scores.

    Another project's 69 agentic tool-call scenarios (https://github.com/SeraphimSerapis/tool-eval-bench), run by its
    own program: uv pip install '.[evals]' in the checkout. Scores are of points; intervals are 95 %, of the scenarios.

    Exit status: 0 scored, 2 usage error or not installed, 5 no answer, or not all was run in time.

    \b
    Examples:
      sparkwright eval tool-eval-bench http://127.0.0.1:8000
      sparkwright eval tool-eval-bench deepseek-v4-flash --short --parallel 4
    """
    which = tool_use.Scenarios(short, only, parallel, not no_think)
    program()
    if odd := [name for name in which.only if not _SCENARIO.fullmatch(name)]:
        raise UsageError(f"--scenario {odd[0]!r}: expected a scenario such as TC-07")
    named, work = _named(options), use.workload("tools", options.seed, "Tools")

    async def run() -> Run | tuple[str, ...]:
        async with _opened(named, options, work) as ready:
            if options.dry:
                return which.argv(ready)
            tool = tool_use.Tool(running, lambda content: of_content(content, "tool-eval-bench"))
            return await tool_use.run_scenarios(ready, tool, which, EvalLines(options.as_json))

    done = asyncio.run(run())
    if isinstance(done, tuple):
        shared.answer(options.as_json, {"schema": SCHEMA, "argv": done}, shlex.join(("tool-eval-bench", *done)))
        return
    _answer(done, options.as_json)


@evals.command(name="same")
@click.argument("target", metavar="URL | DEPLOYMENT | RUN", shell_complete=complete.targets_and_runs)
@click.argument("new", default="", metavar="[URL | DEPLOYMENT | RUN]", shell_complete=complete.targets_and_runs)
@click.option("--prompts", "count", type=Whole(2, 1000), default=48, help="Prompts. [default: 48]")
@click.option("--serial", is_flag=True, help="Compare with the same endpoint's answers without drafts.")
@click.option("--allow-simulated", is_flag=True, help="Allow comparing a simulated endpoint with a real one.")
@target_options
def compare_answers(options: EvalOptions, new: str, count: int, serial: bool, allow_simulated: bool) -> None:
    """Compare greedy answers of two endpoints or settings.

    Each endpoint is asked everything twice, so its own noise is known. Verdict: as before, within noise of itself, or
    worse (answers part sooner, or log-probabilities differ more, than they do from themselves; 1 % of equal settings
    are called worse). With one argument the answers are stored, to be compared after a change.

    --serial needs an engine that switches speculation off for one request, as TensorFold does: its drafted answers must
    be as its serial ones.

    Exit status: 0 as before or within noise, 1 worse, 2 usage error, 5 no answer.

    \b
    Examples:
      sparkwright eval same http://spark-1:8000 http://spark-2:8000
      sparkwright eval same http://127.0.0.1:8000 --tag before
      sparkwright eval same before http://127.0.0.1:8000
      sparkwright eval same glm-5.3-flash-exl3 --serial
    """
    if serial and new:
        raise UsageError("--serial asks one endpoint in both ways: expected one URL or DEPLOYMENT")
    if options.dry:
        listed = list(compare.prompts(options.seed, count))
        shared.answer(options.as_json, {"schema": SCHEMA, "prompts": listed}, "\n".join(listed))
        return
    asked = _SameAnswers(options, count, allow_simulated)
    _answer(asyncio.run(asked.drafted() if serial else asked.against(new)), options.as_json)


@dataclass(frozen=True, slots=True)
class _SameAnswers:
    """One comparison of greedy answers. count: of prompts."""

    options: EvalOptions
    count: int
    allow_simulated: bool

    async def against(self, new: str) -> Run:
        """The new answers with outcomes against the target's; the target's alone where `new` is ''."""
        first = await self._side(self.options.target, None)
        return await self._side(new, first) if new else first

    async def drafted(self) -> Run:
        """The answers with drafts, with outcomes against those without. Raises UsageError if no request can differ."""
        named = self.options.target
        async with self._opened(named) as ready:
            name = ready.conditions.engine
            known = described()[0].get(name)
            if known is None or not known.serial:
                has = "is not known" if not name else f"{name} has no member of a request that switches them off"
                raise UsageError(
                    f"{named}: answers without drafts cannot be asked for: its engine {has}",
                    "start it once without speculation and compare: sparkwright eval same URL --tag serial",
                )
            watch = EvalLines(self.options.as_json)
            base = await use.answers(ready, self.count, watch, known.serial)
            drafted = await use.answers(ready, self.count, watch)
            return await use.store_evaluation(ready, compare.compared(base, drafted))

    async def _side(self, named: str, base: Run | None) -> Run:
        """A stored run, or a new one of an endpoint; with outcomes where there is a base."""
        shared.end_like_ctrl_c()
        if stored := await _stored(named):
            if base:
                use.same_prompts(base, stored, self.allow_simulated)
            return replace(stored, evaluation=_against(base, stored.evaluation))
        async with self._opened(named) as ready:
            found = await use.answers(ready, self.count, EvalLines(self.options.as_json))
            if base:
                new = Run("the new side", 0.0, ready.workload, ready.conditions, evaluation=found)
                use.same_prompts(base, new, self.allow_simulated)
            return await use.store_evaluation(ready, _against(base, found) or found)

    def _opened(self, named: str) -> AbstractAsyncContextManager[PreparedBench]:
        return _opened(named, self.options, use.workload("same", self.options.seed, "Greedy answers, as before?"))


def _against(base: Run | None, found: Evaluation | None) -> Evaluation | None:
    return compare.compared(base.evaluation, found) if base and base.evaluation and found else found


async def _stored(named: str) -> Run | None:
    """The run of this id, beginning or tag; None for a URL, and for what may be a deployment."""
    if is_endpoint_url(named):
        return None
    store = run_store()
    try:
        return await loaded(store, named)
    except UsageError:
        return None
    finally:
        await store.aclose()
