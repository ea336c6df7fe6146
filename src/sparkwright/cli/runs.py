"""`sparkwright runs`: list, show, tag, delete, export and import benchmark runs."""

import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

import click

from sparkwright.adapters.files import open_recipe
from sparkwright.adapters.run_files.formats import FORMS, bytes_of, form_of, read, write
from sparkwright.app.bench import runs as use
from sparkwright.cli import eval_text, soak_text
from sparkwright.cli import options as shared
from sparkwright.cli.bench_text import next_text, summary_json, summary_text
from sparkwright.cli.columns import aligned, fold_line, simulated_mark
from sparkwright.cli.incidents import local_time
from sparkwright.domain.errors import RecipeError, UsageError
from sparkwright.domain.run import Run, RunListing
from sparkwright.domain.units import counted
from sparkwright.loadgen import stated
from sparkwright.loadgen.endurance import is_soak
from sparkwright.loadgen.stats import summarize
from sparkwright.ports import RunStore
from sparkwright.wiring import places, run_store


def _row(one: RunListing) -> tuple[str, ...]:
    engine = f" on {one.engine} {one.engine_version}".rstrip() if one.engine else ""
    failed = f", {one.errors} failed" if one.errors else ""
    began = local_time(one.began) if one.began else ""
    model = f"{simulated_mark(one.simulated)}{one.model}{engine}"
    unfinished = "" if one.state == "done" or one.kind != "bench" else f", {one.done} of {one.planned}"
    state = f"from {one.imported}" if one.imported else f"{one.state}{unfinished}"
    amount = "totals" if one.imported and not one.requests else f"{one.requests} requests{failed}"
    return (
        one.id,
        began,
        state,
        one.workload,
        model,
        one.kind if one.kind != "bench" else amount,
        ", ".join(one.tags),
    )


def runs_text(found: Sequence[RunListing]) -> str:
    """A line each where that fits the terminal, else two."""
    rows = [_row(one) for one in found]
    table = aligned(rows) or "no runs"
    width = shutil.get_terminal_size().columns
    if not sys.stdout.isatty() or max(map(len, table.splitlines())) <= width:
        return table
    heads = aligned([row[:3] for row in rows]).splitlines()
    rest = ("; ".join(filter(None, row[3:])) for row in rows)
    return "\n".join(f"{head}\n{fold_line(f'    {text}', 6)}" for head, text in zip(heads, rest, strict=True))


def tags_text(run: Run) -> str:
    given = {"tags": ", ".join(run.tags), "note": run.note, "from": run.imported}
    return "\n".join(f"  {name}: {text}" for name, text in given.items() if text)


T = TypeVar("T")
SCHEMA = 1
ARENA = "arena"


def with_store(work: Callable[[RunStore], Awaitable[T]]) -> T:
    """Runs a use case on the runs of this machine."""

    async def go() -> T:
        store = run_store()
        try:
            return await work(store)
        finally:
            await store.aclose()

    return asyncio.run(go())


@click.group()
def runs() -> None:
    """List, show, tag, export, import and delete benchmark runs on this machine.

    RUN is an id or its beginning, a tag (its newest run), or `last`.

    \b
    Examples:
      sparkwright runs list
      sparkwright runs show last
      sparkwright runs export r-20261122-7f3a run.json
    """


@runs.command("list")
@click.option(
    "--workload", default="", metavar="NAME", help="Only runs of this workload, such as `quick` or `quick@1`."
)
@click.option("--tag", default="", metavar="TAG", help="Only runs with this tag.")
@shared.json_option
def list_runs(workload: str, tag: str, as_json: bool) -> None:
    """List runs, newest first. Exit status: 0 also when there is none.

    \b
    Examples:
      sparkwright runs list
      sparkwright runs list --workload agentic --json
    """
    found = with_store(lambda kept: use.listed(kept, workload, tag))
    document = {"schema": SCHEMA, "runs": [asdict(one) for one in found]}
    shared.answer(as_json, document, runs_text(found))


@runs.command("show")
@click.argument("run", default="last", shell_complete=shared.complete.runs)
@shared.json_option
def show_run(run: str, as_json: bool) -> None:
    """Show the figures of one run, computed from its requests.

    \b
    Examples:
      sparkwright runs show last
      sparkwright runs show r-20261122-7f3a --json
    """
    found = with_store(lambda kept: use.loaded(kept, run))
    if is_soak(found):
        made = soak_text.soak_result(found)
        shared.answer(as_json, {"schema": SCHEMA, **soak_text.document(made)}, soak_text.soak_text(made))
        return
    if found.evaluation:
        shared.answer(as_json, {"schema": SCHEMA, "run": eval_text.document(found)}, eval_text.eval_text(found))
        return
    summary = summarize(found)
    parts = (summary_text(summary), tags_text(summary.run), next_text(summary.run))
    document = {"schema": SCHEMA, "run": summary_json(summary)}
    shared.answer(as_json, document, "\n\n".join(filter(None, parts)))


@runs.command("tag")
@click.argument("run", shell_complete=shared.complete.runs)
@click.argument("tags", nargs=-1, required=True)
@click.option("--remove", is_flag=True, help="Remove the tags.")
@shared.json_option
def tag_run(run: str, tags: tuple[str, ...], remove: bool, as_json: bool) -> None:
    """Add tags to a run, or remove them. A tag can be used as RUN.

    \b
    Examples:
      sparkwright runs tag last baseline
      sparkwright runs tag r-20261122-7f3a baseline --remove
    """
    if odd := [word for word in tags if not word.strip() or word == use.LAST or word.startswith("-")]:
        raise UsageError(f"{odd[0]!r} can be no tag")
    one = with_store(lambda kept: use.tagged(kept, run, tags, remove))
    text = f"{one.id}: {', '.join(one.tags) or 'no tags'}"
    shared.answer(as_json, {"schema": SCHEMA, "run": asdict(one)}, text)


@runs.command()
@click.argument("words", nargs=-1, required=True, metavar="RUN...", shell_complete=shared.complete.runs)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@shared.json_option
def delete(words: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Delete runs and all their requests permanently.

    \b
    Examples:
      sparkwright runs delete r-20261122-7f3a
      sparkwright runs export last kept.json && sparkwright runs delete last --yes
    """
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError("nobody can be asked whether to delete", "--yes deletes without asking")
        click.confirm(f"delete {', '.join(words)} with all their requests?", abort=True, err=True)
    found = with_store(lambda kept: use.deleted(kept, words))
    text = "\n".join(f"deleted {one.id}, {one.requests} requests" for one in found)
    shared.answer(as_json, {"schema": SCHEMA, "deleted": [one.id for one in found]}, text)


@runs.command()
@click.argument("run", shell_complete=shared.complete.runs)
@click.argument("file", required=False, default="", metavar="[FILE|FOLDER]")
@click.option(
    "--format", "form", default=None, type=click.Choice([*FORMS, ARENA]), metavar="FORMAT",
    help=", ".join((*FORMS, ARENA)),
)  # fmt: skip
@shared.json_option
def export(run: str, file: str, form: str | None, as_json: bool) -> None:
    """Export a run to a file, or to stdout.

    json is complete and can be imported elsewhere; csv has a row for each request; llama-benchy and llama-benchy-table
    have what that tool reports for the same levels. The format follows from the file's suffix (.json, .csv, .md) or
    --format. arena writes the three files of a Spark Arena submission to a folder.

    \b
    Examples:
      sparkwright runs export last run.json
      sparkwright runs export last requests.csv
      sparkwright runs export baseline --format llama-benchy-table
      sparkwright runs export last submission --format arena
    """
    if form == ARENA:
        _export_arena(run, file, as_json)
        return
    path = "" if file == "-" else file
    form = form or form_of(path)
    content = bytes_of(with_store(lambda kept: use.loaded(kept, run)), form)
    if as_json and not path:
        raise UsageError(
            "--json prints what was written: name a file", f"sparkwright runs export {run} run.json --json"
        )
    if path:
        write(content, path)
        if as_json:
            shared.print_json({"run": run, "file": path, "format": form, "bytes": len(content)})
        else:
            click.echo(f"wrote {path}, {len(content):,} bytes", err=True)
    else:
        click.echo(content, nl=False)


def _export_arena(word: str, folder: str, as_json: bool) -> None:
    """Write the three files, or none of them."""
    from sparkwright.adapters.run_files import arena  # with recipes and YAML, which other formats can do without

    if folder in ("", "-"):
        raise UsageError(
            "Spark Arena takes three files: name a folder",
            f"sparkwright runs export {word} submission --format {ARENA}",
        )
    found = with_store(lambda kept: use.loaded(kept, word))
    content = arena.files_of(found, _checkpoint(found))
    place = Path(folder)
    if clash := next((name for name in content if (place / name).exists()), ""):
        raise UsageError(f"{place / clash}: exists already", "name another folder")
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be made: {error.strerror or error}", "name another folder") from None
    for name, data in content.items():
        write(data, str(place / name))
    files = [str(place / name) for name in content]
    lines = (*(f"wrote {name}" for name in files), "read recipe.yaml before you publish it; `sparkrun arena` uploads")
    shared.answer(as_json, {"run": found.id, "format": ARENA, "files": files}, "\n".join(lines))


def _checkpoint(run: Run) -> str:
    """The model's id on the hub, from the recipe that served it; '' where that recipe is not here any more."""
    try:
        return open_recipe(run.conditions.recipe, places()).model.id if run.conditions.recipe else ""
    except RecipeError:
        return ""


def _count(run: Run) -> str:
    if stated.missing(run.levels):
        return f"totals of {counted(len(run.levels), 'level')}, without intervals,"
    return counted(sum(len(level.rows) for level in run.levels), "request")


@runs.command("import", short_help="Import exported runs or other tools' results.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Tag each imported run; may be repeated.")
@shared.json_option
def import_(files: tuple[str, ...], tags: tuple[str, ...], as_json: bool) -> None:
    """Import exported runs or results of other tools, for comparison.

    Supported: JSON and CSV of `runs export`; JSON, CSV and Markdown table of llama-benchy; JSON and table of
    llama-bench; JSON of `vllm bench serve --save-result`, guidellm and aiperf; YAML of `sparkrun benchmark`; scores:
    JSON of tool-eval-bench and lm-eval, JSONL of IFEval. A file with totals only gives figures without intervals.

    \b
    Examples:
      sparkwright runs import run.json
      sparkwright runs import community.md --tag forum && sparkwright compare forum last
    """
    read_runs = [(path, read(path)) for path in files]
    found = with_store(lambda kept: use.imported(kept, read_runs, tags))
    rows, lines = [], []
    for run in found:
        model, simulated = run.conditions.model, run.conditions.simulated
        rows.append({"id": run.id, "model": model, "from": run.imported, "simulated": simulated})
        count = counted(len(run.evaluation.outcomes), "score") if run.evaluation else _count(run)
        lines.append(f"{simulated_mark(simulated)}{run.id}: {count} of {model or 'an unknown model'}")
    shared.answer(as_json, {"schema": SCHEMA, "imported": rows}, "\n".join(lines))
