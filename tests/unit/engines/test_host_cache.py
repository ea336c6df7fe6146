"""serving.host_cache: the options of each engine, the bytes that the planner counts, and engines that have none."""

from dataclasses import replace

import pytest

from sparkwright.domain.errors import RecipeError
from sparkwright.domain.recipe import EngineChoice, Model, Parallelism, Recipe, Runtime, Serving
from sparkwright.domain.units import GIB
from sparkwright.engines.catalog import engine_of, imagined_ranks, rehearse
from sparkwright.recipes.load import load_recipe
from unit.for_each import for_each

BASE = Recipe(
    name="tiny",
    title="A cache in host memory",
    model=Model(path="tiny.gguf", served_name="tiny"),
    engine=EngineChoice("vllm", "0.26.0", Runtime.DOCKER, image="vllm/vllm-openai:v0.26.0"),
    nodes=2,
    parallelism=Parallelism(tp=2),
    serving=Serving(context=8192, host_cache=8 * GIB),
)


def recipe_for(name: str, version: str, **changes: object) -> Recipe:
    return replace(BASE, engine=replace(BASE.engine, name=name, version=version), **changes)  # type: ignore[arg-type]


ALONE = {"nodes": 1, "parallelism": Parallelism()}
CASES = [
    ("vllm", "0.26.0", {}, ("--kv-offloading-size", "16"), 8 * GIB),
    ("vllm", "0.33.0", ALONE, ("--kv-offloading-size", "8"), 8 * GIB),
    ("sglang", "0.5.17", {}, ("--hicache-size", "8"), 8e9),
    ("llama-cpp", "b7000", ALONE, ("--cache-ram", "8192"), 8 * GIB),
]


@for_each("name, version, changes, words, size", CASES)
def test_each_engine_gets_its_own_option_and_the_plan_its_bytes(
    name: str, version: str, changes: dict[str, object], words: tuple[str, str], size: float
) -> None:
    """Guards the sum over ranks (vLLM), a rank's own (SGLang) and MiB (llama.cpp); each version knows the option."""
    recipe = recipe_for(name, version, **changes)
    argv = imagined_ranks(recipe)[0].argv
    assert argv[argv.index(words[0]) + 1] == words[1]
    assert ("--enable-hierarchical-cache" in argv) == (name == "sglang")
    found = engine_of(recipe).traits.tier(recipe, 20 * GIB)
    assert found[0] == size and found[1]
    assert not [one for one in rehearse(recipe) if "cache" in one.evidence and one.code != "ENG034"]


@for_each("name, version", [("vllm", "0.26.0"), ("sglang", "0.5.17"), ("llama-cpp", "b7000")])
def test_without_the_key_nothing_changes(name: str, version: str) -> None:
    """Guards every recipe that does not ask for it."""
    recipe = recipe_for(name, version, serving=Serving(context=8192), **ALONE)
    words = " ".join(imagined_ranks(recipe)[0].argv)
    assert "offloading" not in words and "hicache" not in words and "cache-ram" not in words
    assert engine_of(recipe).traits.tier(recipe, 20 * GIB)[0] == 0


def test_the_recipe_s_own_flag_goes_first() -> None:
    """Guards who knows the engine's option better."""
    recipe = recipe_for("vllm", "0.26.0", flags={"kv-offloading-size": 3})
    argv = imagined_ranks(recipe)[0].argv
    assert argv[argv.index("--kv-offloading-size") + 1] == "3"
    assert engine_of(recipe).traits.tier(recipe, 0)[0] == 1.5 * GIB


def test_an_engine_without_one_is_named() -> None:
    """Guards a key that would be dropped silently."""
    recipe = recipe_for("trtllm", "1.2.0")
    assert "ENG041" in {one.code for one in rehearse(recipe)}
    assert "ENG041" not in {one.code for one in rehearse(replace(recipe, serving=Serving(context=8192)))}


TEXT = """
name: tiny
title: tiny
model: {id: a/b, served_name: tiny}
engine: {name: vllm, version: 0.26.0, image: "vllm/vllm-openai:v0.26.0"}
nodes: 1
serving: {context: 8192, host_cache: SIZE}
"""


@pytest.mark.parametrize("size", ["10 MiB", "100 GiB", "much", "-1", "true"])
def test_bad_sizes_are_named(size: str) -> None:
    """Guards sizes that no node has, and words."""
    with pytest.raises(RecipeError, match=r"tiny.yaml:7: .*host_cache"):
        load_recipe(TEXT.replace("SIZE", size), "tiny.yaml")
    assert load_recipe(TEXT.replace("SIZE", "8 GiB"), "tiny.yaml").serving.host_cache == 8 * GIB
