"""`engine: custom` in a container: a real server of which only the command is known, supervised behind the gateway."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sparkwright
from cluster.clients import PollingClient
from cluster.drive import CommandDriver, assert_clean, containers
from functional.tiny_gguf import write_tiny_gguf
from patience import wait_until
from testbed import ContainerNode

pytestmark = pytest.mark.full
SERVER = Path(sparkwright.__file__).parent / "engines/launchers/llama_server.py"
IMAGE = "owner/own-server:1"
COMMAND = ["python3", "/srv/serve.py", "-m", "{model}", "--alias", "{served_name}", "-ngl", "0", "-c", "2048"]
COMMAND += ["--host", "{host}", "--port", "{port}"]
RECIPE: dict[str, Any] = {
    "name": "own",
    "title": "A server that nobody told sparkwright about",
    "nodes": 1,
    "parallelism": {"tp": 1},
    "model": {"path": "/home/spark/models/tiny.gguf", "served_name": "tiny"},
    "serving": {"expose": "all", "coherence": False},
}
WORKLOAD = """
title: A few requests
repeats: 1
levels:
  - {name: one, single: {prompt: 64, output: 8}, requests: 4, warmup: 1, concurrency: 2}
"""


@pytest.fixture
def own_recipe(driver: CommandDriver, testbed_nodes: list[ContainerNode], tmp_path: Path) -> Iterator[str]:
    """llama.cpp's server from its wheel in an image of the owner's; the weights are on the node."""
    head = testbed_nodes[0]
    head.put("/home/spark/models/tiny.gguf", write_tiny_gguf(tmp_path / "tiny.gguf").read_bytes())
    head.write("/tmp/owner/serve.py", SERVER.read_text())
    put = "mkdir -p /srv/lib && cp -r /host/extra/xllamacpp* /srv/lib/ && cp /owner/serve.py /srv/"
    image = driver.testbed.engine_image
    head.sh(f"docker run --name made -v /tmp/owner:/owner -v /opt/sparkwright:/host {image} sh -c '{put}'")
    head.sh(f"docker commit -c 'ENV PYTHONPATH=/srv/lib' made {IMAGE} && docker rm made")
    driver.supervise, driver.env = True, {"SPARKWRIGHT_SUPERVISOR_SCALE": "0.3"}
    engine = {"name": "custom", "version": "", "runtime": "docker", "image": IMAGE, "image_note": "made by the test"}
    yield str(driver._write("own.yaml", {**RECIPE, "engine": {**engine, "command": COMMAND}}))
    driver.run("down", "own")
    head.sh(f"docker image rm -f {IMAGE}", check=False)


def test_an_unknown_server_in_a_container_is_supervised_and_measured(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], own_recipe: str
) -> None:
    """Guards all from `up` to `down`: an answer through the gateway, a killed container and back, logs, a benchmark."""
    done = driver.good("up", own_recipe, "--force", "no GPU here", "--json").json
    assert done["answer"]["completion_tokens"] > 0 and not done["answer"]["simulated"]
    (before,) = containers(testbed_nodes[0])
    key = next((driver.folder / "home/.local/state/sparkwright/keys/testbed").glob("*.key")).read_text().strip()
    client = PollingClient(testbed_nodes[0].mgmt, 8443, key, model="tiny")
    client.wait(200)
    testbed_nodes[0].sh(f"docker kill {before['Id']}")
    wait_until(lambda: driver.shown()["supervised"]["live"]["relaunches"] == 1, "a relaunch")
    client.wait(200)
    wait_until(lambda: driver.shown()["state"] in ("ready", "degraded"), "it serves again")
    (after,) = containers(testbed_nodes[0])
    assert after["Id"] != before["Id"]
    assert "listening on" in driver.good("logs", "own", "--tail", "0").out
    (driver.folder / "few.yaml").write_text(WORKLOAD)
    done = driver.run("bench", "own", "--profile", "./few.yaml", "--json")
    assert done.code in (0, 1), str(done)  # 1: on a busy machine it may not be valid for each metric
    level = done.json["runs"][0]["levels"][0]
    assert level["good"] == level["sent"] == 4 and level["tokens"] > 0
    driver.good("down", "own")
    assert_clean(testbed_nodes)
