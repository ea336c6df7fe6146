"""`sparkwright tune`: the settings of a recipe that serve best here, found by short benches."""

import asyncio
import shlex
from math import ceil
from pathlib import Path
from typing import Any

import click

from sparkwright import __version__
from sparkwright.adapters import tune_journal
from sparkwright.adapters.files import find_recipe, open_recipe, split_profile
from sparkwright.adapters.run_files.formats import write
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.services import LaunchRequest, Services, api_key
from sparkwright.cli import complete
from sparkwright.cli import options as shared
from sparkwright.cli.columns import aligned, echo_text, simulated_mark
from sparkwright.cli.console import console_sink
from sparkwright.cli.kinds import Whole, renamed_option, time_option
from sparkwright.domain.errors import SparkwrightError, UsageError
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.tuning import Point, Trial, Tried, Tuned, TuneGoal, TuneSetting
from sparkwright.domain.units import duration
from sparkwright.domain.values import asdict, dataclass, replace
from sparkwright.tune import page as text_of
from sparkwright.tune import search
from sparkwright.tune import session as use
from sparkwright.tune.survey import TuneRequest, TuneSource, TuneSurvey, survey
from sparkwright.wiring import bench as tools
from sparkwright.wiring import places, services, tune_folder

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """The command line of `tune`. seconds: of --time. users: 0 by the goal. force: the reason. dry: of --dry-run."""

    recipe: str
    profile: str
    name: str
    where: ClusterOptions
    as_json: bool
    goal: str
    seconds: float
    only: tuple[str, ...]
    values: tuple[str, ...]
    users: int
    seed: int
    resume: str
    dry: bool
    out: Path | None
    report: Path | None
    force: str


@click.command()
@click.argument("recipe", metavar="RECIPE[@PROFILE]", shell_complete=complete.recipes)
@click.option(
    "--for", "goal", type=click.Choice([one.value for one in TuneGoal]), required=True, help="What is to be best."
)
@time_option("End after this time, such as 90m. [default: 1h]", 60.0, 3600.0, budget=60.0)
@renamed_option(
    "--setting", "only", was="--only", multiple=True, metavar="NAME", help="Search only this one; may be repeated."
)
@renamed_option(
    "--try", "values", was="--set", multiple=True, metavar="KEY=V1,V2", help="Values to try for a key of the recipe."
)
@click.option("--users", type=Whole(0, 1024), default=0, help="Requests or agents at once. [default: by goal]")
@click.option("--seed", type=Whole(), default=1, help="Seed of the first trials and of what is asked. [default: 1]")
@click.option("--resume", default="", metavar="SEARCH", help="Resume a search by its id, or `last`.")
@click.option("--dry-run", "dry", is_flag=True, help="Print the candidates in order and exit; start nothing.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Write the recipe with the new profile.")
@click.option("--report", type=click.Path(path_type=Path), metavar="FILE", help="Write a page with curve and tables.")
@shared.profile_option
@shared.name_option
@shared.cluster_options
@shared.force_option
@shared.json_option
def tune(**given: Any) -> None:
    """Search the settings of a recipe that serve best on these nodes.

    Settings that the planner lets start are tried by short benches, next always those of which the most is expected;
    a setting with which a probe fails that passes with the recipe's own is excluded. What serves under the same name
    is away meanwhile, and is started again at the end or on Ctrl-C. A killed search continues with --resume.

    Exit status: 0 settings were compared, 1 nothing was, 2 usage error, 3 node unreachable, 4 busy.

    \b
    Examples:
      sparkwright tune qwen3-coder-next --for agents --dry-run
      sparkwright tune gpt-oss-120b --for throughput --time 90m --out new.yaml
      sparkwright tune tiny-llama-cpp --for latency --try flags.threads=2,4,8
      sparkwright tune gpt-oss-120b --for throughput --resume last
    """
    options = TuneOptions(**given)
    opened = open_recipe(options.recipe, places(), options.profile)
    named, asked = split_profile(options.recipe, places())
    found = find_recipe(named, places())
    goal, out = TuneGoal(options.goal), options.out
    if out and out.exists() and not options.resume:
        raise UsageError(f"{out} exists", "name another file with --out")
    for path in (out, options.report):
        shared.writable(path)
    source = TuneSource(found.text, found.source, asked or options.profile or opened.profile, f"tuned-{goal}")
    call = TuneCall(opened, options.name or opened.deployment, source, options)
    wanted = TuneRequest(goal, options.only, options.values, options.users, options.seed)
    tuned = asyncio.run(_tune(call, wanted))
    tuned = replace(tuned, resume=resume_command(tuned, options))
    page = text_of.tuning_page(tuned, f"sparkwright {__version__}")
    for path, content in ((out, tuned.text), (options.report, page)):
        if path and content and not options.dry:
            _write(content, path, tuned.id)
    shared.answer(options.as_json, document(tuned), _text(tuned, out), int(not options.dry and tuned.best is None))


def _write(content: str, path: Path, search: str) -> None:
    try:
        write(content.encode(), str(path))
    except UsageError as error:
        again = f"nothing is lost: --resume {search} with --out or --report elsewhere"
        raise UsageError(error.message, again) from None


@dataclass(frozen=True, slots=True)
class TuneCall:
    """The command line with what it names, opened."""

    recipe: Recipe
    deployment: str
    source: TuneSource
    options: TuneOptions


def resume_command(tuned: Tuned, options: TuneOptions) -> str:
    """The command that goes on with the search, ready to paste; '' when it is done."""
    if tuned.done or not tuned.id:
        return ""
    spent = sum(one.seconds for one in tuned.trials)
    named = (("--profile", options.profile), ("--name", options.name), ("--force", options.force))
    where = (("--cluster", options.where.cluster), ("--ssh-config", options.where.ssh_config))
    files = (("--out", options.out), ("--report", options.report))
    first, last = (
        [word for o, value in pairs if value for word in (o, str(value))] for pairs in (named, (*where, *files))
    )
    # The time of earlier calls counts.
    minutes = max(1, ceil((spent + (tuned.needs or options.seconds)) / 60))
    words = (
        "sparkwright",
        "tune",
        options.recipe,
        *first,
        "--for",
        tuned.goal.value,
        "--resume",
        tuned.id,
        "--time",
        f"{minutes}m",
        *last,
    )
    return shlex.join(words)


@dataclass(frozen=True, slots=True)
class TuneLines:
    """Implements app.tune.Show: a line when a trial begins, one when it has ended."""

    settings: tuple[TuneSetting, ...]
    goal: TuneGoal
    quiet: bool

    def begins(self, rung: int, point: Point, number: int, of: int) -> None:
        what = f"{search.repeats(rung)} x" if rung >= 0 else "start"
        self._line(f"[{number}/{of}] {text_of.changes_text(self.settings, point)}, {what}")

    def ends(self, trial: Trial) -> None:
        score = text_of.score_text(self.goal, sum(trial.scores) / len(trial.scores)) if trial.scores else ""
        result = score if trial.state is Tried.MEASURED and trial.rung >= 0 else f"{trial.state}: {trial.detail}"
        ready = f", ready after {duration(trial.start)}" if trial.start else ""
        self._line(f"      {result}{ready}, {duration(trial.seconds)} in all")

    def _line(self, text: str) -> None:
        if not self.quiet:
            echo_text(text, err=True)


async def _tune(call: TuneCall, wanted: TuneRequest) -> Tuned:
    shared.end_like_ctrl_c()
    options, quiet = call.options, call.options.as_json
    with console_sink(True) as sink:
        async with services(shared.open_cluster(options.where), options.where, sink) as there:
            key = api_key(there, call.recipe)
            request = LaunchRequest(call.recipe, call.deployment, options.force, key, supervised=True)
            journal = tune_journal.find_journal(tune_folder(), options.resume) if options.resume else None
            wanted = _same(call, wanted, journal) if journal else wanted
            made = await survey(there, request, call.source, wanted)
            if (said := text_of.budget_text(made.settings, made.trial, options.seconds)) and not quiet:
                echo_text(said, err=True)
            if options.dry:
                return _planned(made)
            if journal:
                made.first = tuple(tuple(point) for point in journal.header()["first"])
            journal = journal or await _begun(there, call, made)
            lines = TuneLines(made.settings, wanted.goal, quiet)
            with journal.locked():
                return await _searched(there, made, journal, (lines, options))


async def _searched(
    there: Services, made: TuneSurvey, journal: tune_journal.FileJournal, given: tuple[TuneLines, TuneOptions]
) -> Tuned:
    lines, options = given
    shown = (lines, options.seconds)
    async with tools(None) as bench, use.searching(there, bench, made, journal, shown) as search:
        if not lines.quiet:
            echo_text(f"search {journal.id}; --resume {journal.id} continues it\n", err=True)
        try:
            await search.all()
        except (asyncio.CancelledError, SparkwrightError):
            stopped = search.result()
            echo_text(f"{text_of.counts_text(stopped)}\nhint: {resume_command(stopped, options)}", err=True)
            raise
        return search.result()


async def _begun(there: Services, call: TuneCall, made: TuneSurvey) -> tune_journal.FileJournal:
    old = await use.serving(there, call.deployment)
    header = {
        "recipe": call.recipe.label,
        "hash": call.recipe.hash,
        "deployment": call.deployment,
        "wanted": asdict(made.wanted),
        "keys": [one.key for one in made.settings],
        "first": made.first,
        "served": use.served_text(old),
    }
    return tune_journal.begin_journal(tune_folder(), header)


def _same(call: TuneCall, wanted: TuneRequest, journal: tune_journal.FileJournal) -> TuneRequest:
    """The request that the search was begun with. Raises UsageError for another recipe or goal."""
    kept = journal.header()
    theirs = (kept.get("hash"), kept.get("deployment"), (kept.get("wanted") or {}).get("goal"))
    ours = (call.recipe.hash, call.deployment, wanted.goal.value)
    if theirs != ours:
        said = f"{journal.id} was begun with {kept.get('recipe')} ({theirs[0]}) as {theirs[1]} for {theirs[2]}"
        raise UsageError(f"{said}; this is {call.recipe.label} ({ours[0]}) as {ours[1]} for {ours[2]}")
    given = kept["wanted"]
    only, values = tuple(given["only"]), tuple(given["values"])
    return TuneRequest(wanted.goal, only, values, int(given["users"]), int(given["seed"]))


def _planned(made: TuneSurvey) -> Tuned:
    size = search.space_size(made.settings)
    names = (made.request.recipe.label, (*made.settings, *made.starts), made.candidates)
    return Tuned("", made.wanted.goal, *names, (), size, simulated=made.simulated, profile=made.source.made)


def document(found: Tuned) -> dict[str, Any]:
    """best: the keys that the profile changes; profile: the whole recipe as YAML."""
    best = next((dict(one.changes) for one in found.candidates if one.point == found.best), None)
    pairs = zip(found.settings, found.best or (), strict=False)
    best = {one.key: one.values[place] for one, place in pairs if place} if best is None and found.best else best
    return {"schema": SCHEMA, **asdict(found), "best": best, "verdict": text_of.verdict(found)}


def _text(found: Tuned, out: Path | None) -> str:
    """The screen at the end. out: the file with the new profile, None if no file was named."""
    marked = simulated_mark(found.simulated)
    if not found.trials:
        table = text_of.candidate_table(found)
        settings = aligned(
            [
                (one.name, one.key, ", ".join("unset" if v is None else str(v) for v in one.values), one.what)
                for one in found.settings
            ]
        )
        head = f"{marked}{found.recipe} for {found.goal}: {found.space:,} settings, {len(found.candidates)} candidates"
        return "\n\n".join([head, settings, aligned([table.head, *table.rows]) + f"\n{table.says}"])
    parts = [f"{marked}{found.id}  {text_of.counts_text(found)}"]
    for table in (text_of.trial_table(found), text_of.effect_table(found)):
        if table.rows:
            parts.append(f"{table.title.lower()}\n" + aligned([table.head, *table.rows]) + f"\n{table.says}".rstrip())
    parts += [found.note] if found.note else []
    parts.append("\n".join(filter(None, (text_of.verdict(found), text_of.rest_text(found)))))
    if found.text:
        wrote = (
            f"sparkwright up {shlex.quote(f'{out}@{found.profile}')}" if out else "--resume last --out FILE writes it"
        )
        parts.append(f"profile {found.profile}\n  {wrote}")
    return "\n\n".join(parts)
