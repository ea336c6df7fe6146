"""The output of `eval`: progress, outcomes with their evidence, and the exit code."""

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import click

from sparkwright.cli.columns import aligned, fold_line, simulated_mark
from sparkwright.domain.evaluation import Evaluation, ProbeOutcome, ProbeState
from sparkwright.domain.printable import printable
from sparkwright.domain.run import Run
from sparkwright.domain.units import counted, duration
from sparkwright.report.evaluation import score_text

SCHEMA = 1
_SHOWN = 2  # exchanges of a failed probe


class EvalLines:
    """Implements app.evaluate.EvaluationScreen: a line a probe on stderr, its end when it is judged."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def begins(self, name: str, number: int, of: int) -> None:
        self._write(f"[{number + 1:>2}/{of}] {name:<16} ", False)

    def ends(self, outcome: ProbeOutcome) -> None:
        self._write(f"{outcome.state}, {counted(outcome.requests, 'request')}, {duration(outcome.seconds)}", True)

    def note(self, text: str) -> None:
        self._write(text, True)

    def _write(self, text: str, end: bool) -> None:
        if not self._quiet:
            click.echo(printable(text), err=True, nl=end)
            sys.stderr.flush()


def exit_code(run: Run) -> int:
    found = _of(run)
    if found.counts[ProbeState.BROKEN] and not found.counts[ProbeState.FAILED]:
        return 5
    stored = found.kind == "same" and not found.outcomes
    return int(run.state != "done" or not (found.passed or stored))


def _of(run: Run) -> Evaluation:
    return run.evaluation or Evaluation("")


def document(run: Run) -> dict[str, Any]:
    cause = _missing_parser(run)
    told = {"simulated": run.conditions.simulated, "passed": exit_code(run) == 0}
    return {**asdict(run), **told} | ({"cause": cause} if cause else {})


def _missing_parser(run: Run) -> str:
    from sparkwright.app.bench.evaluate import missing_parser  # `runs` starts without the engines

    return missing_parser(run)


def eval_text(run: Run) -> str:
    """One run: its outcomes, then each failure with its meaning and exchanges, and the next command."""
    found = _of(run)
    counts = ", ".join(f"{count} {state}" for state, count in found.counts.items() if count)
    head = f"{simulated_mark(run.conditions.simulated)}{run.id}  {run.workload.name}@{run.workload.version} of "
    where = f" at {run.conditions.endpoint}" if run.conditions.endpoint else ""
    head += f"{run.conditions.model or 'an unknown model'}{where}: {found.verdict or counts}"
    rows = [(one.name, one.state, score_text(one), fold_line(one.detail, 4)) for one in found.outcomes]
    failed = [line for one in found.outcomes if one.state is ProbeState.FAILED for line in _failure(one)]
    unfinished = ["stopped before its end: not everything was asked"] if run.state != "done" else []
    if found.answers and not found.outcomes:
        lost = sum(bool(one.error) for one in found.answers)
        detail = f"{len(found.answers)} prompts stored, {lost} without an answer"
        return f"{head}{detail}\nnext\n  sparkwright eval same {run.id} URL   after the change"
    after = f"next\n  sparkwright report {run.id} -o report.html   all exchanges that failed, as one file"
    if run.conditions.ours:
        after += f"\n  sparkwright report {run.id} --console        the same for all who may see the console"
    return "\n\n".join(
        filter(None, [fold_line(_missing_parser(run), 4), head, aligned(rows), "\n".join(failed), *unfinished, after])
    )


def _failure(outcome: ProbeOutcome) -> Iterator[str]:
    yield click.style(f"FAILED {outcome.name}", fg="red", bold=True)
    yield fold_line(f"  breaks: {outcome.detail}", 10)
    yield fold_line(f"  means:  {outcome.means}", 10)
    yield fold_line(f"  hint:   {outcome.hint}", 10)
    for number, one in enumerate(outcome.evidence[:_SHOWN]):
        yield from [fold_line(f"  found:  {one.what}", 10)] if number else []
        yield fold_line(f"    sent:     {one.sent[:400]}", 14)
        yield fold_line(f"    received: {one.received[:400]}", 14)
