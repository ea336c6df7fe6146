"""`sparkwright compare`, `sparkwright gate` and `sparkwright report`."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from sparkwright import __version__
from sparkwright.app import report as use
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.report import Against, Form
from sparkwright.app.runs import chosen, publish
from sparkwright.cli import options as shared
from sparkwright.cli.bench_text import comparison_text, gates_text
from sparkwright.cli.columns import aligned, mark
from sparkwright.cli.gate_file import read_gates
from sparkwright.cli.runs import with_store
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Listed, Run
from sparkwright.domain.summary import RunSummary
from sparkwright.evals.changes import changes, refused
from sparkwright.ports import RunStore

SCHEMA = 1
_simulated = click.option(
    "--allow-simulated", is_flag=True, help="Allow comparing a simulated run with a measured one."
)


@click.command()
@click.argument("base")
@click.argument("others", nargs=-1, required=True, metavar="RUN...")
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
        head = f"{mark(first.conditions.simulated or run.conditions.simulated)}{run.id} against {first.id}"
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
        text = f"{mark(either)}{one.summary.run.id} against {base.run.id}\n{text}"  # the table has it, too
    return f"{text}\n\n{gates_text(one.summary.run.id, one.results)}" if one.results else text


def _against_json(one: Against) -> dict[str, Any]:
    conditions = one.summary.run.conditions
    gates = [asdict(result) for result in one.results]
    return {"simulated": conditions.simulated, "comparison": asdict(one.comparison), "gates": gates}


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--baseline", default="", metavar="RUN", help="Run that `x baseline` in FILE refers to.")
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
    found = with_store(lambda kept: use.gated(kept, runs, gates, baseline, allow_simulated))
    names = [one.run.id for one in found.summaries]
    simulated = any(one.run.conditions.simulated for one in found.summaries)
    passed = all(result.passed for result in found.results)
    document = {"schema": SCHEMA, "run": names[0], "runs": names, "simulated": simulated, "passed": passed}
    document |= {"gates": [asdict(result) for result in found.results], "no_baseline": list(found.refused)}
    text = mark(simulated) + gates_text(", ".join(names), found.results, found.refused)
    shared.answer(as_json, document, text, int(not passed))


async def _listed(kept: RunStore, names: Sequence[str]) -> tuple[Listed, ...]:
    return tuple([await chosen(kept, name) for name in names])


_ENDINGS = {".html": Form.HTML, ".htm": Form.HTML, ".md": Form.MARKDOWN, ".markdown": Form.MARKDOWN, ".json": Form.JSON}
_STDOUT = "-"
_FORMS = click.Choice([form.value for form in Form])


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--format", "form", type=_FORMS, default=None, help="Format. [default: by the name of FILE, or html]")
@click.option(
    "-o", "--out", default="", metavar="FILE", help="Output file, - for stdout. [default: RUN.html; else stdout]"
)
@click.option("--console", is_flag=True, help="Show it in the console of the cluster's head; write no file.")
@shared.cluster_options
def report(runs: tuple[str, ...], form: str | None, out: str, console: bool, where: ClusterOptions) -> None:
    """Write plots, tables and conditions of one run, or of several compared with the first.

    RUN: an id or its beginning, a tag, or `last`. [default: the newest] HTML is one file that needs no network; md is
    for a forum post.

    \b
    Examples:
      sparkwright report                                   the newest run
      sparkwright report r-20261122-7f3a -o report.html
      sparkwright report r-20261122-7f3a r-20261122-9c01   side by side
      sparkwright report r-20261122-7f3a --format md
      sparkwright report last --console
    """
    if console and (out or form not in (None, Form.HTML)):
        raise click.UsageError("--console shows a page: it does not go with --out or another --format")
    wanted = Form(form) if form else _ENDINGS.get(Path(out).suffix.lower(), Form.HTML)

    async def made(kept: RunStore) -> tuple[tuple[str, ...], str]:
        names = await use.named(kept, runs)
        return names, await use.report(kept, names, wanted, f"sparkwright {__version__}")

    names, text = with_store(made)
    if console:
        found = with_store(lambda kept: _listed(kept, names))
        head = shared.drive(where, lambda services: publish(services, found, text), quiet=True)
        click.echo(f"{', '.join(names)}: in the console of {head}, page Runs")
        return
    target = out or (f"{names[0]}.html" if wanted is Form.HTML else _STDOUT)
    if target == _STDOUT:
        click.echo(text, nl=False)
        return
    path = Path(target).expanduser()
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}", "name another file with -o") from None
    click.echo(f"wrote {path} ({len(text.encode()) / 1000:.0f} kB)")
