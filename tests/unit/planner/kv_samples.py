"""Recipes for tests of the KV cache, one line each, and the shapes of real configs under tests/data/models."""

from typing import Any

from sparkwright.domain.recipe import EngineChoice, Model, Parallelism, Recipe, Serving, Speculation
from unit.planner.memory_samples import CONFIGS, model_shape

__all__ = ["CONFIGS", "model_shape", "recipe"]


def recipe(context: int = 0, version: str = "0.21.0", engine: str = "vllm", **more: Any) -> Recipe:
    """more: tp, pp, kv (its type), batched, sequences, draft=(method, tokens), and flags of the engine."""
    split = Parallelism(more.pop("tp", 1), more.pop("pp", 1))
    limits = {"sequences": more.pop("sequences", 0), "batched_tokens": more.pop("batched", 8192)}
    serving = Serving(context=context, kv_dtype=more.pop("kv", ""), **limits)
    drafts = Speculation(*more.pop("draft", ("", 0)))
    flags = {name.replace("_", "-"): value for name, value in more.items()}
    made = EngineChoice(engine, version)
    return Recipe("m", "m", Model("org/m"), made, parallelism=split, serving=serving, speculation=drafts, flags=flags)
