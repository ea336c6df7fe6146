"""The shipped recipes: each loads with each profile, and none hides where its figures come from."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.adapters.files import Places, find_recipe, recipe_names
from sparkwright.checks.catalog import check_all
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.facts import FabricChoice
from sparkwright.domain.finding import Severity
from sparkwright.domain.ledger import WEIGHTS
from sparkwright.domain.plan import Placement
from sparkwright.domain.recipe import RecipeState, Runtime
from sparkwright.engines.catalog import engine, review
from sparkwright.facts.model_config import parse
from sparkwright.planner.ledger import ledger
from sparkwright.planner.parts import missing, settled
from sparkwright.recipes.load import load_recipe
from unit.checks.samples import context, healthy, memory
from unit.engines.samples import hub_context, local_context
from unit.for_each import for_each

NOWHERE = Places(Path("/nonexistent"), Path("/nonexistent"))
NAMES = recipe_names(NOWHERE)


def variants():
    for name in NAMES:
        found = find_recipe(name, NOWHERE)
        for profile in ("", *load_recipe(found.text, found.source).profiles):
            yield pytest.param(load_recipe(found.text, found.source, profile), id=f"{name}@{profile}")


VARIANTS = list(variants())


def shipped(name, profile=""):
    found = find_recipe(name, NOWHERE)
    return load_recipe(found.text, found.source, profile)


TINY = ("simulator", "simulator-deepseek", "tiny-llama-cpp")
READY = [p for p in VARIANTS if p.values[0].state is RecipeState.READY]
REFUSED = [p for p in VARIANTS if p.values[0].state is RecipeState.REFUSED]
# What the engine's data says of a flag or variable: unknown, wrong value, renamed, on its way out, not read.
OF_FLAGS = {"ENG001", "ENG002", "ENG003", "ENG004", "ENG006", "ENG007", "ENG008", "ENG009"}


def placed(count):
    """Nodes with a fabric, as many as a recipe wants."""
    nodes = tuple(f"spark-{i}" for i in range(1, count + 1))
    return Placement(
        nodes, {n: FabricChoice(f"192.168.100.{i}", "enp1s0f0np0", ("rocep1s0f0",)) for i, n in enumerate(nodes, 10)}
    )


def rendered(recipe):
    context = local_context(recipe.nodes, f"/home/ai/models/{recipe.model.path}")
    if not recipe.model.path:
        context = hub_context(recipe.nodes)
    return engine(recipe.engine.name).render(recipe, placed(recipe.nodes), context)


def test_what_is_shipped():
    """The recipes that the notes of the field describe, and the best-documented of today's models."""
    assert (
        "deepseek-v4-flash", "deepseek-v4-flash-0731", "deepseek-v4-flash-built", "deepseek-v4-flash-sglang",
        "deepseek-v4.1-flash", "deepseek-v4.1-flash-exl3", "gemma-4-26b-a4b", "glm-5.3-flash", "glm-5.3-flash-exl3",
        "glm-5.3-flash-exl3-vllm", "gpt-oss-120b", "gpt-oss-20b", "inkling-small",
        "laguna-s-2.1",
        "minimax-m2.7-fp8-sglang", "minimax-m2.7-nvfp4", "minimax-m3", "nemotron-3-nano-30b", "nemotron-3-super-120b",
        "nemotron-3-super-llama-cpp-rpc", "qwen3-235b-a22b-gptq-int4", "qwen3-235b-a22b-nvfp4-trtllm",
        "qwen3-coder-next", "qwen3-vl-embedding-8b", "qwen3-vl-reranker-8b", "qwen3.5-122b-a10b", "qwen3.6-27b-fp8",
        "qwen3.6-35b-a3b", "qwen3.8-27b", "qwen3.8-flash-next", "qwen3.8-flash-next-single", *TINY,
    ) == NAMES  # fmt: skip


@for_each("recipe", READY)
def test_what_is_ready_is_right_for_its_engine(recipe):
    """Every flag and variable of a ready recipe is one that its engine's version has, with a value that it takes."""
    found = review(recipe, rendered(recipe))
    assert not [f for f in found if f.code in OF_FLAGS or f.severity.stops]


@for_each("recipe", [p for p in VARIANTS if p.values[0].state is RecipeState.DOCUMENTED])
def test_what_is_documented_can_be_tried(recipe):
    """Nothing in a documented recipe is known to be wrong; what only a private build has is a warning at most."""
    assert not [f for f in review(recipe, rendered(recipe)) if f.severity.stops]


@for_each("recipe", READY)
def test_what_is_ready_has_a_figure_of_somebody(recipe):
    """`ready` rests on a published measurement; the tiny ones rest on the tests."""
    served = shipped(recipe.name).published + recipe.published
    assert served or recipe.name in TINY


@for_each("recipe", [p for p in VARIANTS if p.values[0].state is not RecipeState.REFUSED])
def test_what_is_shipped_fits(recipe):
    """Freshly started nodes have memory for it and for one request of full length; weights are known."""
    found = ledger(recipe, healthy("spark-1", memory=memory(7)), None, recipe.nodes)
    assert found.lack is None
    assert recipe.model.shape is None or WEIGHTS not in found.unknown


def test_no_quantization_is_named_that_the_engine_has_not():
    """`nvfp4` is no name of vLLM's, and a recipe that is copied would carry it on (ENG009 is a warning only)."""
    given = [p.values[0] for p in VARIANTS if "quantization" in p.values[0].flags]
    found = [finding.title for recipe in given for finding in review(recipe, rendered(recipe))]
    assert given and not [title for title in found if "--quantization" in title]


@pytest.mark.parametrize("recipe", REFUSED)
def test_what_is_refused_has_its_reason_and_what_instead(recipe):
    """The refusal cannot be forced, and names a recipe that is ready for the same number of nodes."""
    alternative = shipped(recipe.instead)
    assert alternative.state is RecipeState.READY and alternative.nodes == recipe.nodes
    (finding,) = (f for f in check_all(context(recipe=recipe)) if f.code == "REC001")
    assert finding.severity is Severity.BLOCK and finding.remedy == f"sparkwright up {recipe.instead}"
    assert finding.evidence == recipe.state_reason and "sm_121" in finding.evidence


def test_no_image_of_ours_can_move():
    """An owner's tag without a digest is a warning; ours have a digest, or a note that says why not."""
    engines = [(p.values[0].label, p.values[0].engine) for p in VARIANTS]
    loose = [label for label, one in engines if one.image and "@sha256:" not in one.image and not one.image_note]
    assert engines and loose == []


def test_both_refusals_of_the_notes_are_there():
    """The two combinations that cost others 27 days."""
    assert [p.values[0].name for p in REFUSED] == ["deepseek-v4-flash-sglang", "minimax-m2.7-fp8-sglang"]


def test_every_engine_has_a_ready_recipe_but_sglang():
    """SGLang's are refused or wait for what only their authors' launchers do."""
    assert {p.values[0].engine.name for p in READY} == {"vllm", "vllm-ray", "trtllm", "llama-cpp", "simulator"}


def test_minimax_profiles():
    """stable and agentic differ in the n-gram drafts alone."""
    stable, agentic = (shipped("minimax-m2.7-nvfp4", p) for p in ("stable", "agentic"))
    assert (stable.speculation.method, agentic.speculation.method, agentic.speculation.tokens) == ("", "ngram", 5)
    assert stable.env == agentic.env and stable.env["VLLM_NVFP4_GEMM_BACKEND"] == "marlin"
    assert stable.flags["compilation-config"]["cudagraph_mode"] == "NONE"
    assert (stable.engine.name, stable.parallelism.tp, stable.serving.memory_fraction) == ("vllm-ray", 2, 0.82)


@for_each("recipe", VARIANTS)
def test_a_shape_can_be_counted(recipe):
    """A shape has all dimensions that the estimate of a split needs; bits a weight may follow from the size."""
    shape = recipe.model.shape
    assert shape is None or missing(settled(shape, recipe.model.size - recipe.model.on_disk)) == ""


def test_minimax_has_the_shape_of_its_published_config():
    """MODEL003 compares them on every node: attention stays BF16 there, only the experts are NVFP4."""
    file = parse((Path(__file__).parents[2] / "data/models/minimax-m2.7-nvfp4.config.json").read_text())
    there = Checkpoint("/m", "/m", "", 1, 1, shape=file)
    found = check_all(replace(context(recipe=shipped("minimax-m2.7-nvfp4")), checkpoints={"spark-1": there}))
    assert "MODEL003" not in {finding.code for finding in found}


@for_each("recipe", VARIANTS)
def test_every_variant_is_complete(recipe):
    """A shipped recipe reports its licence, its conditions, and why it has its state."""
    assert recipe.name in NAMES and recipe.title and recipe.license_note and recipe.conditions and recipe.state_reason
    assert recipe.serving.context and recipe.serving.sequences
    assert recipe.engine.runtime is Runtime.PROCESS or "@sha256:" in recipe.engine.image or recipe.engine.image_note


@for_each("recipe", VARIANTS)
def test_figures_have_public_sources(recipe):
    """Nobody can read our own folders: sources are names or URLs."""
    for figure in recipe.published:
        assert figure.source.startswith("https://") and figure.conditions
    found = find_recipe(recipe.name, NOWHERE)
    assert not re.search(r"shared/|field.guide|seed \d|seeds/", found.text)


def test_file_name_is_recipe_name():
    """`up NAME` finds the file by its name; the deployment carries the one inside."""
    assert [shipped(name).name for name in NAMES] == list(NAMES)


@pytest.mark.parametrize(
    ("profile", "context", "sequences", "pool"),
    [("1m", 1_000_000, 6, 1_430_000), ("512k", 524_288, 16, 1_180_000), ("256k", 262_144, 24, None)],
)
def test_deepseek_profiles(profile, context, sequences, pool):
    """The three published profiles, with the KV pools that the planner must reproduce."""
    recipe = shipped("deepseek-v4-flash", profile)
    assert (recipe.serving.context, recipe.serving.sequences) == (context, sequences)
    assert recipe.serving.memory_fraction == 0.8
    assert [f.value for f in recipe.published if f.what == "KV pool"] == ([pool] if pool else [])
    assert recipe.model.size == 149_000_000_000


def test_deepseek_leaves_the_nodes_facts_to_the_launcher():
    """One value for all ranks would be wrong on one of them."""
    env = shipped("deepseek-v4-flash").env
    assert not {"NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "NCCL_SOCKET_IFNAME", "VLLM_HOST_IP"} & set(env)
    assert env["UCX_MEM_MMAP_HOOK_MODE"] == "none" and env["UCX_RCACHE_MAX_UNRELEASED"] == "1024"


def test_simulators_are_simulated():
    """Simulated is never passed off as real."""
    assert [name for name in NAMES if shipped(name).model.simulated] == ["simulator", "simulator-deepseek"]
    assert shipped("simulator", "docker").engine.runtime is Runtime.DOCKER
    assert shipped("simulator").engine.runtime is Runtime.PROCESS


@pytest.mark.parametrize("name", ["glm-5.3-flash-exl3", "glm-5.3-flash-exl3-vllm"])
def test_exl3_recipes_are_as_published(name):
    """Both EXL3 recipes of GLM-5.3-Flash for two nodes: an image by digest, and figures with their conditions."""
    recipe = shipped(name)
    assert recipe.state is RecipeState.DOCUMENTED and recipe.nodes == 2 and "@sha256:" in recipe.engine.image
    assert len(recipe.published) >= 9 and all(figure.conditions for figure in recipe.published)
    for profile in recipe.profiles:
        other = shipped(name, profile)
        assert (other.engine.image, other.model.id, other.nodes) == (recipe.engine.image, recipe.model.id, 2)
        assert other.hash != recipe.hash


def test_the_exl3_profiles_are_the_kits_table():
    """Context, sequences, cache and drafts of each row of the kit's table of configurations."""
    rows = {}
    for profile in ("", "nvfp4-kv", "1m", "agents", "mtp"):
        recipe = shipped("glm-5.3-flash-exl3-vllm", profile)
        serving = recipe.serving
        rows[profile] = (serving.context, serving.sequences, serving.kv_dtype, recipe.speculation.method)
    assert rows == {
        "": (524288, 4, "fp8_ds_mla", "dflash"),
        "nvfp4-kv": (524288, 4, "nvfp4_ds_mla", "dflash"),
        "1m": (1048576, 4, "nvfp4_ds_mla", "dflash"),
        "agents": (131072, 12, "fp8_ds_mla", ""),
        "mtp": (524288, 4, "fp8_ds_mla", "mtp"),
    }
    assert "model" not in shipped("glm-5.3-flash-exl3-vllm", "mtp").speculation.options
