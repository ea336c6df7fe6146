"""`sparkwright compare`, `sparkwright gate` and `sparkwright report`."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from sparkwright import __version__
from sparkwright.adapters.run_files.formats import write
from sparkwright.app.bench import report as use
from sparkwright.app.bench.report import Against, ReportForm
from sparkwright.app.bench.runs import chosen, publish
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.cli import options as shared
from sparkwright.cli.bench_text import comparison_text, gates_text
from sparkwright.cli.columns import aligned, simulated_mark
from sparkwright.cli.gate_file import read_gates
from sparkwright.cli.runs import with_store
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Run, RunListing
from sparkwright.domain.summary import RunSummary
from sparkwright.domain.values import dataclass
from sparkwright.evals.changes import changes, refused
from sparkwright.ports import RunStore

SCHEMA = 1
_simulated = click.option(
    "--allow-simulated", is_flag=True, help="Allow comparing a simulated run with a measured one."
)


@click.command()
@click.argument("base", shell_complete=shared.complete.runs)
@click.argument("others", nargs=-1, required=True, metavar="RUN...", shell_complete=shared.complete.runs)
@click.option(
    "--gate", type=click.Path(path_type=Path), metavar="FILE", help="Exit 1 if a RUN does not meet a threshold in FILE."
)
@_simulated
@shared.json_option
def compare(base: str, others: tuple[str, ...], gate: Path | None, allow_simulated: bool, as_json: bool) -> None:
    """Compare runs with a base, metric by metric: better, worse, same, or unclear.

    Better or worse needs a difference of 3 % and a 95 % interval of the ratio that excludes 1. Runs of different
    workloads, models or tokenizers, invalid runs, and simulated with measured runs are not compared. Evaluations are
    compared outcome by outcome, where kind, version and seed are equal; a worse outcome is exit status 1.

    Exit status: 0 compared and all thresholds met, 1 a threshold is not met or the runs cannot be compared.

    \b
    Examples:
      sparkwright compare baseline last
      sparkwright compare r-20261121-11aa r-20261122-7f3a r-20261122-90c4
      sparkwright compare baseline last --gate gates.txt --json
    """
    gates = read_gates(gate) if gate else ()
    if evaluated := with_store(lambda kept: use.evaluations(kept, (base, *others))):
        shared.answer(as_json, *_changes(evaluated, allow_simulated))
        return
    first, found = with_store(lambda kept: use.compared(kept, base, others, gates, allow_simulated))
    passed = not any(one.comparison.refused or any(not result.passed for result in one.results) for one in found)
    told = {"compared": [_against_json(one) for one in found], "passed": passed}
    text = "\n\n".join(_against_text(first, one) for one in found)
    shared.answer(as_json, {"schema": SCHEMA, "base": first.run.id, **told}, text, int(not passed))


def _changes(runs: Sequence[Run], allow_simulated: bool) -> tuple[dict[str, Any], str, int]:
    """Document, text and exit code: each evaluation against the first."""
    first, documents, texts, failed = runs[0], [], [], False
    for run in runs[1:]:
        why = refused(first, run, allow_simulated)
        rows = () if why else changes(first, run)
        failed = failed or bool(why) or any(one.verdict == "worse" for one in rows)
        documents.append({"run": run.id, "refused": list(why), "changes": [asdict(one) for one in rows]})
        head = f"{simulated_mark(first.conditions.simulated or run.conditions.simulated)}{run.id} against {first.id}"
        lines = [(one.name, one.base, one.new, one.verdict) for one in rows]
        texts.append("\n".join(filter(None, [head, *(f"not comparable: {one}" for one in why), aligned(lines)])))
    document = {"schema": SCHEMA, "base": first.id, "compared": documents, "passed": not failed}
    return document, "\n\n".join(texts), int(failed)


def _against_text(base: RunSummary, one: Against) -> str:
    either, text = (
        base.run.conditions.simulated or one.summary.run.conditions.simulated,
        comparison_text(one.comparison),
    )
    if either or one.comparison.refused:
        text = f"{simulated_mark(either)}{one.summary.run.id} against {base.run.id}\n{text}"  # the table has it, too
    return f"{text}\n\n{gates_text(one.summary.run.id, one.results)}" if one.results else text


def _against_json(one: Against) -> dict[str, Any]:
    conditions = one.summary.run.conditions
    gates = [asdict(result) for result in one.results]
    return {"simulated": conditions.simulated, "comparison": asdict(one.comparison), "gates": gates}


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", shell_complete=shared.complete.runs_and_files)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--baseline",
    default="",
    metavar="RUN",
    shell_complete=shared.complete.runs,
    help="Run that `x baseline` in FILE refers to.",
)
@_simulated
@shared.json_option
def gate(runs: tuple[str, ...], file: Path, baseline: str, allow_simulated: bool, as_json: bool) -> None:
    """Check runs against the thresholds of a file, one a line.

    METRIC.STATISTIC SIGN NUMBER UNIT [@ depth=32k], as `ttft.p99 < 2s @ depth=32k`, `decode.median >= 0.95 x
    baseline`, `errors == 0`, `failed_probes == 0`, `score >= 85%`. Text after # is a comment. With several runs each
    line is judged by every run that can have its figure.

    Exit status: 0 all thresholds met, 1 a threshold failed or a run is invalid, 2 syntax error in FILE.

    \b
    Examples:
      sparkwright gate last gates.txt
      sparkwright gate last gates.txt --baseline baseline --json
      sparkwright gate nightly-bench nightly-probes gates.txt
    """
    gates = read_gates(file)
    found = with_store(lambda kept: use.judge_stored_runs(kept, runs, gates, baseline, allow_simulated))
    names = [one.run.id for one in found.summaries]
    simulated = any(one.run.conditions.simulated for one in found.summaries)
    passed = all(result.passed for result in found.results)
    document = {"schema": SCHEMA, "run": names[0], "runs": names, "simulated": simulated, "passed": passed}
    document |= {"gates": [asdict(result) for result in found.results], "no_baseline": list(found.refused)}
    text = simulated_mark(simulated) + gates_text(", ".join(names), found.results, found.refused)
    shared.answer(as_json, document, text, int(not passed))


_PDF = "pdf"
_ENDINGS = {
    ".html": ReportForm.HTML.value,
    ".htm": ReportForm.HTML.value,
    ".md": ReportForm.MARKDOWN.value,
    ".markdown": ReportForm.MARKDOWN.value,
    ".json": ReportForm.JSON.value,
    ".pdf": _PDF,
}
_STDOUT = "-"
_FORMS = click.Choice([*(form.value for form in ReportForm), _PDF])


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """The command line of `report`. runs: () for the newest. form: None by the name of `out`, - for stdout."""

    runs: tuple[str, ...]
    where: ClusterOptions
    as_json: bool
    form: str | None
    out: str
    console: bool


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...", shell_complete=shared.complete.runs)
@click.option("--format", "form", type=_FORMS, default=None, help="Format. [default: by the name of FILE, or html]")
@click.option(
    "-o", "--out", default="", metavar="FILE", help="Output file, - for stdout. [default: RUN.html; else stdout]"
)
@click.option("--console", is_flag=True, help="Show it in the console of the cluster's head; write no file.")
@shared.cluster_options
@shared.json_option
def report(**given: Any) -> None:
    """Write plots, tables and conditions of one run, or of several compared with the first.

    RUN: an id or its beginning, a tag, or `last`. [default: the newest] HTML is one file that needs no network; md is
    for a forum post; pdf needs an installed Chromium. --json prints what was written; --format json is the report.

    \b
    Examples:
      sparkwright report                                   the newest run
      sparkwright report r-20261122-7f3a -o report.html
      sparkwright report r-20261122-7f3a -o report.pdf
      sparkwright report r-20261122-7f3a r-20261122-9c01   side by side
      sparkwright report r-20261122-7f3a --format md
      sparkwright report last --console
    """
    options = ReportOptions(**given)
    form, out, as_json = options.form, options.out, options.as_json
    if options.console and (out or form not in (None, ReportForm.HTML)):
        raise click.UsageError("--console shows a page: it does not go with --out or another --format")
    wanted = form or _form_of(out)
    if wanted == _PDF:
        from sparkwright.adapters.pdf import browser

        browser()  # before the page is made

    async def made(kept: RunStore) -> tuple[tuple[str, ...], str]:
        names = await use.find_run_ids(kept, options.runs)
        made_of = ReportForm.HTML if wanted == _PDF else ReportForm(wanted)
        return names, await use.report(kept, names, made_of, f"sparkwright {__version__}")

    names, text = with_store(made)
    if options.console:

        async def listed(kept: RunStore) -> tuple[RunListing, ...]:
            return tuple([await chosen(kept, name) for name in names])

        found = with_store(listed)
        head = shared.with_services(options.where, lambda services: publish(services, found, text), quiet=True)
        told = f"{', '.join(names)}: in the console of {head}, page Runs"
        shared.answer(as_json, {"runs": names, "console": head}, told)
        return
    target = out or (f"{names[0]}.{wanted}" if wanted in (ReportForm.HTML, _PDF) or as_json else _STDOUT)
    if target == _STDOUT:
        if as_json or wanted == _PDF:
            raise click.UsageError("this needs a file: name one with --out")
        click.echo(text, nl=False)
        return
    _write_report(names, text, wanted, target, as_json)


def _form_of(out: str) -> str:
    """Format by the ending of the file's name. Raises UsageError for one of another program."""
    ending = Path(out).suffix.lower()
    if ending and ending not in _ENDINGS:
        hint = f"name it {Path(out).stem}.html, or say what it is with --format"
        raise UsageError(f"{out}: a report is no {ending} file; there are: {', '.join(_ENDINGS)}", hint)
    return _ENDINGS.get(ending, ReportForm.HTML.value)


def _write_report(names: Sequence[str], text: str, form: str, target: str, as_json: bool) -> None:
    path = Path(target).expanduser()
    content = text.encode()
    if form == _PDF:
        from sparkwright.adapters.pdf import print_pdf

        content = print_pdf(text)
    write(content, str(path))
    told = f"wrote {path} ({len(content) / 1000:.0f} kB)"
    shared.answer(as_json, {"runs": names, "file": str(path), "format": form, "bytes": len(content)}, told)
