"""serving.disk_cache: each engine's own options, its folder, and what has no such tier."""

import json
from dataclasses import replace

import pytest

from sparkwright.domain.errors import RecipeError
from sparkwright.domain.recipe import Parallelism, Recipe, Runtime, Serving
from sparkwright.domain.units import GIB
from sparkwright.engines.catalog import engine_of, imagined_ranks, rehearse
from sparkwright.engines.disk_cache import DISK_CACHE_AT, disk_cache_folder
from sparkwright.recipes.load import load_recipe
from unit.engines.test_host_cache import ALONE, recipe_for
from unit.for_each import for_each

SERVING = Serving(context=8192, host_cache=8 * GIB, disk_cache="/data/kv", disk_cache_size=200 * GIB)


def disk_recipe(name: str, version: str, **changes: object) -> Recipe:
    return recipe_for(name, version, **{"serving": SERVING, **ALONE, **changes})


def test_vllm_writes_files_below_its_tier_in_memory() -> None:
    """The options that were run on a GPU (acceptance of 0.33.0); a disk that fails means computing again."""
    recipe = disk_recipe("vllm", "0.33.0")
    (spec,) = imagined_ranks(recipe)
    config = json.loads(spec.argv[spec.argv.index("--kv-transfer-config") + 1])
    extra = config["kv_connector_extra_config"]
    assert (config["kv_connector"], config["kv_load_failure_policy"]) == ("OffloadingConnector", "recompute")
    assert extra["cpu_bytes_to_use"] == 8 * GIB and extra["spec_name"] == "TieringOffloadingSpec"
    assert extra["secondary_tiers"] == [{"type": "fs", "root_dir": DISK_CACHE_AT}]
    assert "--kv-offloading-size" not in spec.argv
    assert (disk_cache_folder(recipe), DISK_CACHE_AT) in {(one.host, one.container) for one in spec.mounts}
    assert engine_of(recipe).traits.tier(recipe, 0)[0] == 8 * GIB
    assert not {one.code for one in rehearse(recipe)} - {"ENG034"}


def test_sglang_has_a_storage_backend() -> None:
    """Its folder is a variable; the option is in the lists of all versions that were read."""
    recipe = disk_recipe("sglang", "0.5.17")
    (spec,) = imagined_ranks(recipe)
    assert spec.argv[spec.argv.index("--hicache-storage-backend") + 1] == "file"
    assert spec.env["SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR"] == DISK_CACHE_AT
    assert not {one.code for one in rehearse(recipe)} & {"ENG001", "ENG002", "ENG008", "ENG042"}


def test_llama_cpp_has_a_folder_for_its_slots() -> None:
    """A process sees the node's own folder, which is made before the start."""
    recipe = disk_recipe("llama-cpp", "b7000")
    recipe = replace(recipe, engine=replace(recipe.engine, runtime=Runtime.PROCESS, image=""))
    (spec,) = imagined_ranks(recipe)
    assert spec.argv[spec.argv.index("--slot-save-path") + 1] == f"{disk_cache_folder(recipe)}/"
    assert [one.host for one in spec.mounts] == [disk_cache_folder(recipe)]
    assert "ENG042" not in {one.code for one in rehearse(recipe)}


@for_each(
    "name, version, changes",
    [
        ("vllm", "0.26.0", {}),
        ("vllm", "0.33.0", {"serving": replace(SERVING, host_cache=0)}),
        ("vllm", "0.33.0", {"flags": {"kv-transfer-config": {"kv_connector": "LMCacheConnectorV1"}}}),
        ("sglang", "0.5.10", {}),
        ("sglang", "0.5.17", {"serving": replace(SERVING, host_cache=0)}),
        ("llama-cpp", "b7000", {"nodes": 2, "parallelism": Parallelism(pp=2)}),
        ("trtllm", "1.2.0", {"serving": replace(SERVING, host_cache=0)}),
    ],
)
def test_what_has_no_such_tier_is_named(name: str, version: str, changes: dict[str, object]) -> None:
    """Guards a key that would be dropped silently."""
    assert "ENG042" in {one.code for one in rehearse(disk_recipe(name, version, **changes))}


def test_the_folder_is_one_model_s() -> None:
    """Guards KV of another model, type or split that would be read as its own."""
    one = disk_recipe("vllm", "0.33.0")
    others = [
        replace(one, model=replace(one.model, path="other.gguf", served_name="x")),
        replace(one, serving=replace(SERVING, kv_dtype="fp8")),
        replace(one, engine=replace(one.engine, version="0.34.0")),
        replace(one, flags={"quantization": "fp8"}),
        replace(one, parallelism=Parallelism(tp=2)),
    ]
    folders = [disk_cache_folder(recipe) for recipe in (one, *others)]
    assert len(set(folders)) == len(folders) and all(folder.startswith("/data/kv/tiny-") for folder in folders)
    assert disk_cache_folder(replace(one, serving=replace(SERVING, context=4096))) == folders[0]


TEXT = """
name: tiny
title: tiny
model: {id: a/b, served_name: tiny}
engine: {name: vllm, version: 0.33.0, image: "vllm/vllm-openai:v0.33.0"}
nodes: 1
serving: {context: 8192, host_cache: 8 GiB, KEY}
"""


@pytest.mark.parametrize(
    "key",
    ["disk_cache: /data/kv", "disk_cache_size: 9 GiB", "disk_cache: kv, disk_cache_size: 9 GiB", "disk_cache_size: 1"],
)
def test_half_of_it_is_named(key: str) -> None:
    """Guards a cache without an end, and a path that nobody knows where it begins."""
    with pytest.raises(RecipeError, match=r"tiny.yaml:7: .*disk_cache"):
        load_recipe(TEXT.replace("KEY", key), "tiny.yaml")
    assert load_recipe(TEXT.replace("KEY", "disk_cache: /data/kv, disk_cache_size: 9 GiB"), "t.yaml").serving.disk_cache
