"""The last screen of `bench`: figures, gates, comparison, next commands."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from sparkwright.app.report import Judged, judged
from sparkwright.cli.bench_text import comparison_text, next_text, summary_text
from sparkwright.domain.run import Run
from sparkwright.domain.summary import Comparison, GateResult, RunSummary
from sparkwright.loadgen.compare import compare
from sparkwright.loadgen.gate_lines import Gate
from sparkwright.loadgen.stats import summarize

STOPPED = "stopped"


@dataclass(frozen=True)
class Done:
    """The runs, in the order in which their endpoints were named. baseline: of the gates."""

    runs: Sequence[Run]
    gates: Sequence[Gate]
    allow_simulated: bool = False
    baseline: Run | None = None

    @cached_property
    def summaries(self) -> tuple[RunSummary, ...]:
        return tuple(summarize(run) for run in self.runs)

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Of the first with each other one."""
        first, *others = self.summaries
        return tuple(compare(first, other, self.allow_simulated) for other in others)

    @cached_property
    def judged(self) -> tuple[Judged, ...]:
        """Each run by the gates; () without gates."""
        base = summarize(self.baseline) if self.baseline else None
        return tuple(judged(one, self.gates, base, self.allow_simulated) for one in self.summaries if self.gates)


def exit_code(done: Done) -> int:
    failed = any(not result.passed for one in done.judged for result in one.results)
    return int(failed or any(one.invalid for one in done.summaries))


def done_text(done: Done) -> str:
    parts = [summary_text(one) for one in done.summaries]
    parts += [gates_text(one.summary.run.id, one.results, one.refused) for one in done.judged]
    parts += [comparison_text(one) for one in done.comparisons]
    parts += [_unfinished(run) for run in done.runs if run.state == STOPPED]
    last = done.runs[-1]
    around = last.conditions.deployment if last.conditions.ours and not last.conditions.front_door else ""
    return "\n\n".join([*parts, next_text(last.id, around=around)])


def _unfinished(run: Run) -> str:
    return f"{run.id} is not complete: sparkwright bench --resume {run.id} measures what is missing"


def gates_text(run: str, results: Sequence[GateResult], refused: Sequence[str] = ()) -> str:
    """One line a gate. refused: why the baseline is none."""
    lines = [f"gates of {run}", *(f"  no baseline: {why}" for why in refused)]
    for result in results:
        why = f" ({result.why})" if result.why else ""
        lines.append(f"  {'pass' if result.passed else 'FAIL'}  {result.line}: {_observed(result)}{why}")
    return "\n".join(lines)


def _observed(result: GateResult) -> str:
    return f"found {result.seen or 'no figure'}, expected {result.wanted}"


def done_json(done: Done) -> dict[str, Any]:
    """All but the requests: `sparkwright runs export` has those."""
    return {
        "runs": [summary_json(one) for one in done.summaries],
        "comparisons": [asdict(one) for one in done.comparisons],
        "gates": [[asdict(result) for result in one.results] for one in done.judged],
        "no_baseline": [list(one.refused) for one in done.judged],
        "valid": not any(one.invalid for one in done.summaries),
    }


def summary_json(summary: RunSummary) -> dict[str, Any]:
    run = summary.run
    bare = replace(summary, run=replace(run, levels=()))
    return {**asdict(bare), "simulated": run.conditions.simulated}
