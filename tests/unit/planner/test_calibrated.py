"""A ledger with the engine's own figures of an earlier start."""

from dataclasses import replace

import pytest

from sparkwright.domain.calibration import Calibration
from sparkwright.domain.ledger import ACTIVATIONS, GRAPHS, KV_POOL, LOADER, WEIGHTS, LedgerLine, MemoryLedger, Origin
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import GIB, gib
from sparkwright.planner.calibrate import conditions, load_seconds
from sparkwright.planner.judge import calibrated
from sparkwright.planner.ledger import ledger
from unit.planner.memory_samples import gb10_node, model_shape, recipe

DENSE = model_shape("qwen3-8b")
PLAIN = recipe(DENSE, serving={"memory_fraction": 0.5, "context": 32768})
COUNTED = ledger(PLAIN, gb10_node(), None, 1)
FIGURES = {"weights": 15 * GIB, "kv": 40 * GIB, "graphs": GIB, "kv_tokens": 290_000}


def engine_figures(**figures: int) -> Calibration:
    return Calibration(conditions(PLAIN, False), source="v4", **figures)  # type: ignore[arg-type]


def calibrated_ledger(
    calibration: Calibration | None, planned: Recipe = PLAIN, counted: MemoryLedger = COUNTED
) -> MemoryLedger:
    known = {} if calibration is None else {"spark-1": calibration}
    (found,) = calibrated((counted,), planned, DENSE, known)
    return found


def ledger_line(of: MemoryLedger, name: str) -> LedgerLine:
    found = of.line(name)
    assert found is not None
    return found


def test_nothing_known_changes_nothing() -> None:
    """Guards that a first start, and a log without figures, leave the count as it is."""
    assert calibrated_ledger(None) == COUNTED
    assert calibrated_ledger(engine_figures()) == COUNTED


def test_a_whole_start() -> None:
    """Guards that its lines are taken, report where from, and still add up to what the engine claims."""
    found = calibrated_ledger(engine_figures(**FIGURES))
    assert [gib(ledger_line(found, name).bytes) for name in (WEIGHTS, KV_POOL, GRAPHS)] == [
        "15.0 GiB",
        "40.0 GiB",
        "1.0 GiB",
    ]
    assert {ledger_line(found, name).origin for name in (WEIGHTS, KV_POOL, GRAPHS, ACTIVATIONS)} == {Origin.CALIBRATED}
    assert ledger_line(found, WEIGHTS).why.startswith("measured")
    assert found.engine_bytes + ledger_line(found, KV_POOL).bytes == found.claim
    assert found.kv_tokens == 290_000
    assert found.left == pytest.approx(COUNTED.left, abs=1)


def test_other_limits_keep_the_weights_only() -> None:
    """Guards that a longer context plans its own KV pool, next to the weights as they were measured."""
    longer = replace(PLAIN, serving=replace(PLAIN.serving, batched_tokens=4096))
    counted = ledger(longer, gb10_node(), None, 1)
    found = calibrated_ledger(engine_figures(**FIGURES), longer, counted)
    assert (ledger_line(found, WEIGHTS).origin, ledger_line(found, KV_POOL).origin) == (
        Origin.CALIBRATED,
        Origin.COMPUTED,
    )
    freed = ledger_line(counted, WEIGHTS).bytes - 15 * GIB
    assert ledger_line(found, KV_POOL).bytes == ledger_line(counted, KV_POOL).bytes + freed
    assert found.capacity is not None and found.capacity.bytes == ledger_line(found, KV_POOL).bytes


def test_a_pinned_pool_stays() -> None:
    """Guards that measured weights do not move a pool that the recipe pins."""
    pinned = replace(PLAIN, serving=replace(PLAIN.serving, kv_cache_bytes=12 * GIB))
    found = calibrated_ledger(engine_figures(weights=15 * GIB), pinned, ledger(pinned, gb10_node(), None, 1))
    assert ledger_line(found, KV_POOL).bytes == 12 * GIB


def test_a_pinned_pool_gives_nothing_to_the_activations() -> None:
    """Guards that what a claim leaves is no line of a node where the pool was pinned and the claim sizes nothing."""
    pinned = replace(PLAIN, serving=replace(PLAIN.serving, kv_cache_bytes=12 * GIB))
    counted = ledger(pinned, gb10_node(), None, 1)
    figures = replace(engine_figures(weights=15 * GIB, kv=12 * GIB), conditions=conditions(pinned, False))
    found = calibrated_ledger(figures, pinned, counted)
    assert (ledger_line(found, WEIGHTS).bytes, ledger_line(found, KV_POOL).origin) == (15 * GIB, Origin.CALIBRATED)
    assert ledger_line(found, ACTIVATIONS) == ledger_line(counted, ACTIVATIONS)


def test_another_recipe_is_not_calibrated() -> None:
    """Guards that figures of another split report nothing here."""
    other = recipe(DENSE, tp=2, serving={"memory_fraction": 0.5, "context": 32768})
    counted = ledger(other, gb10_node(), None, 2)
    assert calibrated_ledger(engine_figures(**FIGURES), other, counted) == counted


def test_ranks_that_share_a_pool_are_not_calibrated() -> None:
    """Guards that the figures of one rank are not taken for those of two on one node."""
    both = recipe(DENSE, tp=2, serving={"memory_fraction": 0.5, "context": 32768})
    counted = ledger(both, gb10_node(), None, 1)
    one = Calibration(conditions(both, False), weights=8 * GIB)
    assert calibrated_ledger(one, both, counted) == counted


def test_what_a_loader_kept_replaces_what_it_usually_keeps() -> None:
    """Guards the learned figure: 4.4 GiB are of two other starts."""
    tensor = replace(PLAIN, flags={"load-format": "instanttensor"})
    counted = ledger(tensor, gb10_node(), None, 1)
    figures = replace(engine_figures(**FIGURES, kept=2 * GIB), conditions=conditions(tensor, False))
    found = calibrated_ledger(figures, tensor, counted)
    assert (gib(ledger_line(counted, LOADER).bytes), gib(ledger_line(found, LOADER).bytes)) == ("4.4 GiB", "2.0 GiB")
    assert ledger_line(found, LOADER).origin is Origin.CALIBRATED


def test_the_time_of_a_load_lies_between_two_phases() -> None:
    """Guards against a log without times, and one that ends while it loads."""
    phases = (("rendezvous", 5.0), ("load", 12.0), ("compile", 104.0), ("server", 130.0))
    assert load_seconds(replace(engine_figures(**FIGURES), phases=phases)) == 92.0
    assert load_seconds(replace(engine_figures(**FIGURES), phases=phases[:2])) is None
    assert load_seconds(engine_figures(**FIGURES)) is None
