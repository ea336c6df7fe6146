"""Deployments whose speed somebody published, as recipes: shared by the tests of speed."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import EngineChoice, Model, Parallelism, Recipe, Serving, Speculation
from unit.facts.test_model_config import read

DATA = Path(__file__).parents[2] / "data" / "models"
RDMA = {"NCCL_NET": "IB", "NCCL_IB_DISABLE": "0"}
GB = 10**9


def model_shape(name: str) -> ModelShape:
    return read(json.loads((DATA / f"{name}.config.json").read_text()))


V4, QWEN8, QWEN30, M27, OSS, QWEN36, SUPER, GEMMA = map(
    model_shape,
    (
        "deepseek-v4-flash",
        "qwen3-8b",
        "qwen3-30b-a3b",
        "minimax-m2.7-nvfp4",
        "gpt-oss-120b",
        "qwen3.6-35b-a3b",
        "nemotron-3-super",
        "gemma-4-26b-a4b",
    ),
)
# NVFP4 in every layer, 16 inputs a scale, as heitor-mocelin's build of this model.
QWEN8_FP4 = replace(QWEN8, format="nvfp4", group=16)


def recipe(
    tp: int = 1, *, flags: Mapping[str, Any] | None = None, env: Mapping[str, str] | None = None, **more: Any
) -> Recipe:
    """A vLLM recipe over as many nodes as ranks; more: fields of Serving, and speculation as (method, tokens)."""
    drafts = Speculation(*more.pop("speculation", ()))
    split = more.pop("split", Parallelism(tp))
    return Recipe(
        "m",
        "m",
        Model("org/m"),
        EngineChoice(more.pop("engine", "vllm"), "0.21.0"),
        split.world_size,
        parallelism=split,
        serving=Serving(**more),
        speculation=drafts,
        flags=flags or {},
        env=env or {},
    )


# Reports 003 and 004: two nodes over RDMA, 1,000,000 tokens, six sequences, FP8 KV, MTP with two tokens.
SEED = recipe(2, env=RDMA, context=1_000_000, sequences=6, batched_tokens=8192, kv_dtype="fp8", speculation=("mtp", 2))
SEED_SIZE = 149 * 1024**3
