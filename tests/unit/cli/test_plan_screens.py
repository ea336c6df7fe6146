"""The plan's bars, what it promises, its remedies; recipes side by side; what `--optimize` found."""

import json
import os
from dataclasses import asdict, replace

import pytest

from sparkwright.app.serve.prepare import Outcome, Planned
from sparkwright.app.services import ClusterState
from sparkwright.cli import plan_outlook
from sparkwright.cli.plan_optimize import comparison_json, comparison_text, optimum_json, optimum_text
from sparkwright.cli.plan_outlook import (
    answers_text,
    kv_text,
    legend,
    memory_bar,
    memory_text,
    remedies_text,
    speeds_text,
)
from sparkwright.domain.ledger import Counts, FreeMemory, KvCapacity, LedgerLine, MemoryLedger, Origin
from sparkwright.domain.plan import Plan
from sparkwright.domain.units import GIB
from sparkwright.domain.verdict import Choice, Estimate, Goal, Load, Optimum, Remedy, Speed, Variant, Verdict
from sparkwright.planner.optimize import optimize
from unit.cli.test_text import PLAN
from unit.planner.toy import RECIPE, WORLD, Toy, recipe

POOL = LedgerLine("pool", 100 * GIB, Origin.MEASURED, "MemTotal")
NONE = Estimate(0.0, why=("the model's vocab is not known",))


def ledger(*sizes: int, pool: LedgerLine = POOL) -> MemoryLedger:
    """GiB in use, of weights, of the engine's own, of KV."""
    names = ("in use now", "weights", "CUDA graphs", "KV pool")
    lines = tuple(LedgerLine(n, size * GIB, Origin.COMPUTED, "why") for n, size in zip(names, sizes, strict=True))
    return MemoryLedger("spark-1", pool, lines)


def make_speed(load: Load, decode: float = 40.0) -> Speed:
    return Speed(
        load,
        Estimate(decode, decode * 0.8, decode * 1.2, ("weights: 1 ms",)),
        Estimate(decode * load.concurrency, decode, 2 * decode),
        Estimate(2400.0, 1000.0, 3000.0),
        Estimate(3.4, 2.0, 8.0),
        Estimate(270.0, 90.0, 800.0),
    )


PROMISED = replace(
    PLAN,
    verdict=Verdict(True, room=8 * GIB, kv=KvCapacity(GIB, 1430000, 1390000, 1.39, why=("19,237 blocks",))),
    speeds=(make_speed(Load(prompt=8192)), make_speed(Load(depth=200000), 30.0), make_speed(Load(4096, 6, 4096), 12.0)),
)


def test_the_bar_is_the_pool_to_scale() -> None:
    """Each cell is as many bytes as any other, and what is left is seen."""
    assert memory_bar(ledger(10, 50, 10, 20), 20) == "|▒▒██████████▓▓░░░░..|"
    assert (
        legend(ledger(10, 50, 10, 20))
        == "  ▒ in use 10.0  █ weights 50.0  ▓ engine 10.0  ░ KV pool 20.0  . left 10.0 GiB"
    )


def test_what_is_too_much_is_beyond_the_pool() -> None:
    """The mark of the pool's end stays in its place on the scale."""
    full = ledger(25, 100, 0, 0)
    assert memory_bar(full, 20) == "|▒▒▒▒████████████|!!!!"
    assert legend(full).endswith("! too much 25.0 GiB")
    assert "DOES NOT FIT, 25.0 GiB short: more than the node has" in memory_text((full,), why=False)


def test_a_terminal_of_80_columns_cuts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards the lines that are longest where a model does not fit, and times with their range."""
    full, slow = ledger(120, 500, 120, 100), replace(make_speed(Load(prompt=8192)), loading=Estimate(220, 110, 1081))
    alone = memory_text((full,), why=False), speeds_text((slow, make_speed(Load(depth=2_000_000))), why=False)
    assert max(map(len, "\n".join(alone).splitlines())) > 80
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr("shutil.get_terminal_size", lambda fallback=(80, 24): os.terminal_size((80, 24)))
    shown = memory_text((full,), why=False), speeds_text((slow, make_speed(Load(depth=2_000_000))), why=False)
    assert max(map(len, "\n".join(shown).splitlines())) <= 80
    assert ["".join(text.split()) for text in alone][1] == ["".join(text.split()) for text in shown][1]


def test_an_alike_node_needs_no_second_legend() -> None:
    """Two nodes of one deployment mostly hold the same; one that differs has its own."""
    same = [ledger(10, 50, 10, 20), replace(ledger(10, 50, 10, 20), node="spark-2")]
    assert memory_text(same, why=False).count("in use 10.0") == 1
    other = replace(ledger(11, 50, 10, 20), node="spark-2")
    assert memory_text([same[0], other], why=False).count("weights 50.0") == 2


def test_why_has_every_line_with_its_range_and_origin() -> None:
    """The screen has the peak while loading, which is no part of the sum."""
    line = replace(POOL, name="weights", bytes=50 * GIB, origin=Origin.ASSUMED, low=48 * GIB, high=54 * GIB)
    found = replace(ledger(1, 1, 1, 1), lines=(line,), loading=replace(line, name="load-time peak", why="twice"))
    shown = memory_text((found,), why=True)
    assert "      50.0 GiB  weights               assumed (48.0 to 54.0): MemTotal" in shown
    assert "load-time peak" in shown and "twice" in shown
    assert memory_text([found, replace(found, node="spark-2")], why=True).count("load-time peak") == 1


def test_a_terminal_without_blocks_gets_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    """An encoding that has no block characters would end the command."""

    class Old:
        encoding = "latin-1"

    monkeypatch.setattr(plan_outlook.sys, "stdout", Old())
    assert memory_bar(ledger(10, 50, 10, 20), 20) == "|uuWWWWWWWWWWeekkkk..|"


def test_a_plan_begins_with_one_figure_a_question() -> None:
    """Does it fit, how many tokens and users, how fast, how long; the engine's own count is explained once."""
    assert answers_text(PROMISED, 131072).splitlines() == [
        "fits",
        "1,390,000 tokens of KV cache: 1.4 users of full length at once",
        "40.0 tokens/s (32.0 to 48.0) for one user; 72.0 tokens/s (12.0 to 24.0) for 6 together",
        "longest context that surely fits: 131,072 tokens",
    ]
    assert "the engine's log will report 1,430,000 tokens for the same pool" in kv_text(PROMISED, why=False)
    assert "19,237 blocks" in kv_text(PROMISED, why=True) and "19,237" not in kv_text(PROMISED, why=False)
    assert PROMISED.verdict and PROMISED.verdict.kv
    same = replace(PROMISED.verdict, kv=replace(PROMISED.verdict.kv, reported=1390000))
    assert kv_text(replace(PROMISED, verdict=same), why=False) == ""
    unknown = replace(ledger(1, 1, 1, 1), capacity=KvCapacity(1, unknown="nobody knows int3"))
    assert kv_text(replace(PLAN, ledgers=(unknown,)), why=False).endswith(
        "not known how many tokens: nobody knows int3"
    )


def test_kv_is_no_more_exact_than_its_pool() -> None:
    """Guards that tokens counted to the last one do not hide a pool of which half may not be there."""
    ends = LedgerLine("KV pool", 10 * GIB, Origin.COMPUTED, "why", 2 * GIB, 20 * GIB)
    unsure = replace(ledger(10, 50, 10, 10), kv_needed=GIB)
    unsure = replace(unsure, lines=(*unsure.lines[:-1], ends))
    shown = answers_text(replace(PROMISED, ledgers=(unsure,)))
    assert "1,390,000 tokens of KV cache (278,000 to 2,780,000): 1.4 users of full length at once (0.3 to 2.8)" in shown
    assert PROMISED.verdict and PROMISED.verdict.kv
    doubted = replace(PROMISED.verdict, kv=replace(PROMISED.verdict.kv, low=695_000, high=1_390_000))
    shown = answers_text(replace(PROMISED, verdict=doubted))
    assert "(695,000 to 1,390,000): 1.4 users of full length at once (0.7 to 1.4)" in shown
    assert "not start" not in kv_text(replace(PROMISED, ledgers=(unsure,)), False)
    tight = replace(unsure, kv_needed=5 * GIB)
    assert "the engine does not start" in kv_text(replace(PROMISED, ledgers=(tight,)), False)


def test_kv_of_a_version_that_nobody_read_is_a_range() -> None:
    """Guards that a count which another release would halve is not reported as if it were known."""
    assert PROMISED.verdict and PROMISED.verdict.kv
    wide = replace(PROMISED.verdict, kv=replace(PROMISED.verdict.kv, doubts=("0.21.1 was not read",)))
    assert "0.21.1 was not read" in " ".join(kv_text(replace(PROMISED, verdict=wide), False).split())
    assert "not read" not in kv_text(PROMISED, False)


def test_speeds_have_ranges_and_conditions() -> None:
    """One stream, at depth, many together; and the arithmetic where it is asked for."""
    rows = [line.split("  ") for line in speeds_text(PROMISED.speeds, why=False).splitlines()[1:]]
    assert [tuple(cell.strip() for cell in row if cell.strip()) for row in rows] == [
        ("decode", "1 stream, 8,192 tokens deep", "40.0 tokens/s (32.0 to 48.0)"),
        ("decode", "1 stream, 200,000 tokens deep", "30.0 tokens/s (24.0 to 36.0)"),
        ("decode", "6 streams, 8,192 tokens deep", "72.0 tokens/s (12.0 to 24.0)"),
        ("prefill", "prompt of 8,192 tokens", "2,400 tokens/s (1,000 to 3,000)"),
        ("first token", "prompt of 8,192 tokens", "3.4 s (2.0 s to 8.0 s)"),
        ("loading", "4 min 30 s (90 s to 13 min 20 s)"),
    ]
    assert "weights: 1 ms" in speeds_text(PROMISED.speeds, why=True)


def test_a_speed_that_is_not_known_reports_why() -> None:
    """No zero tokens a second."""
    unknown = Speed(Load(prompt=8192), NONE, NONE, NONE, NONE, NONE)
    assert speeds_text((unknown,), why=False) == "speed: not estimated: the model's vocab is not known"
    assert speeds_text((), why=True) == ""
    tiny = replace(make_speed(Load(depth=999_999_999)), decode=Estimate(0.02, 0.01, 0.03))
    assert "less than 0.1 tokens/s" in speeds_text((tiny,), why=False), "no speed of `0.0 (0.0 to 0.0)`"


def test_remedies_are_numbered_with_their_costs() -> None:
    """A remedy has the exact keys, and below them their cost."""
    one = Remedy("serving.context: 4096", ("context 8,192 -> 4,096 tokens (-50%)",), Variant(), RECIPE, Verdict(True))
    assert remedies_text((one, replace(one, change="nodes: 2", costs=()))).splitlines() == [
        "what does fit, cheapest first",
        "  1. serving.context: 4096",
        "     - context 8,192 -> 4,096 tokens (-50%)",
        "  2. nodes: 2",
    ]


def planned(plan: Plan) -> Planned:
    return Planned(plan.recipe, Outcome(plan, ClusterState({})))


def test_recipes_are_side_by_side() -> None:
    """One column each, rows only where somebody has a figure; what cannot be planned here reports why below."""
    other = replace(RECIPE, name="small", profile="")
    refused = replace(PROMISED, recipe=other, verdict=Verdict(False, short=3 * GIB, node="spark-2"), speeds=())
    alone = Planned(replace(RECIPE, name="wide"), trouble="wants 4 nodes, cluster lab has 2")
    rows = comparison_text([planned(PROMISED), planned(refused), alone]).splitlines()
    cells = {row.strip().partition("  ")[0]: row for row in rows}
    assert rows[0].split() == ["big@256k", "small", "wide"]
    assert cells["fits"].split() == ["fits", "yes", *["no:", "3.0", "GiB", "short", "on", "spark-2"], "-"]
    assert "1,430,000" in cells["KV tokens, reported"] and "not known" in cells["KV tokens, reported"]
    assert "72 tok/s (12-24), 6 streams" in cells["decode, together"]
    assert rows[-1] == "wide: wants 4 nodes, cluster lab has 2"
    found = comparison_json([planned(PROMISED), alone], lambda made: {"recipe": made.recipe.label})
    assert found == {"plans": [{"recipe": "big@256k"}, {"recipe": "wide", "error": "wants 4 nodes, cluster lab has 2"}]}


def test_an_optimum_is_shown_with_what_to_paste() -> None:
    """The optimum shows before and best, the keys as YAML, and the other settings as a table; JSON has the same."""
    found = optimize(recipe(context=8192), Toy(token=20), WORLD, Goal.CONTEXT)
    shown = optimum_text(found)
    assert "in the recipe\n  serving:\n    context: 262144" in shown
    assert shown.splitlines()[3].split() == ["fits", "yes", "yes"]
    data = json.loads(json.dumps(optimum_json(found), default=asdict))
    assert data["best"]["keys"] == {"serving.context": 262144} and data["judged"] == found.judged


def test_nothing_better_is_reported() -> None:
    """Nothing at all is shown if nobody knows what a pool holds."""
    own = Choice(Variant(), RECIPE, Verdict(True))
    shown = optimum_text(Optimum(Goal.LATENCY, own, own, (own,), "why", 3))
    assert "no setting that fits reaches more than the recipe's own" in shown
    assert "is not known for this model and engine" in optimum_text(Optimum(Goal.CONTEXT, own, own, (), "why", 3))


def test_three_figures_of_free_memory_are_shown_apart() -> None:
    """The figures are shown if an engine's own check fails on the one that it reads, or page cache is in the way of the
    load."""
    enough = replace(ledger(6, 60, 4, 20), claim=85 * GIB, seen=FreeMemory(Counts.AVAILABLE, 94 * GIB, 90 * GIB))
    assert "counts" not in memory_text([enough], why=False) and "counts" in memory_text([enough], why=True)
    cached = replace(enough, seen=FreeMemory(Counts.FREE, 94 * GIB, 30 * GIB, 2 * GIB))
    shown = memory_text([cached], why=False)
    assert "now: MemAvailable 94.0 GiB, MemFree 30.0 GiB, 2.0 GiB of it in blocks of 16 MiB or more" in shown
    assert "the engine counts MemFree (30.0 GiB); its check takes 85.0 GiB of it: lacks 55.0 GiB now" in shown
