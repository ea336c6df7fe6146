"""Starts of the real SGLang 0.5.23 on an H200, planned again with the memory that CUDA has there.

The predictions that were written down before the starts are in sglang-0.5.23-predicted.json; these are not predictions.
"""

import json
from typing import Any

import pytest

from sparkwright.domain.ledger import KV_POOL, WEIGHTS
from sparkwright.domain.units import GIB
from sparkwright.planner.kv_cache import capacity
from sparkwright.planner.ledger import ledger
from unit.planner.memory_samples import discrete, recipe
from unit.planner.test_real_starts import FOLDER, shape_of

ROWS = [json.loads(line) for line in (FOLDER / "sglang-0.5.23.jsonl").read_text().splitlines()]
# Few experts, so that small parts weigh more; LFM2's output is a copy of its tied vocabulary
ROUGH = {"gpt-oss-16-experts": 0.04, "lfm2-8-experts": 0.08, "kimi-linear-48b-8-experts": 0.03}


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['config']}-{row.get('kv_dtype', 'auto')}" for row in ROWS])
def test_tokens_are_in_their_range(row: dict[str, Any]) -> None:
    """Guards that recipe and machine alone give the engine's tokens within 1 %, and that the range holds them."""
    names = ("context", "sequences", "kv_dtype")
    limits = {name: row[name] for name in names if name in row} | {"memory_fraction": row["fraction"]}
    found = shape_of(row["config"])
    made = recipe(found, "sglang 0.5.23", serving=limits)
    counted = ledger(made, discrete(), None, 1)
    weights, pool = counted.line(WEIGHTS), counted.line(KV_POOL)
    assert weights and weights.bytes / GIB == pytest.approx(row["weights_gib"], rel=ROUGH.get(row["config"], 0.02))
    assert pool and pool.low is not None and pool.high is not None
    low, middle, high = (capacity(made, found, size).tokens for size in (pool.low, pool.bytes, pool.high))
    assert middle == pytest.approx(row["tokens"], rel=0.01)
    assert low <= row["tokens"] <= high
