"""Versions of known engines that do not exist yet, and images without one: validate, plan, status, diagnose go on."""

from dataclasses import replace
from pathlib import Path

import pytest

from fakes.rank_node import Rank
from sparkwright.app.diagnose.examine import examine
from sparkwright.app.plan.planning import make_plan
from sparkwright.app.queries import status
from sparkwright.cli.recipe_validate import rehearsed
from sparkwright.domain.live import DeploymentState
from sparkwright.domain.plan import stopping
from sparkwright.domain.recipe import Recipe
from sparkwright.recipes.load import load_recipe
from unit.app.plan.test_plan import state_of_nodes
from unit.app.scene import make_scene, request
from unit.app.test_status import LABELS, handle

CAPTURES = Path(__file__).resolve().parents[2] / "data/captures"
NEWER_LOG = "what vllm 0.99.0 writes anew: its log was read up to 0.33.0"
NEWER = [
    ("vllm", "0.99.0", "vllm/vllm-openai:v0.99.0", "id: org/m"),
    ("vllm", "0.41.0", "vllm/vllm-openai:v0.41.0", "id: org/m"),
    ("sglang", "0.7.0", "lmsysorg/sglang:v0.7.0", "id: org/m"),
    ("trtllm", "2.5", "nvcr.io/nvidia/tensorrt-llm/release:2.5", "id: org/m"),
    ("llama-cpp", "", "ghcr.io/ggml-org/llama.cpp:server-cuda", "path: /m/a.gguf"),
    ("trtllm", "", "own/trtllm:latest", "id: org/m"),
    ("vllm", "1.2.0", "own/vllm:x", "id: org/m"),
    ("vllm", "", "own/vllm:nightly", "id: org/m"),
    ("vllm-ray", "0.99.0", "own/vllm:x", "id: org/m"),
    ("sglang", "0.9.1", "lmsysorg/sglang:v0.9.1", "id: org/m"),
    ("sglang", "", "own/sglang:dev", "id: org/m"),
    ("trtllm", "2.5.0", "nvcr.io/nvidia/tensorrt-llm/release:2.5.0", "id: org/m"),
    ("llama-cpp", "b99999", "own/llama:x", "path: /m/a.gguf"),
    ("tensorfold", "9.9.9", "own/tensorfold:9.9.9", "id: org/m"),
    ("atlas", "9.9.9", "avarok/atlas-gb10:9.9.9", "id: org/m"),
]
DATA_MISSES = ("ENG005", "ENG001", "ENG002", "ENG003", "ENG004", "ENG008", "ENG009", "ENG030")


def newer_recipe(name: str, version: str, image: str, model: str) -> Recipe:
    nodes = 1 if name == "llama-cpp" else 2
    said = f"version: {version}, " if version else ""
    text = (
        f"name: r\ntitle: t\nmodel: {{{model}, served_name: m}}\nnodes: {nodes}\nparallelism: {{tp: {nodes}}}\n"
        f"engine: {{name: {name}, {said}image: '{image}', image_note: n}}\n"
        "serving: {context: 8192, sequences: 4, memory_fraction: 0.8}\nflags: {option-of-next-year: 1}\n"
    )
    return load_recipe(text, "r.yaml")


@pytest.mark.parametrize(("name", "version", "image", "model"), NEWER)
def test_a_plan_goes_on_with_the_newest_data_and_names_once_what_is_not_known(
    name: str, version: str, image: str, model: str
) -> None:
    recipe = newer_recipe(name, version, image, model)
    assert rehearsed([recipe], "r.yaml").errors == ()
    plan = make_plan(make_scene(recipe.nodes).services, request(recipe=recipe), state_of_nodes("spark-1", "spark-2"))
    assert len(plan.specs) == recipe.nodes
    assert not [one for one in stopping(plan, "") if one.code in DATA_MISSES]
    assert len([one for one in plan.findings if one.code == "ENG005"]) <= 1
    named = [one for one in plan.findings if "next-year" in f"{one.evidence}{one.title}".replace("_", "-")]
    assert [one.code in DATA_MISSES for one in named] == [True]


async def test_status_of_a_version_that_does_not_exist_yet() -> None:
    """The engine's name and version come back from the labels of its ranks."""
    here = make_scene()
    for number in range(2):
        labels = {**LABELS, "engine": "vllm 0.99.0", "rank": str(number)}
        here.nodes[number].ranks[handle(number)] = Rank(labels, ())
    (running,), trouble = await status(here.services)
    assert (running.state, trouble) == (DeploymentState.READY, ())


def worker_killed(version: str) -> bytes:
    """Beginning and end of the log of a worker that was killed, as this version of vLLM would write it."""
    lines = (CAPTURES / "vllm-0.32.0/worker-killed.log").read_text(errors="replace").splitlines(keepends=True)
    return "".join(lines[:30] + lines[-160:]).replace("0.32.0", version).encode()


@pytest.mark.parametrize(("version", "told"), [("0.32.0", 0), ("0.99.0", 1)])
def test_a_failure_has_its_cause_whatever_its_version(version: str, told: int) -> None:
    """The version in a log speaks about ranges of versions; one that does not exist yet hides no other cause."""
    found = examine([("log", [worker_killed(version)])], 2026, {})
    assert (found.causes[0].key, found.untold.count(NEWER_LOG)) == ("peer-rank-died", told)


def test_what_is_new_to_the_data_is_said_once_for_all_logs() -> None:
    """Guards a group of ranks: each of them prints the version."""
    begin = worker_killed("0.99.0")[:4000]
    assert examine([("a", [begin]), ("b", [begin])], 2026, {}).untold.count(NEWER_LOG) == 1


def test_a_version_is_compared_with_the_newest_data_only_by_its_number() -> None:
    """Guards that `plan` of the same recipe with a version of the data has no such doubt."""
    recipe = newer_recipe(*NEWER[0])
    known = replace(recipe, engine=replace(recipe.engine, version="0.33.0"))
    plan = make_plan(make_scene(2).services, request(recipe=known), state_of_nodes("spark-1", "spark-2"))
    assert not [one for one in plan.findings if one.code == "ENG005"]
