"""The recipes that can use a checkpoint on a disk, and the things that could go from a node without room."""

from dataclasses import replace
from typing import Any

import pytest

from sparkwright.domain.checkpoint import Checkpoint, Stored, Usability, Use
from sparkwright.domain.facts import NOT_ASKED, GpuProcess, NodeFacts, RankStatus, Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import EngineChoice, Model, Recipe, Speculation
from sparkwright.planner.usable import list_uses, other_checkpoints, recipe_use, stoppable
from unit.for_each import for_each

SHAPE = ModelShape(62, 48, 8, "MiniMaxM2ForCausalLM", hidden=3072, experts=256, format="fp8", mtp_layers=1)
NVFP4 = replace(SHAPE, format="bf16", expert_format="nvfp4", mtp_layers=0)
RECIPE = Recipe("m2", "M2", Model("MiniMaxAI/M2", shape=SHAPE), EngineChoice("vllm", "0.21.0"))
LLAMA = replace(RECIPE, name="m2-gguf", model=Model(path="m2.gguf", shape=SHAPE), engine=EngineChoice("llama-cpp", "9"))


def stored(name: str = "", place: str = "", shape: ModelShape | None = NVFP4, **more: Any) -> Stored:
    path = place if place.startswith("/") else f"/hub/{name}"
    size, revision = more.pop("size", 100), more.pop("revision", "abc")
    written = more.pop("format", "nvfp4 experts, bf16")
    files = Checkpoint(path, path, revision if name else "", size, 3, weights=size, shape=shape)
    return Stored(more.pop("node", "spark-1"), name, place, written, files, **more)


def found_use(one: Stored, recipe: Recipe = RECIPE) -> Use:
    what = recipe_use(recipe, one, recipe.model.shape)
    assert what
    return what


def test_the_recipes_own_is_its_own() -> None:
    """The checkpoint is known by its id, whatever the revision if the recipe pins none."""
    assert found_use(stored("MiniMaxAI/M2")) == Use("m2", Usability.YES)
    unfinished = stored("MiniMaxAI/M2", missing=("x.incomplete",))
    assert found_use(unfinished).why == "once it is complete (x.incomplete)"
    pinned = replace(RECIPE, model=replace(RECIPE.model, revision="def"))
    assert found_use(stored("MiniMaxAI/M2"), pinned).change == (("model.revision", "abc"),)


@for_each(
    "path, place, same",
    [
        ("/models/m2", "/models/m2", True),
        ("/models/m2/", "/models/m2", True),
        ("/models/m2", "/mnt/models/m2", False),
        ("m2", "/home/ai/models/m2", True),
        ("m2", "/home/ai/models/not-m2", False),
        ("~/big/m2", "/home/ai/big/m2", True),
    ],
)
def test_a_path_is_meant_as_the_recipe_means_it(path: str, place: str, same: bool) -> None:
    """Absolute, from home, or below the node's models folder."""
    recipe = replace(RECIPE, model=Model(path=path))
    assert (recipe_use(recipe, stored(place=place), None) is not None) is same


def test_the_same_model_in_another_form_could_serve() -> None:
    """The answer has the keys to write, the other format, and the recipe's lack."""
    what = found_use(stored("saricles/M2-NVFP4"))
    assert (what.how, what.change) == (Usability.COULD, (("model.id", "saricles/M2-NVFP4"),))
    assert what.why == "nvfp4 experts, bf16 instead of fp8"
    drafting = replace(RECIPE, speculation=Speculation("mtp", 2))
    assert found_use(stored("x/y"), drafting).why.endswith("speculation.method mtp has no draft layers there")
    assert found_use(stored(place="/models/m2-fp4")).change == (("model.path", "/models/m2-fp4"),)


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        (replace(NVFP4, layers=48), "another model of the family: 48 layers, not 62"),
        (replace(NVFP4, kv_heads=4), "another model of the family: 4 KV heads, not 8"),
        (replace(NVFP4, hidden=4096), "another model of the family: 4096 wide, not 3072"),
        (replace(NVFP4, latent=0, experts=128), "another model of the family: 128 experts, not 256"),
    ],
)
def test_another_size_is_another_model(shape: ModelShape, why: str) -> None:
    """The same architecture does not make it the same model."""
    assert (found_use(stored("x/y", shape=shape)).how, found_use(stored("x/y", shape=shape)).why) == (Usability.NO, why)


def test_strangers_have_nothing_to_do_with_it() -> None:
    """Another architecture, a config that cannot be read, a simulated recipe."""
    assert recipe_use(RECIPE, stored("x/y", shape=replace(NVFP4, architecture="Other")), SHAPE) is None
    assert recipe_use(RECIPE, stored("x/y", shape=None), SHAPE) is None
    assert recipe_use(replace(RECIPE, model=Model("a/b")), stored("x/y"), None) is None
    made_up = replace(RECIPE, model=replace(RECIPE.model, simulated=True))
    assert list_uses(stored("MiniMaxAI/M2"), [made_up]) == ()


def test_gguf_is_for_llama_cpp_only() -> None:
    """Its header names the architecture in another way; the dimensions report that it is the same model."""
    shape = replace(NVFP4, architecture="minimax-m2", quantization="gguf")
    one = stored("x/GGUF", "q4/m2.gguf", shape, format="gguf Q4_K_M")
    assert found_use(one).why == "vllm recipes are not for GGUF files"
    assert found_use(one, LLAMA).change == (("model.path", "/hub/x/GGUF"),)
    assert found_use(stored("x/y"), LLAMA).why == "llama-cpp recipes are not for safetensors files"


def test_a_checkpoint_on_a_disk_reports_the_dimensions() -> None:
    """A recipe without a published shape is judged by its own files, wherever they are."""
    bare = replace(RECIPE, model=Model("MiniMaxAI/M2"))
    own, other = stored("MiniMaxAI/M2", shape=SHAPE), stored("x/y")
    assert list_uses(other, [bare]) == ()
    assert [one.how for one in list_uses(other, [bare], [own, other])] == [Usability.COULD]


def test_the_smallest_other_checkpoint_comes_first() -> None:
    """Whole ones only, each once however many nodes have it; never the recipe's own."""
    big, small = stored("x/big", size=300), stored("x/small", size=100)
    lot = [big, replace(big, node="spark-2"), small, stored("x/half", missing=("y",)), stored("MiniMaxAI/M2", size=1)]
    assert [one.id for one, _ in other_checkpoints(RECIPE, lot)] == ["x/small", "x/big"]


def test_processes_that_could_be_stopped() -> None:
    """The largest first; none where our own ranks run, for `down` ends those, and none where nobody knows."""
    lot = (GpuProcess(1, "Xorg", 10), GpuProcess(2, "ollama", 900), GpuProcess(3, "x", Unknown("[N/A]")))
    facts = NodeFacts("spark-1", 0.0, gpu_processes=lot, ranks=())
    assert [one.name for one in stoppable(facts)] == ["ollama", "Xorg"]
    rank = RankStatus("m2", 0, "spark-1", "docker", "running", "h")
    assert stoppable(replace(facts, ranks=(rank,))) == ()
    assert stoppable(replace(facts, ranks=(replace(rank, state="exited"),))) != ()
    assert stoppable(replace(facts, gpu_processes=NOT_ASKED)) == ()
