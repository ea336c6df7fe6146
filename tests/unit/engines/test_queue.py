"""`serving.queue`: how many requests may wait, in each engine's own count."""

from dataclasses import replace

import pytest

from sparkwright.domain.recipe import EngineChoice, Parallelism, Recipe, Runtime, Serving
from sparkwright.engines.catalog import engine_of, rehearse
from unit.engines.samples import local_context, placement, small_recipe


def head_words(recipe: Recipe) -> tuple[str, ...]:
    context = local_context(recipe.nodes, "/models/qwen3-8b")
    return engine_of(recipe).render(recipe, placement(recipe.nodes), context)[0].engine_words


@pytest.mark.parametrize(
    ("engine", "version", "serving", "dp", "words"),
    [
        ("vllm", "0.33.0", Serving(sequences=16, queue=64), 1, ("--max-num-queued-reqs", "80")),
        ("vllm", "0.33.0", Serving(sequences=16, queue=64), 2, ("--max-num-queued-reqs", "96")),
        ("vllm", "0.33.0", Serving(queue=64), 1, ("--max-num-queued-reqs", "320")),
        ("sglang", "0.5.23", Serving(sequences=16, queue=64), 1, ("--max-queued-requests", "64")),
    ],
)
def test_each_engine_counts_in_its_own_way(
    engine: str, version: str, serving: Serving, dp: int, words: tuple[str, str]
) -> None:
    """Requests in flight for vLLM, over all replicas; waiting ones for SGLang. Its flags know the option."""
    choice = EngineChoice(engine, version, Runtime.PROCESS, venv="/opt/v")
    recipe = replace(small_recipe(choice, dp, serving=serving), parallelism=Parallelism(dp=dp))
    said = head_words(recipe)
    assert said[said.index(words[0]) + 1] == words[1]
    assert not [one for one in rehearse(recipe) if one.code in ("ENG001", "ENG039")]
    assert words[0] not in head_words(replace(recipe, serving=replace(serving, queue=0)))


def test_an_old_version_and_other_engines_are_named() -> None:
    old = small_recipe(EngineChoice("vllm", "0.26.0", Runtime.PROCESS, venv="/opt/v"), serving=Serving(queue=4))
    assert "ENG001" in [one.code for one in rehearse(old)]
    other = small_recipe(
        EngineChoice("llama-cpp", "2026.10.11549", Runtime.PROCESS, venv="/opt/v"), serving=Serving(queue=4)
    )
    assert "ENG039" in [one.code for one in rehearse(other)]
