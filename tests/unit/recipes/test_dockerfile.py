"""The rendering of a build: everything is pinned, in an order that a cache can use, for the builders that there are."""

from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.adapters.files import Places, find_recipe
from sparkwright.domain.recipe import Build, BuildSource, EngineChoice, Model, PythonPackages, Recipe
from sparkwright.recipes.dockerfile import CONSTRAINTS, context, environment
from sparkwright.recipes.load import load_recipe

SNAPSHOT = Path(__file__).parents[2] / "data/builds/deepseek-v4-flash-built"
NOWHERE = Places(Path("/nonexistent"), Path("/nonexistent"))
RECIPE = Recipe("mine", "A build", Model("org/name"), EngineChoice("vllm", "0.21.0"))
SOURCE = BuildSource("vllm", "https://github.com/vllm-project/vllm", "ab" * 20, 41834, "0.21.0")
BASE = f"base@sha256:{'1' * 64}"


def rendered(**parts: object) -> dict[str, str]:
    return dict(context(RECIPE, replace(Build(BASE), **parts)))  # type: ignore[arg-type]


def test_the_image_of_deepseek_v4_flash() -> None:
    """The build from pull request 41834 is the one that was read and agreed to; a change of it is seen in review."""
    found = find_recipe("deepseek-v4-flash-built", NOWHERE)
    recipe = load_recipe(found.text, found.source)
    assert recipe.build
    assert dict(context(recipe, recipe.build)) == {path.name: path.read_text() for path in SNAPSHOT.iterdir()}


def test_the_dockerfile_begins_with_the_base_by_its_digest() -> None:
    """The same file gives another image next week without the digest."""
    assert f"FROM {BASE}\n" in rendered()["Dockerfile"]


def test_code_is_compiled_for_gb10_in_the_build_and_later() -> None:
    """ENV and not ARG: the engine compiles kernels while it runs, and for the same target."""
    found = environment(Build(BASE))
    assert found["TORCH_CUDA_ARCH_LIST"] == found["FLASHINFER_CUDA_ARCH_LIST"] == "12.1a"
    assert (found["CUTE_DSL_ARCH"], found["TRITON_PTXAS_PATH"]) == ("sm_121a", "/usr/local/cuda/bin/ptxas")
    assert not {"TORCH_CUDA_ARCH_LIST", "TRITON_PTXAS_PATH"} & set(environment(Build(BASE, cuda_arch="")))


def test_the_ptxas_link_comes_after_everything_that_may_install_triton() -> None:
    """An engine's wheel may install another Triton, with a ptxas of its own that does not know sm_121a."""
    files = rendered(sources=(SOURCE,), python=(PythonPackages(("triton==3.5.0",)),))
    lines = files["Dockerfile"].splitlines()
    order = [lines.index(f"RUN sh /opt/sparkwright/build/{name}") for name in ("source-vllm.sh", "ptxas.sh")]
    assert order == sorted(order)
    assert 'ln -sf /usr/local/cuda/bin/ptxas "$at/backends/nvidia/bin/ptxas"' in files["ptxas.sh"]
    assert "sm_121a" in files["ptxas.sh"]


def test_a_source_is_fetched_by_its_hash_and_looked_at() -> None:
    """No branch, no tag, no pull request's name decides what is built."""
    script = rendered(sources=(SOURCE,))["source-vllm.sh"]
    assert f"git fetch -q --depth 1 https://github.com/vllm-project/vllm {'ab' * 20}\n" in script
    assert f'[ "$(git rev-parse HEAD)" = {"ab" * 20} ]' in script
    assert "pull/" not in script and "clone" not in script


def test_what_is_pinned_stays_pinned() -> None:
    """A wheel that wants another torch must not replace the one for CUDA: later installs keep to the constraints."""
    files = rendered(sources=(SOURCE,), python=(PythonPackages(("torch==2.11.0", "ray[default]==2.50.0")),))
    assert files[CONSTRAINTS] == "torch==2.11.0\nray==2.50.0\n"
    assert f"pip install --constraint /opt/sparkwright/build/{CONSTRAINTS}" in files["source-vllm.sh"]


def test_packages_with_hashes_are_checked_against_them() -> None:
    """pip then wants one for each dependency: a group with hashes names all that it installs."""
    plain, hashed = PythonPackages(("a==1",), "https://index.example/whl"), f"b==2 --hash=sha256:{'0' * 64}"
    text = rendered(python=(plain, PythonPackages((hashed,))))["Dockerfile"]
    first, second = (line for line in text.splitlines() if "pip install" in line)
    assert "--index-url https://index.example/whl" in first and "--require-hashes" not in first
    assert "--no-deps --require-hashes" in second and "--constraint" not in second


def test_debians_docker_can_build_it() -> None:
    """Its classic builder knows neither `RUN --mount` nor here-documents nor `# syntax`."""
    text = rendered(sources=(SOURCE,), packages=("git",), steps=("true",))["Dockerfile"]
    assert "--mount" not in text and "<<" not in text and "# syntax" not in text and text.count("\nFROM ") == 1


@pytest.mark.parametrize("value", ['a "quoted" word', "$HOME/bin", "back\\slash", "two words", "it's"])
def test_values_of_the_environment_arrive_as_written(value: str) -> None:
    """Docker replaces `$NAME` and reads quotes in ENV lines."""
    line = next(one for one in rendered(env={"ODD": value})["Dockerfile"].splitlines() if one.startswith("ENV ODD="))
    quoted = line.removeprefix('ENV ODD="').removesuffix('"')
    assert quoted.replace("\\$", "$").replace('\\"', '"').replace("\\\\", "\\") == value


def test_what_is_not_pinned_is_reported() -> None:
    """Anyone who reads the Dockerfile sees it, on one line."""
    assert "# Not pinned: apt, and\n" not in rendered(unpinned="apt, and\nmore")["Dockerfile"]
    assert "# Not pinned: apt, and more\n" in rendered(unpinned="apt, and\nmore")["Dockerfile"]


def test_the_bases_entrypoint_is_taken_away() -> None:
    """A rank's program is given by the launcher; another program before it would print banners or fail."""
    assert rendered()["Dockerfile"].endswith("ENTRYPOINT []\n")
