"""An own entrypoint: its words are none of the engine's options, and a shell's text gets the rank's words as `$@`."""

import subprocess
from dataclasses import replace

import pytest

from sparkwright.domain.recipe import EngineChoice, Model, Recipe, Runtime
from sparkwright.engines.catalog import imagined_ranks, rehearse
from unit.engines.samples import small_recipe

ENGINES = {"vllm": "0.33.0", "sglang": "0.5.23", "llama-cpp": "2026.10.11549"}
SAYS = 'echo "$0:" "$@"'


def recipe_with(engine: str, runtime: Runtime, *entrypoint: str) -> Recipe:
    image = "org/image:1" if runtime is Runtime.DOCKER else ""
    recipe = small_recipe(EngineChoice(engine, ENGINES[engine], runtime, image=image, entrypoint=entrypoint or None))
    return replace(recipe, model=Model(path="/m/tiny.gguf", served_name="tiny"))


@pytest.mark.parametrize("runtime", list(Runtime))
@pytest.mark.parametrize("engine", list(ENGINES))
def test_a_shell_gives_the_ranks_words_to_its_text(engine: str, runtime: Runtime) -> None:
    """Run for real: without a name before them the first word would be lost as `$0`."""
    plain = imagined_ranks(recipe_with(engine, runtime, "/bin/echo"))[0]
    (rank,) = imagined_ranks(recipe_with(engine, runtime, "/bin/sh", "-c", SAYS))
    wanted = plain.argv if runtime is Runtime.DOCKER else plain.argv[1:]
    done = subprocess.run([*(rank.entrypoint or ()), *rank.argv], capture_output=True, text=True, check=True)
    assert done.stdout == f"/bin/sh: {' '.join(wanted)}\n"


@pytest.mark.parametrize("runtime", list(Runtime))
@pytest.mark.parametrize("engine", list(ENGINES))
@pytest.mark.parametrize("entrypoint", [("bash", "-lc", 'exec run "$@"'), ("/usr/bin/env", "-i", "X=1", "run")])
def test_its_own_options_are_not_taken_for_the_engines(
    engine: str, runtime: Runtime, entrypoint: tuple[str, ...]
) -> None:
    found = {one.code for one in rehearse(recipe_with(engine, runtime, *entrypoint))}
    assert not found & {"ENG001", "ENG003", "ENG040"}


@pytest.mark.parametrize("text", ["exec vllm serve /m", "vllm serve $MODEL --port 8000"])
def test_a_text_that_drops_them_is_named(text: str) -> None:
    (found,) = [one for one in rehearse(recipe_with("vllm", Runtime.DOCKER, "sh", "-c", text)) if one.code == "ENG040"]
    assert found.severity.stops and text in found.evidence


def test_a_name_that_the_owner_has_given_stays() -> None:
    (rank,) = imagined_ranks(recipe_with("vllm", Runtime.DOCKER, "sh", "-c", 'exec vllm "$@"', "rank"))
    assert rank.entrypoint == ("sh", "-c", 'exec vllm "$@"', "rank")
