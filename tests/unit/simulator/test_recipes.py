"""Every shipped recipe of vLLM and SGLang, with its exact words, against the simulator's parsers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from simulators import console
from sparkwright.adapters.files import Places, find_recipe, recipe_names
from sparkwright.domain.facts import FabricChoice
from sparkwright.domain.plan import Placement
from sparkwright.domain.recipe import Recipe
from sparkwright.engines.catalog import engine
from sparkwright.engines.flag_data import nearest, versions
from sparkwright.engines.tables import DATA_OF
from sparkwright.recipes.load import load_recipe
from sparkwright.simulator import options
from unit.engines.samples import local_context

NOWHERE = Places(Path("/nonexistent"), Path("/nonexistent"))


def variants() -> Iterator[Recipe]:
    for name in recipe_names(NOWHERE):
        found = find_recipe(name, NOWHERE)
        for profile in ("", *load_recipe(found.text, found.source).profiles):
            recipe = load_recipe(found.text, found.source, profile)
            if DATA_OF.get(recipe.engine.name, recipe.engine.name) in ("vllm", "sglang"):
                yield recipe


@cache
def sglang_parser(version: str) -> console.ConsoleParser:
    return console.parser("launch_server.py", f"sglang-{version}")


def parsed(of: str, version: str, words: tuple[str, ...]) -> None:
    """Raises SystemExit where the engine would refuse them."""
    if of == "sglang":
        sglang_parser(version).parse_args(words)
    else:
        options.parse(list(words[words.index("serve") + 1 :] if "serve" in words else words), version)


@pytest.mark.full
def test_every_recipe_s_words_are_taken_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """All ranks of all profiles, by the options of the recipe's version or the nearest one with data."""
    refused, tried = [], 0
    for recipe in variants():
        of = DATA_OF.get(recipe.engine.name, recipe.engine.name)
        version = nearest(of, recipe.engine.version, versions(of))
        nodes = tuple(f"spark-{i + 1}" for i in range(recipe.nodes))
        fabric = {node: FabricChoice(f"192.168.100.{i}", "enp1s0f0np0") for i, node in enumerate(nodes, 10)}
        context = local_context(recipe.nodes, "/models/any")
        for spec in engine(recipe.engine.name).render(recipe, Placement(nodes, fabric), context):
            tried += 1
            try:
                parsed(of, version, spec.engine_words)
            except SystemExit:
                said = capsys.readouterr().err
                own = (*recipe.engine.extra_flags, "nvfp4_ds_mla")
                refused.append((recipe.name, any(word in said.rpartition("error: ")[2] for word in own), said))
    assert tried > 60
    # An image with its own build takes options and values that no release had then.
    known = {("deepseek-v4-flash-0731", True), ("glm-5.3-flash-exl3-vllm", True)}
    assert {(name, own) for name, own, _ in refused} <= known, refused
