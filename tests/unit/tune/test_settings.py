"""The settings of an engine for a search, from its data and from the command line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sparkwright.domain.errors import UsageError
from sparkwright.domain.recipe import EngineChoice, Model, Recipe, Serving, Speculation
from sparkwright.domain.tuning import TuneGoal
from sparkwright.engines.catalog import ENGINES
from sparkwright.tune.settings import add_settings, own_value, settings

RECIPE = Recipe("a", "A", Model(id="a/b"), EngineChoice("vllm", "0.21.0"), serving=Serving(batched_tokens=4096))


def setting_names(recipe: Recipe, goal: TuneGoal = TuneGoal.THROUGHPUT, cores: int = 8) -> set[str]:
    return {one.name for one in settings(recipe, goal, cores)}


def test_every_engine_has_settings() -> None:
    """Each engine with a module has values for each goal in its file, or in the file that it shares."""
    for name in ENGINES:
        for goal in TuneGoal:
            assert setting_names(replace(RECIPE, engine=EngineChoice(name, "1.0")), goal), (name, goal)


def test_what_a_recipe_lacks_is_not_searched() -> None:
    """Speculation depth needs speculation, NCCL more than one node, and latency no number of sequences."""
    assert not setting_names(RECIPE) & {"speculation", "nccl-protocol"}
    both, more = replace(RECIPE, nodes=2, speculation=Speculation("mtp", 1)), {"speculation", "nccl-protocol"}
    for engine in ("vllm", "sglang", "trtllm"):
        assert setting_names(replace(both, engine=EngineChoice(engine, "1.0"))) >= more
    assert "sequences" in setting_names(RECIPE) and "sequences" not in setting_names(RECIPE, TuneGoal.LATENCY)


def test_the_own_value_comes_first() -> None:
    """The own value comes first, once; shares of cores are threads, none where the cores are not known."""
    (batched,) = [one for one in settings(RECIPE, TuneGoal.LATENCY, 8) if one.name == "batched-tokens"]
    assert batched.values == (4096, 2048, 8192, 16384)
    llama = replace(RECIPE, engine=EngineChoice("llama-cpp", "1.0"), flags={"--threads": 4})
    (threads,) = [one for one in settings(llama, TuneGoal.LATENCY, 20) if one.name == "threads"]
    assert threads.values == (4, 5, 10, 15, 20)
    assert "threads" not in setting_names(llama, cores=0)


def test_values_of_the_command_line() -> None:
    """They take the place of the table's; environment values are text, others numbers, switches or words."""
    found = {one.key: one for one in settings(RECIPE, TuneGoal.LATENCY, 8)}
    made = {one.key: one for one in add_settings(RECIPE, tuple(found.values()), ("serving.batched_tokens=64,128",))}
    assert made["serving.batched_tokens"].values == (4096, 64, 128)
    (one,) = add_settings(RECIPE, (), ("env.NCCL_ALGO=1,Ring",))
    assert one.values == (None, "1", "Ring")
    (one,) = add_settings(RECIPE, (), ("flags.async-scheduling=true,0.5",))
    assert one.values == (None, True, 0.5)


@pytest.mark.parametrize("text", ["serving", "serving=1", "serving.port", "model.id=x", "serving.nothing=1", "x.y=1"])
def test_odd_values(text: str) -> None:
    """A key that no recipe has, or that a search may not touch, is a usage error."""
    with pytest.raises(UsageError):
        add_settings(RECIPE, (), (text,))


def test_own_values() -> None:
    """A value that the recipe leaves to its engine is None."""
    assert own_value(RECIPE, "serving.batched_tokens") == 4096
    assert own_value(RECIPE, "serving.sequences") is None and own_value(RECIPE, "env.X") is None
