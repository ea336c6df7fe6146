"""The JSON schemas for editors: they accept what the loader accepts, and refuse common mistakes."""

from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from sparkwright.adapters.files import Places, find_recipe, recipe_names, reference
from sparkwright.domain.errors import RecipeError
from sparkwright.recipes.cluster_file import load_cluster
from sparkwright.recipes.file_schema import file_schema
from sparkwright.recipes.load import load_recipe
from sparkwright.recipes.values import plain_value
from sparkwright.recipes.yaml_lines import read_yaml
from unit.for_each import for_each

NOWHERE = Places(Path("/nowhere"), Path("/nowhere"))
LOADERS = {"recipe": load_recipe, "cluster": load_cluster}
RECIPE = "title: t\nmodel: {id: a/b}\nengine: {name: vllm, version: 0.21.0, image: a/b@sha256:%s}\n" % ("0" * 64)
CLUSTER = "nodes: [spark-1, spark-2]\n"
GOOD = [
    ("recipe", RECIPE),
    ("recipe", RECIPE + "x-mine: 1\nserving: {port: 8001, x-why: because, context: 0, kv_cache_bytes: 20g}\n"),
    ("recipe", RECIPE + "shm: 64GiB\nloading: {floor: 2g}\nphases: {load: {usual: 4min, stuck_after: 600}}\n"),
    ("recipe", RECIPE + "serving:\nenv: {NCCL_DEBUG: INFO, A: 1}\nflags: {block-size: 256, enforce-eager: true}\n"),
    ("recipe", RECIPE + "env: {A: b}\nprofiles: {p: {env: {A: null}, serving: {context: 4096}, parsers: null}}\n"),
    ("recipe", RECIPE + "profiles: {p: {speculation: {method: ngram, tokens: 3}, engine: {version: 0.26.0}}}\n"),
    ("cluster", CLUSTER),
    ("cluster", "name: c\nnodes:\n- spark-1\n- {name: b, ssh: me@b, fabric: {address: auto, hcas: [a, b]}}\n"),
    ("cluster", CLUSTER + "ignore: [MEM009]\ntransfer: {streams: 4, limit: 2GB}\n"),
]
WRONG = [
    ("recipe", "title: t\nmodel: {id: a/b}\n"),
    ("recipe", RECIPE + "servings: {}\n"),
    ("recipe", RECIPE + "serving: {contxt: 4096}\n"),
    ("recipe", RECIPE + "serving: {context: 4}\n"),
    ("recipe", RECIPE + "serving: {port: 80}\n"),
    ("recipe", RECIPE + "serving: {expose: everywhere}\n"),
    ("recipe", RECIPE + "serving: {on_demand: yes}\n"),
    ("recipe", RECIPE + "nodes: two\n"),
    ("recipe", RECIPE + "nodes: [a, b]\n"),
    ("recipe", RECIPE + "name: Not A Name\n"),
    ("recipe", RECIPE + "speculation: {method: ngram}\n"),
    ("recipe", RECIPE + "mods: [{files: {}}]\n"),
    ("recipe", RECIPE + "build: {base: a, sources: [{name: x, repository: 'https://a/b'}]}\n"),
    ("recipe", RECIPE + "profiles: {p: {serving: {contxt: 1024}}}\n"),
    ("recipe", RECIPE + "profiles: {p: {name: other}}\n"),
    ("recipe", RECIPE.replace("name: vllm", "names: vllm")),
    ("cluster", "node: [spark-1]\n"),
    ("cluster", "nodes: [{ssh: spark-1}]\n"),
    ("cluster", "nodes: [{name: spark 1}]\n"),
    ("cluster", CLUSTER + "transfer: {streams: 99}\n"),
    ("cluster", CLUSTER + "ignore: [mem9]\n"),
    ("cluster", "nodes: [{name: a, fabric: {hcas: mlx5_0}}]\n"),
]


@cache
def schema_of(kind: str) -> dict[str, Any]:
    return file_schema(kind, reference(kind))


@cache
def validator(kind: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema_of(kind))


def accepted(kind: str, text: str) -> bool:
    return validator(kind).is_valid(plain_value(read_yaml(text, "f.yaml").value))


def is_loadable(kind: str, text: str) -> bool:
    try:
        LOADERS[kind](text, "f.yaml")
    except RecipeError:
        return False
    return True


@pytest.mark.full
@pytest.mark.parametrize("kind", LOADERS)
def test_it_is_a_schema(kind: str) -> None:
    """Guards an editor that would refuse the file as a whole."""
    jsonschema.Draft202012Validator.check_schema(schema_of(kind))


@pytest.mark.full
def test_every_shipped_recipe_and_both_references_are_valid() -> None:
    """Guards against an editor that underlines what loads."""
    texts = {name: find_recipe(name, NOWHERE).text for name in recipe_names(NOWHERE)}
    assert len(texts) > 20
    assert [name for name, text in texts.items() if not accepted("recipe", text)] == []
    assert accepted("recipe", reference()) and accepted("cluster", reference("cluster"))


@for_each("kind, text", GOOD)
def test_what_loads_is_valid(kind: str, text: str) -> None:
    """Sizes, durations, free keys, empty keys and profiles are written as people write them."""
    assert is_loadable(kind, text) and accepted(kind, text)


@for_each("kind, text", WRONG)
def test_common_mistakes_are_seen_while_typing(kind: str, text: str) -> None:
    """The loader refuses everything that the schema refuses, too."""
    assert not accepted(kind, text) and not is_loadable(kind, text)


def test_keys_are_explained_as_in_the_reference() -> None:
    """The text that an editor shows next to a key is the reference's, also inside sections."""
    schema = schema_of("recipe")
    context = schema["$defs"]["ServingPart"]["properties"]["context"]
    assert context["description"].startswith("Longest prompt plus answer.")
    assert [name for name, value in schema["properties"].items() if "description" not in value] == []
