"""A built image's name follows from what goes into it, and its labels report where that came from."""

from dataclasses import replace

import pytest

from sparkwright.domain.image import PREFIX, own_labels
from sparkwright.domain.recipe import Build, BuildSource, EngineChoice, Model, Recipe, Runtime
from sparkwright.recipes.dockerfile import archive, content_hash, image_name, labels, served
from unit.for_each import for_each

BUILD = Build("base:1", "a test", sources=(BuildSource("vllm", "https://example.org/vllm", "ab" * 20),))
RECIPE = Recipe("mine", "A build", Model("org/name"), EngineChoice("vllm", "0.21.0"), build=BUILD)


def test_the_name_is_the_hash_of_what_goes_in() -> None:
    """The same parts give the same name, so that nothing is built twice."""
    assert image_name(RECIPE, BUILD) == f"sparkwright/mine:{content_hash(RECIPE, BUILD)[:12]}"
    assert image_name(replace(RECIPE, title="Another title"), BUILD) == image_name(RECIPE, BUILD)


@for_each(
    "changed",
    [
        {"base": "base:2"},
        {"platform": "linux/amd64"},
        {"cuda_arch": "12.0"},
        {"env": {"A": "1"}},
        {"steps": ("true",)},
        {"sources": (BuildSource("vllm", "https://example.org/vllm", "cd" * 20),)},
        {"sources": ()},
    ],
)
def test_another_part_is_another_name(changed: dict[str, object]) -> None:
    """An image of old parts is never taken for one of new ones."""
    assert image_name(RECIPE, replace(BUILD, **changed)) != image_name(RECIPE, BUILD)  # type: ignore[arg-type]


def test_a_recipe_without_image_serves_the_built_one() -> None:
    """Plan, staging and labels then know it as any other image."""
    engine = served(RECIPE).engine
    assert engine.image == image_name(RECIPE, BUILD) and engine.image_note


@pytest.mark.parametrize("engine", [{"image": "other:1"}, {"runtime": Runtime.PROCESS}])
def test_a_named_image_is_left_alone(engine: dict[str, object]) -> None:
    """The recipe's named image is served, and a process needs none."""
    given = replace(RECIPE, engine=replace(RECIPE.engine, **engine))  # type: ignore[arg-type]
    assert served(given) == given


def test_labels_report_all_parts() -> None:
    """Containers inherit them, so none may be one of those by which ranks are found."""
    marks = labels(RECIPE, BUILD, "0.1.0", 1_795_000_000)
    assert all(name.startswith(PREFIX) for name in marks)
    assert own_labels({**marks, "other": "x"})["sources"] == f"vllm=https://example.org/vllm@{'ab' * 20}"
    assert own_labels(marks)["base"] == "base:1" and own_labels(marks)["date"] == "2026-11-18T11:06:40+00:00"
    assert own_labels(marks)["content"] == content_hash(RECIPE, BUILD)


def test_the_context_is_the_same_bytes_for_the_same_files() -> None:
    """Docker's cache compares what it is given."""
    assert archive({"a": "1", "b": "2"}) == archive({"a": "1", "b": "2"}) != archive({"a": "1", "b": "3"})
