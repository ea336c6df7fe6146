"""`sparkwright bench`: how fast an endpoint is, with all that must be known to believe it."""

import asyncio
import contextlib
import importlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from sparkwright.app.bench import asked
from sparkwright.app.bench.benchmark import Ready, Wish, go
from sparkwright.app.bench.outline import adjusted
from sparkwright.app.bench.target import KeyWanted, Target
from sparkwright.app.bench.tools import Bench
from sparkwright.app.runs import loaded
from sparkwright.cli import options as shared
from sparkwright.cli.bench_live import bench_screen
from sparkwright.cli.bench_words import found_text, plan_json, plan_text
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Run
from sparkwright.domain.workload import Workload
from sparkwright.loadgen import profiles
from sparkwright.loadgen.gate_lines import Gate, parse
from sparkwright.loadgen.replay import with_counts
from sparkwright.wiring import Where
from sparkwright.wiring_bench import bench as tools
from sparkwright.wiring_bench import keys, open_workload, replayed

_QUICK = "quick"


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the command line says. keys: to be tried, in this order."""

    where: Where
    model: str
    keys: tuple[Secret | None, ...]
    key_given: bool
    wish: Wish
    dry: bool
    quiet: bool
    allow_simulated: bool = False


def _clustered() -> ModuleType:
    """Loaded when it is needed: nine of ten runs are of a URL, and start in half the time without it."""
    return importlib.import_module("sparkwright.cli.bench_cluster")


def _list_profiles(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        found = [(name, open_workload(name)) for name in profiles.names()]
        width = max(len(name) for name, _ in found)
        click.echo("\n".join(f"{name:<{width}}  {workload.title}" for name, workload in found))
        ctx.exit()


@click.command()
@click.argument("targets", nargs=-1, metavar="[URL | DEPLOYMENT]...")
@click.option("--profile", default="", metavar="NAME", help="A workload that ships, or a YAML file. [default: quick]")
@click.option("--profiles", is_flag=True, is_eager=True, expose_value=False, callback=_list_profiles, help="List them.")
@click.option("--model", default="", metavar="NAME", help="Where the server has several.")
@click.option("--key-file", type=click.Path(path_type=Path), help="Holds the key. [default: $SPARKWRIGHT_API_KEY]")
@click.option("--tokenizer", type=click.Path(path_type=Path, exists=True), help="A tokenizer.json, or its folder.")
@click.option("--repeats", type=click.IntRange(1, 100), default=None, help="In place of the profile's.")
@click.option("--seed", type=int, default=None, help="Of lengths and times. [default: the profile's]")
@click.option("--seconds", type=click.FloatRange(10.0), default=None, help="The run ends after that.")
@click.option("--resume", default="", metavar="RUN", help="Go on with a run that was stopped or killed.")
@click.option("--dry-run", "dry", is_flag=True, help="Ask the server what it is, say what would be done, and end.")
@click.option("--gate", type=click.Path(path_type=Path), metavar="FILE", help="Exit 1 when a line of it does not hold.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Kept with the run. Several times for several.")
@click.option("--note", default="", metavar="TEXT", help="Kept with the run.")
@click.option("--allow-simulated", is_flag=True, help="Compare a simulated endpoint with a real one.")
@shared.where_options
@shared.json_option
def bench(targets: tuple[str, ...], cluster: str, ssh_config: str, as_json: bool, **how: Any) -> None:
    """Measure any OpenAI-compatible endpoint, or a deployment of the cluster by its name.

    Several endpoints are measured one after the other under the same workload, and compared with the first. Every
    request is kept on this machine; a run that was stopped is gone on with by --resume.

    Exit 0: measured; 1: the run is not valid or a gate does not hold; 2: wrong words, model or key; 5: no answer.

    \b
    Examples:
      sparkwright bench http://127.0.0.1:8000
      sparkwright bench deepseek-v4-flash --profile agentic
      sparkwright bench http://spark-1:8000 http://spark-2:8001 --profile agentic-quick
      sparkwright bench http://127.0.0.1:8000 --profile sweep --gate gates.txt --json
    """
    gates = _gates(how["gate"])
    said = _Asked(
        Where(cluster, ssh_config),
        how["model"],
        keys(how["key_file"]),
        how["key_file"] is not None,
        Wish(Workload("", "", ()), tags=how["tags"], note=how["note"]),
        how["dry"],
        as_json,
        how["allow_simulated"],
    )
    measured = asyncio.run(_all(targets, said, how))
    if not said.dry:
        end = importlib.import_module("sparkwright.cli.bench_done")  # with numpy, which measuring has no use for
        done = end.Done(measured, gates, how["allow_simulated"])
        shared.print_json(end.done_json(done)) if as_json else click.echo(end.done_text(done))
        raise click.exceptions.Exit(end.exit_code(done))


def _gates(file: Path | None) -> tuple[Gate, ...]:
    """Read before anything is measured. Raises UsageError."""
    if file is None:
        return ()
    try:
        return tuple(parse(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise UsageError(f"--gate {file}: {error.strerror}") from None


async def _all(targets: tuple[str, ...], said: _Asked, how: dict[str, Any]) -> tuple[Run, ...]:
    shared.end_like_ctrl_c()
    async with tools(how["tokenizer"]) as made:
        targets, said = await _wanted(made, targets, said, how)
        return tuple([run for named in targets if (run := await _one(made, named, said))])


async def _wanted(
    made: Bench, targets: tuple[str, ...], said: _Asked, how: dict[str, Any]
) -> tuple[tuple[str, ...], _Asked]:
    """With the workload: of the run that is gone on with, or the profile's as the options change it."""
    if not how["resume"]:
        if not targets:
            raise UsageError("what is to be measured?", "sparkwright bench URL, or the name of a deployment")
        workload = adjusted(open_workload(how["profile"] or _QUICK), how["repeats"], how["seed"], how["seconds"])
        return targets, replace(said, wish=_filled(said.wish, workload))
    if len(targets) > 1 or how["profile"] or how["repeats"] or how["seed"] is not None:
        raise UsageError("--resume goes on with one run as it was begun", f"sparkwright bench --resume {how['resume']}")
    run = await loaded(made.runs, how["resume"])
    workload = adjusted(run.workload, None, None, how["seconds"])
    known = run.conditions
    named = targets or (known.deployment or known.endpoint,)
    said = replace(said, model=said.model or known.model if not known.ours else said.model)
    return named, replace(said, wish=replace(_filled(said.wish, workload), resume=run))


def _filled(wish: Wish, workload: Workload) -> Wish:
    files = replayed(workload)
    return replace(wish, workload=with_counts(workload, files), files=files)


async def _one(made: Bench, named: str, said: _Asked) -> Run | None:
    """The run; None of a dry one."""
    async with _ready(made, named, said) as ready:
        if said.dry:
            shared.print_json(plan_json(ready)) if said.quiet else click.echo(_opening(ready))
            return None
        if not said.quiet:
            click.echo(_opening(ready), err=True)
        with bench_screen(ready.order.levels, ready.order.workload.repeats, said.quiet) as screen:
            return await go(made, ready, screen, said.wish.resume)


def _opening(ready: Ready) -> str:
    text = f"{found_text(ready)}\n\n{plan_text(ready)}\n"
    if ready.unfinished:
        text += f"  a run like this was not finished: sparkwright bench --resume {ready.unfinished} goes on with it\n"
    return text


@contextlib.asynccontextmanager
async def _ready(made: Bench, named: str, said: _Asked) -> AsyncIterator[Ready]:
    if not asked.is_url(named):
        key = said.keys[0] if said.key_given else None
        async with _clustered().deployment(made, said.where, named, key, said.wish) as ready:
            yield ready
        return
    target = Target(named, said.model)
    try:
        async with asked.url(made, target, said.keys, said.wish) as ready:
            yield ready
            return
    except KeyWanted:
        more = () if said.key_given else await _clustered().keys_of_door(named, said.where)
        if not more:
            raise
    async with asked.url(made, target, more, said.wish) as ready:
        yield ready
