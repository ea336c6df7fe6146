"""MEM021 where the estimate of CUDA graphs is what decides: the range is shown and a pin is proposed that ends it."""

from dataclasses import replace
from typing import Any

from sparkwright.checks.memory_plan import may_not_fit
from sparkwright.domain.check import Context, Found
from sparkwright.domain.ledger import Fit
from sparkwright.domain.recipe import Serving
from sparkwright.domain.units import GIB
from sparkwright.planner.ledger import ledger
from unit.checks.samples import DENSE, NODES, RECIPE, context, healthy, memory


def planned(used: float, **serving: Any) -> Context:
    """15 GiB of weights and 65,536 bytes a token on each of two ranks; used: GiB of a node."""
    model = replace(RECIPE.model, shape=DENSE, size=0)
    made = replace(RECIPE, model=model, serving=Serving(memory_fraction=0.3, **serving))
    facts = [healthy(name, memory=memory(used)) for name in NODES]
    return context(recipe=made, ledgers=tuple(ledger(made, each, None, 2, "big") for each in facts))


def first_finding(where: Context) -> Found:
    return next(iter(may_not_fit(where)))


def test_a_pin_ends_the_doubt_that_graphs_leave() -> None:
    """Guards that the proposed size surely fits: with it in the recipe nothing of a range is left."""
    found = first_finding(planned(9, context=360448))
    assert "KV pool estimated at 16.0 GiB to 27.3 GiB (CUDA graphs 0.5 GiB to 8.3 GiB)" in found.evidence
    assert found.fix and found.fix.startswith("serving.kv_cache_bytes: 22 GiB fixes the pool; or ")
    pinned = planned(9, context=360448, kv_cache_bytes=22 * GIB)
    assert [each.fit for each in pinned.ledgers] == [Fit.FITS, Fit.FITS]
    assert list(may_not_fit(pinned)) == []


def test_no_pin_without_room_for_it() -> None:
    """Guards the 4 GiB that a node keeps: a size that leaves less is not proposed, less context has one."""
    full, short = first_finding(planned(81, context=360448)), first_finding(planned(81, context=280000))
    assert "fixes the pool" not in (full.fix or "")
    assert (short.fix or "").startswith("serving.kv_cache_bytes: 18 GiB fixes the pool")
