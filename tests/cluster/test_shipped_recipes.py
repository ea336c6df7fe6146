"""Every shipped recipe of a real engine that is called ready starts as it is written, with the simulator as its engine.

Nothing is changed but what the test nodes cannot have: the image, the weights (none are read) and the simulator's
clock.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.drive import NAME, QUICK, CommandDriver, assert_clean
from cluster.engines_drive import GGUF, put_models, streamed
from cluster.stage_drive import CONFIG, put_folder
from sparkwright.adapters.files import Places, find_recipe, recipe_names
from sparkwright.domain.recipe import RecipeState
from sparkwright.engines.flag_data import nearest, versions
from sparkwright.recipes.load import load_recipe
from testbed import ContainerNode

NOWHERE = Places(Path("/nonexistent"), Path("/nonexistent"))
MODEL = "/home/spark/models/any"
# Long enough for every recipe's context, with experts for those that share them out.
EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64}
ANY = {**CONFIG, **EXPERTS, "max_position_embeddings": 1 << 21}


def ready_recipes() -> list[str]:
    """The simulator's own recipes are rehearsed elsewhere. All are `full`: `make test` starts the same engines in
    test_engines_up.py and test_llama_cpp_up.py."""
    found = {name: find_recipe(name, NOWHERE) for name in recipe_names(NOWHERE)}
    loaded = {name: load_recipe(text.text, text.source) for name, text in found.items()}
    real = {name: recipe for name, recipe in loaded.items() if not recipe.model.simulated}
    chosen = {name: recipe for name, recipe in real.items() if recipe.state is RecipeState.READY}
    return [name for name in chosen if name != "tiny-llama-cpp"]


def as_shipped(name: str, drive: CommandDriver) -> tuple[str, int]:
    """The recipe's file, and its port."""
    tree: dict[str, Any] = yaml.safe_load(find_recipe(name, NOWHERE).text)
    how, llama = tree["engine"], tree["engine"]["name"] == "llama-cpp"
    data = nearest(how["name"].removesuffix("-ray"), how["version"], versions(how["name"]))
    tree["model"] = {"path": GGUF if llama else MODEL, "served_name": "tiny"}
    if how.get("runtime") == "process":
        how |= {"entrypoint": ["/opt/sparkwright/bin/llama-server"]} if llama else {"venv": "/opt/sparkwright"}
    else:
        how |= {"image": drive.testbed.engine_image, "image_note": "made by the tests"}
        how.pop("entrypoint", None)
    tree["env"] = {**tree.get("env", {}), **QUICK, "SPARKWRIGHT_SIMULATOR_VERSION": data}
    for extra in ("profiles", "default_profile", "build"):
        tree.pop(extra, None)
    path = drive.folder / f"{NAME}.yaml"
    path.write_text(yaml.safe_dump(tree | {"name": NAME}))
    return str(path), tree.get("serving", {}).get("port", 8000)


@pytest.mark.full
@pytest.mark.parametrize("name", ready_recipes())
def test_a_ready_recipe_starts_as_it_is_written(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], tmp_path: Path, name: str
) -> None:
    """Its flags, variables, parallelism and runtime start ranks that answer, and `down` clears them."""
    driver.simulated = True
    put_models(testbed_nodes, tmp_path)
    for node in testbed_nodes:
        put_folder(node, MODEL, size=1 << 16)
        node.put(f"{MODEL}/config.json", json.dumps(ANY).encode())
    path, port = as_shipped(name, driver)
    # What the rules say of the weights that stand there instead of the recipe's own (RCP013) is not about the recipe.
    told = driver.good("up", path, "--json", "--force", "its weights are exchanged").json
    assert told["done"] == "ready" and told["simulated"] and told["answer"]["completion_tokens"] > 0
    assert "simulated" in streamed(testbed_nodes[0], port=port)
    driver.good("down", NAME)
    assert_clean(testbed_nodes)
