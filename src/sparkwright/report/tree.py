"""A report as one JSON object: figures, doubts and conditions, without the requests; `runs export` has those."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sparkwright.domain.summary import Comparison, RunSummary
from sparkwright.report.tables import doubts, notes, verdict

SCHEMA = 1


def tree(summaries: Sequence[RunSummary], comparisons: Sequence[Comparison]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "runs": [_run(summary) for summary in summaries],
        "comparisons": [asdict(one) for one in comparisons],
    }


def _run(summary: RunSummary) -> dict[str, Any]:
    run = summary.run
    return {
        "id": run.id,
        "verdict": verdict(summary),
        "simulated": run.conditions.simulated,
        "began": run.began,
        "ended": run.ended,
        "state": run.state,
        "workload": f"{run.workload.name}@{run.workload.version}",
        "conditions": asdict(run.conditions),
        "doubts": doubts(summary),
        "notes": notes(summary),
        "best_rate": summary.best_rate,
        "levels": [{"name": level.plan.name, **asdict(level)} for level in summary.levels],
    }
