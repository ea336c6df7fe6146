"""A search as text and page: what is claimed, and that nothing from outside becomes markup."""

from __future__ import annotations

import json
import re

from sparkwright.domain.tuning import START, Candidate, Trial, Tried, Tuned, TuneGoal, TuneSetting
from sparkwright.domain.values import replace
from sparkwright.domain.verdict import Estimate
from sparkwright.tune.page import budget_text, counts_text, rest_text, score_text, trial_table, tuning_page, verdict
from unit.for_each import for_each

SETTINGS = (
    TuneSetting("threads", "flags.threads", (None, 2, 4)),
    TuneSetting("loader", "flags.load-format", (None, "x"), "", True),
)


def make_tuned(*trials: Trial, best: tuple[int, ...] | None = (1,), goal: TuneGoal = TuneGoal.THROUGHPUT) -> Tuned:
    candidates = (Candidate((0,), {}), Candidate((2,), {"flags.threads": 4}, refused="does not fit"))
    return Tuned("t-1", goal, "a", SETTINGS, candidates, trials, 3, best, text="name: a\n", profile="tuned-x")


def make_trial(place: int, rung: int, *scores: float, state: Tried = Tried.MEASURED, detail: str = "") -> Trial:
    return Trial((place,), rung, state, scores, detail)


def test_the_gain_is_of_equal_measurements() -> None:
    """Medians are compared, without the trial that found the pace; repeats that overlap are no certain gain."""
    found = verdict(make_tuned(make_trial(0, 0, 999.0), make_trial(0, 2, 100.0, 102.0), make_trial(1, 2, 150.0, 152.0)))
    assert found == "best: threads 2: 151 tok/s, 1.50 times the recipe's own (101 tok/s)"
    assert "not certain" in verdict(make_tuned(make_trial(0, 2, 90.0, 160.0), make_trial(1, 2, 150.0, 152.0)))
    assert "were not measured" in verdict(make_tuned(make_trial(1, 2, 150.0)))
    assert "no setting" in verdict(make_tuned(make_trial(0, 2, 1.0), best=(0,)))
    assert verdict(make_tuned(best=None)) == "nothing was measured"


def test_latency_is_shown_in_seconds() -> None:
    """Scores are rates inside; users read seconds an answer."""
    assert score_text(TuneGoal.LATENCY, 0.5) == "2.000 s/answer"
    assert (score_text(TuneGoal.AGENTS, 12.34), score_text(TuneGoal.AGENTS, 0.0)) == ("12.3 turns/min", "-")


def test_each_way_to_fail_is_counted() -> None:
    """The counts are of failed starts, exclusions and the plan's refusals; a loader's trial has its name and no
    score."""
    trials = (make_trial(0, 0, 1.0), make_trial(1, 0, state=Tried.NOT_STARTED, detail="out of memory"))
    found = make_tuned(*trials, make_trial(0, START, 0.1, detail="{'flags.load-format': 'x'}"))
    assert counts_text(found) == "1 of 3 settings measured; 3 trials: 2 measured, 1 not started, 1 refused by the plan"
    rows = trial_table(found).rows
    assert rows[1][-1] == "not started: out of memory"
    assert "load-format" in rows[2][0] and rows[2][2] == "-"


def test_a_search_without_a_comparison_has_no_winner() -> None:
    """Guards the claim that the recipe's own settings are the best of one."""
    found = replace(
        make_tuned(make_trial(0, 0, 9.0), make_trial(0, 1, 9.0, 11.0), best=None), most=3, needs=600.0, resume="CMD"
    )
    assert found.compared == 1
    assert (
        verdict(found) == "only the recipe's own settings were measured (10.0 tok/s): there is nothing to compare with"
    )
    assert rest_text(found) == "2 more settings need about 10 min 00 s; continue: CMD"
    assert rest_text(replace(found, done=True)) == ""
    assert "Profile" not in tuning_page(replace(found, text=""), "us")


@for_each(
    "minutes, said",
    (
        (5, "too short to compare anything; worth it: --time 18m"),
        (13, "enough for about 2 of 3"),
        (60, "are enough for the 3"),
    ),
)
def test_the_budget_is_judged_before_a_search(minutes: int, said: str) -> None:
    """Guards an hour of starts that ends with the recipe's own settings."""
    found = budget_text(SETTINGS[:1], Estimate(360.0, 200.0, 900.0), minutes * 60)
    assert said in found and found.startswith("a trial takes about 6 min"), found
    assert budget_text(SETTINGS, None, 60) == ""


def test_the_page_escapes() -> None:
    """A cause from a log cannot become a tag."""
    bad = make_trial(1, 0, state=Tried.NOT_STARTED, detail="<script>alert(1)</script>")
    page = tuning_page(make_tuned(make_trial(0, 0, 1.0), make_trial(0, 1, 1.0, 2.0), bad, best=(0,)), "us")
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page and 'id="plot-trials"' in page


def test_the_best_and_the_recipes_own_are_tiles() -> None:
    """Guards the big figures: both ends in order, also of seconds, and no table without rows."""
    page = tuning_page(make_tuned(make_trial(0, 2, 99.0, 101.0), make_trial(1, 2, 98.0, 102.0)), "test")
    assert "98.0 to 102" in page and "99.0 to 101" in page and "Tuning report</span>" in page
    assert "What each setting is worth" not in page and 'id="plot-trials"' in page
    seconds = tuning_page(make_tuned(make_trial(1, 2, 0.5, 0.25), goal=TuneGoal.LATENCY), "test")
    assert "2.000 to 4.000" in seconds


def test_trials_are_drawn_in_their_order() -> None:
    """Guards units and ends of the plot: latency in seconds, so the best so far falls, and no plot of one trial."""
    page = tuning_page(make_tuned(make_trial(0, 2, 0.5, 0.25), make_trial(1, 2, 1.0), goal=TuneGoal.LATENCY), "test")
    (plot,) = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])["plots"]  # type: ignore[index]
    first, best = (curve["points"] for curve in plot["curves"])
    assert plot["y"]["unit"] == "s" and first[0] == [1, 1 / 0.375, 2.0, 4.0, 2]
    assert best == [[1, 1 / 0.375], [2, 1.0]]
    assert "plot-trials" not in tuning_page(make_tuned(make_trial(1, 2, 0.5)), "test")
