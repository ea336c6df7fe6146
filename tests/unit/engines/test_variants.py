"""Known forks as data: `engine.variant` adds a fork's options and variables to its base engine."""

import json

import pytest
from click.testing import CliRunner

from sparkwright.cli.main import main
from sparkwright.domain.errors import RecipeError
from sparkwright.engines.catalog import rehearse
from sparkwright.engines.flag_data import read_data, versions
from sparkwright.engines.variants import shipped_variants
from sparkwright.recipes.importers.draft import ImportOptions
from sparkwright.recipes.importers.importer import import_recipe
from sparkwright.recipes.load import load_recipe

RECIPE = """name: r
title: t
model: {id: org/m}
engine: {name: vllm, version: 0.26.0, image: own/vllm:x, image_note: n VARIANT}
env: {VLLM_USE_B12X_MOE: "1", VLLM_DCP_QUERY_SPLIT: "1"}
flags: {decode-prefill-token-budget: 2048, moe-backend: b12x}
"""


def blocked(variant):
    recipe = load_recipe(RECIPE.replace("VARIANT", f", variant: {variant}" if variant else ""), "r.yaml")
    named = [found.subject for found in rehearse(recipe) if found.code in ("ENG001", "ENG002", "ENG008")]
    return " ".join(named), recipe


def test_a_variant_adds_options_and_variables_of_its_build():
    without, plain = blocked("")
    for name in ("VLLM_USE_B12X_MOE", "VLLM_DCP_QUERY_SPLIT", "decode-prefill-token-budget", "moe-backend"):
        assert name in without
    some, _ = blocked("b12x")
    assert "B12X" not in some and "moe-backend" not in some and "VLLM_DCP_QUERY_SPLIT" in some
    none, both = blocked("b12x+gb10-glm")
    assert none == "" and both.hash == plain.hash


@pytest.mark.parametrize(("engine", "variant"), [("vllm", "b13x"), ("sglang", "b12x")])
def test_a_variant_that_the_engine_does_not_have_is_refused(engine, variant):
    text = RECIPE.replace("VARIANT", f", variant: {variant}").replace("name: vllm, version: 0.26.0", f"name: {engine}")
    with pytest.raises(RecipeError, match=f"engine.variant.*{variant}.*known for {engine}"):
        load_recipe(text, "r.yaml")


def test_what_tells_a_fork_is_in_no_release():
    for variant in shipped_variants().values():
        tables = [read_data(variant.engine, version) for version in versions(variant.engine)]
        assert variant.see and variant.env + variant.flags
        for flag in variant.flags:
            assert "." in flag or not any(data.find(f"--{flag}") for data in tables), flag


def test_an_import_names_the_fork_and_what_it_does_not_cover():
    text = (
        "model: org/m\nruntime: vllm\ncontainer: own/vllm:0.26.0-b12x\n"
        "env: {VLLM_USE_B12X_MOE: 1, VLLM_OTHER_THING: 1}\ncommand: vllm serve {model}\n"
    )
    made = import_recipe(text, "r.yaml", ImportOptions())
    recipe = load_recipe(made.text, "made.yaml")
    assert (recipe.engine.variant, recipe.engine.extra_env) == ("b12x", ("VLLM_OTHER_THING",))
    assert any(note.startswith("engine.variant: b12x is written") for note in made.notes)


def test_engines_list_has_the_forks():
    done = CliRunner().invoke(main, ["engines", "list", "--json"])
    found = {one["variant"]: one for one in json.loads(done.output)["variants"]}
    assert found["b12x"]["engine"] == "vllm" and "VLLM_USE_B12X_*" in found["b12x"]["adds"]
