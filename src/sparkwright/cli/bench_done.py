"""What `bench` says at the end: figures, gates, comparison, and how to go on."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from sparkwright.cli.bench_text import comparison_text, next_text, summary_text
from sparkwright.domain.run import Run
from sparkwright.domain.summary import Comparison, GateResult, RunSummary
from sparkwright.loadgen.compare import compare
from sparkwright.loadgen.gate_lines import Gate
from sparkwright.loadgen.gates import judge
from sparkwright.loadgen.stats import summarize

STOPPED = "stopped"


@dataclass(frozen=True)
class Done:
    """The runs, in the order in which their endpoints were named."""

    runs: Sequence[Run]
    gates: Sequence[Gate]
    allow_simulated: bool = False

    @cached_property
    def summaries(self) -> tuple[RunSummary, ...]:
        return tuple(summarize(run) for run in self.runs)

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Of the first with each other one."""
        first, *others = self.summaries
        return tuple(compare(first, other, self.allow_simulated) for other in others)

    @cached_property
    def judged(self) -> tuple[tuple[GateResult, ...], ...]:
        """Of each run; () without gates."""
        return tuple(judge(self.gates, one) for one in self.summaries) if self.gates else ()


def exit_code(done: Done) -> int:
    failed = any(not result.passed for results in done.judged for result in results)
    return int(failed or any(one.invalid for one in done.summaries))


def done_text(done: Done) -> str:
    parts = [summary_text(one) for one in done.summaries]
    parts += [gates_text(run.id, results) for run, results in zip(done.runs, done.judged, strict=False)]
    parts += [comparison_text(one) for one in done.comparisons]
    parts += [_unfinished(run) for run in done.runs if run.state == STOPPED]
    return "\n\n".join([*parts, next_text(done.runs[-1].id)])


def _unfinished(run: Run) -> str:
    return f"{run.id} is not complete: sparkwright bench --resume {run.id} measures what is missing"


def gates_text(run: str, results: Sequence[GateResult]) -> str:
    """One line a gate."""
    lines = [f"gates of {run}"]
    for result in results:
        why = f" ({result.why})" if result.why else ""
        lines.append(f"  {'pass' if result.passed else 'FAIL'}  {result.line}: {_observed(result)}{why}")
    return "\n".join(lines)


def _observed(result: GateResult) -> str:
    seen = "no figure" if result.observed is None else f"{result.observed:.4g}"
    return f"observed {seen}, wanted {result.wanted}"


def done_json(done: Done) -> dict[str, Any]:
    """All but the requests: `sparkwright runs export` has those."""
    return {
        "runs": [summary_json(one) for one in done.summaries],
        "comparisons": [asdict(one) for one in done.comparisons],
        "gates": [[asdict(result) for result in results] for results in done.judged],
        "valid": not any(one.invalid for one in done.summaries),
    }


def summary_json(summary: RunSummary) -> dict[str, Any]:
    run = summary.run
    bare = replace(summary, run=replace(run, levels=()))
    return {**asdict(bare), "simulated": run.conditions.simulated}
