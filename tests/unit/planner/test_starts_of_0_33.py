"""Starts of the real vLLM 0.33.0 on an H200, planned before they were made (tools/gpu/kv_tokens.py)."""

import json
from typing import Any

import pytest

from sparkwright.domain.ledger import KV_POOL
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import GIB
from sparkwright.planner.kv_cache import capacity
from sparkwright.planner.ledger import ledger
from sparkwright.planner.weights import rank_weights
from unit.planner.memory_samples import discrete, recipe
from unit.planner.test_real_starts import FOLDER, shape_of

ROWS = [json.loads(line) for line in (FOLDER / "vllm-0.33.0.jsonl").read_text().splitlines()]
ALONE = [row for row in ROWS if not row.get("shared")]
# MLA with an FP8 cache takes FLASHMLA on a Hopper GPU by itself, with blocks of 64 tokens. A GB10 has no FLASHMLA, so
# the planner counts blocks of 16 unless the recipe names it: predicted before the start were 48 tokens too many.
FLASHMLA = ("dsv2-lite-9-layers", "fp8")
LOW = {"gpt-oss-16-experts": 0.04}  # MXFP4 took 3.4 % less than planned
# Compiled, it left 2.1 GiB less than eager: 0.67 are graphs, the rest is not understood.
# Its pool is a known miss: so many GiB under the range at most.
UNDER_RANGE = {"gemma-3-27b-text-12-layers-auto-compiled": 0.6}


def row_name(row: dict[str, Any]) -> str:
    how = "" if row["arguments"]["enforce_eager"] else "-warm" if row.get("compiled_before") else "-compiled"
    return f"{row['config']}-{kv_dtype_of(row) or 'auto'}{how}"


def kv_dtype_of(row: dict[str, Any]) -> str:
    return str(row["arguments"].get("kv_cache_dtype", ""))


def planned(row: dict[str, Any], shape: ModelShape | None = None) -> tuple[Recipe, ModelShape]:
    """shape: without it that of the row's config."""
    given = row["arguments"]
    found = shape or shape_of(row["config"])
    limits = {
        "context": given["max_model_len"],
        "batched_tokens": given["max_num_batched_tokens"],
        "sequences": given["max_num_seqs"],
        "kv_dtype": kv_dtype_of(row),
        "memory_fraction": given["gpu_memory_utilization"],
        "kv_cache_bytes": given.get("kv_cache_memory_bytes", 0),
    }
    flags = {"enforce-eager": given["enforce_eager"]} | (
        {"language-model-only": True} if given.get("language_model_only") else {}
    )
    if (row["config"], kv_dtype_of(row)) == FLASHMLA:
        flags |= {"attention-backend": "FLASHMLA"}
    return recipe(found, "vllm 0.33.0", serving=limits, flags=flags), found


def free_pools() -> list[Any]:
    return [pytest.param(row, id=row_name(row)) for row in ALONE]


def pinned() -> list[Any]:
    return [pytest.param(row, id=row_name(row)) for row in ROWS if row.get("shared")]


@pytest.mark.parametrize("row", pinned())
def test_tokens_of_a_pinned_pool_are_exact(row: dict[str, Any]) -> None:
    made, shape = planned(row)
    found = capacity(made, shape, made.serving.kv_cache_bytes)
    assert found.reported == row["tokens"]
    assert found.block == row.get("block", found.block)


@pytest.mark.parametrize("row", free_pools())
def test_the_pool_that_the_fraction_leaves_is_in_its_range(row: dict[str, Any]) -> None:
    """Tokens of the engine's own GiB agree within its two decimals; the pool lies in the range that `plan` shows."""
    made, shape = planned(row)
    line = ledger(made, discrete(), None, 1).line(KV_POOL)
    assert line and line.low is not None and line.high is not None
    missed = UNDER_RANGE.get(row_name(row), 0.0)
    pool = row["available_gib"] * GIB
    assert line.low - missed * GIB <= pool <= line.high
    assert (pool < line.low) == bool(missed), "a known miss that is none any more"
    found = capacity(made, shape, int(row["available_gib"] * GIB))
    assert found.reported == pytest.approx(row["tokens"], rel=0.0004)


@pytest.mark.parametrize("row", ALONE, ids=row_name)
def test_weights_of_dimensions_alone(row: dict[str, Any]) -> None:
    made, shape = planned(row)
    found = rank_weights(made, shape, None).bytes / GIB
    assert found == pytest.approx(row["weights_gib"], rel=LOW.get(row["config"], 0.02))
