"""Starts of the real vLLM and SGLang that nothing was fitted to: windows, states of four kinds."""

import json
from typing import Any

import pytest

from sparkwright.domain.ledger import KV_POOL, STATES, WEIGHTS
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import GIB
from sparkwright.facts.model_config import parse
from sparkwright.planner.kv_cache import capacity, needed
from sparkwright.planner.ledger import ledger
from sparkwright.planner.weights import rank_weights
from unit.planner.memory_samples import CONFIGS, discrete, model_shape, recipe

FOLDER = CONFIGS.parent / "starts"
SGLANG = [
    {**json.loads(line), "engine": f"sglang {version}"}
    for version in ("0.5.12", "0.5.17")
    for line in (FOLDER / f"sglang-{version}.jsonl").read_text().splitlines()
]
ROWS = [
    {**json.loads(line), "engine": f"vllm {version}"}
    for version in ("0.21.0", "0.26.0")
    for line in (FOLDER / f"vllm-{version}.jsonl").read_text().splitlines()
]


def shape_of(name: str) -> ModelShape:
    """The shape of the starts' own configurations, else of the models'."""
    file = FOLDER / f"{name}.config.json"
    found = parse(file.read_text()) if file.exists() else model_shape(name)
    assert isinstance(found, ModelShape), found
    return found


def planned(row: dict[str, Any]) -> tuple[Recipe, ModelShape]:
    given = row["arguments"]
    found = shape_of(row["config"])
    limits = {
        "context": given["max_model_len"],
        "batched_tokens": row["batched_tokens"],
        "kv_dtype": given.get("kv_cache_dtype", ""),
        "memory_fraction": given.get("gpu_memory_utilization", 0.0),
        "kv_cache_bytes": given.get("kv_cache_memory_bytes", 0),
    }
    flags = {"enforce-eager": given.get("enforce_eager", True), "attention-backend": given["attention_backend"]}
    flags |= {"language-model-only": True} if given.get("language_model_only") else {}
    return recipe(found, row["engine"], serving=limits, flags=flags), found


def rows_with_figure(name: str, alone: bool = False) -> Any:
    """Rows with that figure; alone: of starts with nothing next to them on the GPU."""
    rows = [row for row in ROWS if name in row and not (alone and row.get("shared"))]
    return pytest.mark.parametrize("row", rows, ids=[f"{r['engine']}-{r['config']}-{n}" for n, r in enumerate(rows)])


@rows_with_figure("tokens")
def test_the_tokens_that_the_engine_prints(row: dict[str, Any]) -> None:
    """The tokens are exact for a pinned pool; else within the rounding of two decimals of a GiB."""
    made, shape = planned(row)
    pinned = made.serving.kv_cache_bytes
    found = capacity(made, shape, pinned or int(row["available_gib"] * GIB))
    slack = 0 if pinned else 0.0002 * row["tokens"]
    assert abs(found.reported - row["tokens"]) <= slack
    assert found.block == row.get("block", found.block)


@rows_with_figure("needed_gib")
def test_what_one_full_context_needs(row: dict[str, Any]) -> None:
    """A refusal names it: the planner must, before the weights are read."""
    size = needed(*planned(row))
    assert isinstance(size, int) and abs(size / GIB - row["needed_gib"]) < 0.006


@rows_with_figure("weights_gib")
def test_the_weights_of_dimensions_alone(row: dict[str, Any]) -> None:
    """No file, no size: what the config reports, within 2 %."""
    made, shape = planned(row)
    found = rank_weights(made, shape, None).bytes / GIB
    assert found == pytest.approx(row["weights_gib"], rel=0.02)


@rows_with_figure("available_gib", alone=True)
def test_the_pool_that_the_fraction_leaves(row: dict[str, Any]) -> None:
    """The pool follows from recipe and machine alone, within 3 %."""
    made, _ = planned(row)
    line = ledger(made, discrete(), None, 1).line(KV_POOL)
    assert line and line.bytes / GIB == pytest.approx(row["available_gib"], rel=0.03)
    assert line.low is not None and line.high is not None and line.low <= row["available_gib"] * GIB <= line.high


def test_deepseek_v4_over_two_nodes() -> None:
    """24 of V4-Flash's layers, TP 2: tokens as vLLM 0.21.0 printed them, and 41.87 GiB of weights a rank."""
    serving = {"context": 1048576, "sequences": 6, "batched_tokens": 512, "kv_dtype": "fp8", "kv_cache_bytes": 8 * GIB}
    found = shape_of("deepseek-v4-24-layers")
    made = recipe(found, "vllm 0.21.0", 2, serving=serving, flags={"block-size": 256, "enforce-eager": True})
    assert capacity(made, found, 8 * GIB).reported == 3_646_754
    assert rank_weights(made, found, None).bytes / GIB == pytest.approx(41.87, rel=0.005)


@pytest.mark.parametrize("row", SGLANG, ids=[f"{row['config']}-{n}" for n, row in enumerate(SGLANG)])
def test_sglangs_starts(row: dict[str, Any]) -> None:
    """Tokens within what two halves of two decimals hide, from recipe and machine within 1 %; the pool in its range."""
    names = ("context", "sequences", "kv_dtype")
    limits = {name: row[name] for name in names if name in row} | {"memory_fraction": row["fraction"]}
    found = shape_of(row["config"])
    made = recipe(found, row["engine"], serving=limits)
    least, most = (capacity(made, found, int((row["available_gib"] + off) * GIB)).tokens for off in (-0.011, 0.011))
    assert least <= row["tokens"] <= most
    counted = ledger(made, discrete(), None, 1)
    weights, pool, states = (counted.line(name) for name in (WEIGHTS, KV_POOL, STATES))
    # Few experts, so that small parts weigh more; LFM2's output is a copy of its tied vocabulary
    rough = {"laguna-xs-8-experts": 0.03, "lfm2-8-experts": 0.08}.get(row["config"], 0.01)
    assert weights and weights.bytes / GIB == pytest.approx(row["weights_gib"], rel=rough)
    assert pool and capacity(made, found, pool.bytes).tokens == pytest.approx(row["tokens"], rel=0.01)
    assert pool.low is not None and pool.high is not None and pool.low <= row["available_gib"] * GIB <= pool.high
    assert (states.bytes / GIB if states else 0.0) == pytest.approx(row.get("states_gib", 0.0), rel=0.02)
