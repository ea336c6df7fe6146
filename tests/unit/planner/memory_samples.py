"""Models of our own captures, and recipes for them, to be changed in one place by each test."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from sparkwright.domain.facts import Gpu, Memory, NodeFacts, Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import EngineChoice, Model, Parallelism, Recipe, Serving
from sparkwright.domain.units import GIB
from sparkwright.facts.model_config import parse

CONFIGS = Path(__file__).parents[2] / "data" / "models"
H200 = int(139.8 * GIB)
GB10 = int(121.69 * GIB)


@cache
def model_shape(name: str) -> ModelShape:
    found = parse((CONFIGS / f"{name}.config.json").read_text())
    assert isinstance(found, ModelShape)
    return found


def recipe(of: ModelShape | None, engine: str = "vllm 0.21.0", tp: int = 1, **changes: Any) -> Recipe:
    """changes: fields of the recipe; those of `serving` as a mapping."""
    name, version = engine.split()
    made = Recipe(
        "big",
        "",
        Model("org/big", shape=of),
        EngineChoice(name, version),
        parallelism=Parallelism(tp),
        serving=Serving(**changes.pop("serving", {})),
    )
    return replace(made, **changes)


def gb10_node(taken: float = 6.0) -> NodeFacts:
    """A GB10 with so many GiB in use."""
    free = GB10 - int(taken * GIB)
    gpu = Gpu("NVIDIA GB10", "580", "12.1", Unknown("[N/A]"))
    return NodeFacts("spark-1", 0.0, memory=Memory(GB10, free, free, 0, 0, 0, 0), gpus=(gpu,), gpu_processes=())


def discrete() -> NodeFacts:
    """A machine with one H200, its memory as CUDA counts it."""
    memory = Memory(1024 * GIB, 1024 * GIB, 1000 * GIB, 0, 0, 0, 0)
    gpu = Gpu("NVIDIA H200", "580", "9.0", H200, memory_reserved=0)
    return NodeFacts("h200", 0.0, memory=memory, gpus=(gpu,), gpu_processes=())
