"""The shipped recipes: each loads with each profile, and none hides where its figures come from."""

import re
from pathlib import Path

import pytest

from sparkwright.adapters.files import Places, find_recipe, recipe_names
from sparkwright.domain.recipe import Runtime
from sparkwright.recipes.load import load_recipe

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


def test_what_is_shipped():
    """The recipes of issue 2."""
    assert NAMES == ("deepseek-v4-flash", "tiny-llama-cpp", "twin", "twin-deepseek")


@pytest.mark.parametrize("recipe", VARIANTS)
def test_every_variant_is_complete(recipe):
    """A shipped recipe says its licence, its conditions, and why it has its state."""
    assert recipe.name in NAMES and recipe.title and recipe.license_note and recipe.conditions and recipe.state_reason
    assert recipe.serving.context and recipe.serving.sequences
    assert recipe.engine.runtime is Runtime.PROCESS or "@sha256:" in recipe.engine.image or recipe.engine.image_note


@pytest.mark.parametrize("recipe", VARIANTS)
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


def test_twins_are_simulated():
    """Simulated is never passed off as real."""
    assert [name for name in NAMES if shipped(name).model.simulated] == ["twin", "twin-deepseek"]
    assert shipped("twin", "docker").engine.runtime is Runtime.DOCKER
    assert shipped("twin").engine.runtime is Runtime.PROCESS
