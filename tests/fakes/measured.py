"""Rows, levels and runs with figures that a reader can check in the head."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sparkwright.domain.run import Level, Reads, Row, Run, RunConditions, Scrape
from sparkwright.domain.workload import Length, LevelPlan, Pace, Single, Workload

PLAN = LevelPlan("c1", Single(Length(100, 100), Length(4, 4)), Pace(concurrency=1), requests=3)
KNOWN = RunConditions("http://server:8000", "acme/model", tokenizer="/tokenize of the server")


def make_row(ttft: float = 0.1, gap: float = 0.02, tokens: int = 4, sent: float = 0.0, **given: Any) -> Row:
    """One token a read, equal gaps."""
    at = tuple(ttft + gap * n for n in range(tokens))
    told: dict[str, Any] = {
        "intended": sent,
        "first": ttft,
        "end": at[-1],
        "status": 200,
        "reads": Reads(at, (1,) * tokens),
        "prompt_tokens": 100,
        "output_tokens": tokens,
        "planned_prompt": 100,
        "planned_output": tokens,
    }
    return Row(**{"session": 0, "turn": 0, "sent": sent, **told, **given})


def failed(kind: str = "http-500", **given: Any) -> Row:
    told = {"session": 0, "turn": 0, "intended": 0.0, "sent": 0.0, "kind": kind, "error": f"{kind}: no", **given}
    return Row(**told)


def make_level(rows: Sequence[Row], repeat: int = 0, plan: LevelPlan = PLAN, **given: Any) -> Level:
    return Level(plan, repeat, 1000.0, 10.0, tuple(rows), **given)


def run(*levels: Level, name: str = "r-1", conditions: RunConditions = KNOWN, **given: Any) -> Run:
    """given: of the workload (seed, slo, version, ...), or of the run (imported, tags, state)."""
    plans = tuple({one.plan.name: one.plan for one in levels}.values())
    of_run = {key: given.pop(key) for key in ("imported", "tags", "state", "note") if key in given}
    workload = Workload("check", "a check", plans, **given)
    return replace(Run(name, 1000.0, workload, conditions, "done", levels=tuple(levels)), **of_run)


def scrape(at: float, memory: Mapping[str, int] | None = None, **figures: float) -> Scrape:
    return Scrape(at, figures, memory or {})
