"""Weights counted from config.json, against every causal class of transformers 5.24 built and counted by itself.

tests/data/models/classes.jsonl is made by scripts/planner/model_classes.py.
"""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from sparkwright.domain.ledger import LedgerLine
from sparkwright.domain.model import ModelShape
from sparkwright.facts.model_config import parse
from sparkwright.planner.parts import main, missing
from sparkwright.planner.weights import rank_weights
from unit.for_each import for_each
from unit.planner.memory_samples import model_shape, recipe

DATA = Path(__file__).parents[2] / "data" / "models" / "classes.jsonl"
# LongCat's class makes weights for experts that compute nothing, which no checkpoint has: 560 billion are published.
PUBLISHED = {"longcat_flash": 560_000_000_000}
# A drafter that is loaded with its target, never alone.
NO_MODELS = {"gemma4_unified_assistant"}
PLAIN = {"architectures": ["LlamaForCausalLM"], "dtype": "bfloat16", "num_hidden_layers": 12, "vocab_size": 32000,
         "num_attention_heads": 16, "hidden_size": 2048, "intermediate_size": 8192, "hidden_act": "silu"}  # fmt: skip


@cache
def class_rows() -> tuple[dict[str, Any], ...]:
    return tuple(map(json.loads, DATA.read_text().splitlines()))


def counted(config: dict[str, Any]) -> tuple[ModelShape, LedgerLine] | None:
    """Shape and line of the ledger; None where the weights are not known."""
    found = parse(json.dumps(config))
    if not isinstance(found, ModelShape):
        return None
    line = rank_weights(recipe(model_shape("qwen3-8b")), found, None)
    return (found, line) if line.known and line.bytes else None


def answered() -> Iterator[tuple[str, int, ModelShape, LedgerLine]]:
    for row in class_rows():
        if row["model_type"] not in NO_MODELS and (found := counted(row["config"])):
            yield row["model_type"], 2 * PUBLISHED.get(row["model_type"], row["parameters"]), *found


def test_every_class_is_counted_or_called_unknown() -> None:
    """Guards against figures that pass for exact: the true bytes are inside each range that is given."""
    wrong = [name for name, true, _, line in answered() if not (line.low or 0) <= true <= (line.high or 0)]
    assert wrong == []


def test_narrow_ranges_are_for_what_is_understood() -> None:
    """Guards the count itself: without a doubt it is within 3 % for every class, and most classes have none."""
    sure = [
        (name, sum(part.bytes for part in main(found)) / true - 1)
        for name, true, found, _ in answered()
        if not found.loose and not found.senses and not found.tables_unknown
    ]
    assert [(name, f"{off:+.1%}") for name, off in sure if abs(off) > 0.03] == []
    assert len(sure) >= 95


@for_each(
    "key", ("expert_ffn_widths", "moe_inner_size", "num_mem_blocks", "block_ffn_rank", "n_loops", "ffn_multiplier")
)
def test_a_key_that_sizes_experts_and_is_not_understood(key: str) -> None:
    """Guards the next LongCat: what may change the weights several times over makes them unknown."""
    found = parse(json.dumps(PLAIN | {key: 16}))
    assert isinstance(found, ModelShape) and found.unread == key and key in missing(found)
    line = rank_weights(recipe(model_shape("qwen3-8b")), found, None)
    assert not line.known and key in line.why


@for_each(
    "key, value", (("latent_sum_dim", 64), ("num_memory_slots", 32), ("adapter_rank", 128), ("hidden_multiplier", 2))
)
def test_another_key_that_looks_like_a_size(key: str, value: int) -> None:
    """Guards that such a key widens the range."""
    found, usual = counted(PLAIN | {key: value}), counted(PLAIN)
    assert found and usual and found[0].loose and not usual[0].loose
    assert (found[1].low or 0) < (usual[1].low or 0) and (found[1].high or 0) > (usual[1].high or 0)


@for_each(
    "key, value",
    (("router_aux_loss_coef", 0.01), ("moe_router_topk_scaling", 2), ("expert_scale", 1), ("residual_multiplier", 0.2)),
)
def test_a_key_without_a_size_changes_nothing(key: str, value: float) -> None:
    found = parse(json.dumps(PLAIN | {key: value}))
    assert isinstance(found, ModelShape) and not found.unread and not found.loose


def test_a_list_of_layers_that_is_too_short() -> None:
    """Guards half a model: a list with fewer entries than layers contradicts the count."""
    found = parse(json.dumps(PLAIN | {"layer_types": ["full_attention"] * 6}))
    assert not isinstance(found, ModelShape) and "layer_types" in found.why


@for_each(
    "key, value",
    (("hidden_size", 10**18), ("num_hidden_layers", -4), ("vocab_size", -1), ("num_experts", 10**12),
     ("intermediate_size", 10**30), ("num_attention_heads", -16), ("max_position_embeddings", 10**18),
     ("max_position_embeddings", -1)),
)  # fmt: skip
def test_absurd_numbers_are_named(key: str, value: int) -> None:
    found = parse(json.dumps(PLAIN | {key: value}))
    assert not isinstance(found, ModelShape) and key in found.why and len(found.why) < 120
