"""Soaks of scripted hours: memory with noise that lasts, latency that wanders, and faults at a known time."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from random import Random

from fakes.measured import KNOWN, PLAN, failed, make_row
from sparkwright.domain.evaluation import Evaluation, Event, ProbeOutcome, ProbeState
from sparkwright.domain.run import Level, Row, Run, Scrape
from sparkwright.domain.units import GIB
from sparkwright.domain.workload import Workload

HOURS, LEGS, ROWS, LOOKS = 8.0, 48, 8, 12
SPAN = HOURS * 3600 / LEGS


@dataclass(frozen=True)
class SoakScript:
    """leak: GiB an hour. slow: factor of latency from `at` hours on. step: GiB taken once. errors: in the third leg."""

    seed: int = 1
    leak: float = 0.0
    slow: float = 1.0
    at: float = 5.0
    step: float = 0.0
    errors: int = 0
    reset: bool = False
    process: bool = False


def soak(script: SoakScript, outcomes: Sequence[ProbeOutcome] = (), events: tuple[Event, ...] = ()) -> Run:
    dice, levels = Random(script.seed), []
    noise = wander = 0.0
    for leg in range(LEGS):
        rows: list[Row] = []
        for n in range(ROWS):
            wander = 0.9 * wander + dice.gauss(0, 0.02)
            factor = exp(wander) * (script.slow if leg * SPAN >= script.at * 3600 else 1.0)
            ttft, gap = 0.2 * factor * exp(dice.gauss(0, 0.15)), 0.02 * factor * exp(dice.gauss(0, 0.05))
            rows.append(make_row(ttft, gap, sent=n * SPAN / ROWS))
        looks = []
        for n in range(LOOKS):
            at = leg * SPAN + n * SPAN / LOOKS
            noise = 0.95 * noise + dice.gauss(0, 0.075)
            taken = 2 * (1 - exp(-at / 1200)) + script.leak * at / 3600 + (script.step if at > HOURS * 1800 else 0)
            looks.append(
                _look(script, n * SPAN / LOOKS, 40 + noise - taken, float(at < HOURS * 1800 or not script.reset))
            )
        bad = [failed("http-500")] * script.errors if leg == 2 else []
        levels.append(Level(PLAN, leg, 1000.0 + leg * SPAN, SPAN, (*rows, *bad), scrapes=tuple(looks)))
    passed = ProbeOutcome("length", ProbeState.PASSED, at=10.0)
    found = Evaluation("soak", (passed, *outcomes), events=events, seconds=HOURS * 3600, floor=2 * GIB)
    work = Workload("soak", "Hours", (PLAN,), deadline=HOURS * 3600)
    return Run("r-soak", 1000.0, work, KNOWN, "done", levels=tuple(levels), evaluation=found)


def _look(script: SoakScript, at: float, left: float, before: float) -> Scrape:
    figures = {"generation_tokens_total": 1000.0 * before + 1.0}
    if script.process:
        return Scrape(at, {**figures, "process_memory": (60 - left) * GIB})
    return Scrape(at, figures, {"spark-1": int(left * GIB), "spark-2": 50 * GIB})
