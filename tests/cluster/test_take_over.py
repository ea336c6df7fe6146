"""Servers that owners already run, in real containers: imported, recognized by `up`, and changed by mods."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cluster.drive import NAME, CommandDriver, assert_clean, containers
from sparkwright.domain.recipe import Mod
from testbed import ContainerNode

pytestmark = pytest.mark.full
IMAGE = "owner/vllm-openai:nightly"
MODEL = "org/Tiny-1B"
PROGRAM = "#!/usr/bin/env python3\nimport time\n\ntime.sleep(1e5)\n"
SERVE = f"vllm serve {MODEL} --port 8000 --max-model-len 8192 --served-model-name tiny --enable-prefix-caching"


@pytest.fixture
def owners_image(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> Iterator[str]:
    """An image of the owner's with a program `vllm` and the metadata of its package, under a tag that moves."""
    node = testbed_nodes[0]
    info = "/opt/sparkwright/lib/python3.11/site-packages/vllm-0.33.0.dist-info"
    node.write("/tmp/owner/vllm", PROGRAM, mode="755")
    node.write("/tmp/owner/METADATA", "Metadata-Version: 2.1\nName: vllm\nVersion: 0.33.0\n")
    put = f"cp /owner/vllm /opt/sparkwright/bin/vllm && mkdir -p {info} && cp /owner/METADATA {info}/"
    node.sh(f"docker run --name made -v /tmp/owner:/owner {driver.testbed.engine_image} sh -c '{put}'")
    node.sh(f"docker commit -c 'CMD [\"python3\"]' made {IMAGE} && docker rm made")
    yield IMAGE
    node.sh(f"docker rm -f $(docker ps -aq) ; docker image rm -f {IMAGE}", check=False)


def test_a_running_container_becomes_a_recipe(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], owners_image: str, tmp_path: Path
) -> None:
    """`docker inspect` of the real container has its image, words, mounts, variables and sizes; the image itself tells
    the version, which a tag like `nightly` does not."""
    options = "--shm-size 1g -e VLLM_LOGGING_LEVEL=DEBUG -v /srv/models:/models"
    testbed_nodes[0].sh(f"docker run -d --name mine {options} {owners_image} {SERVE}")
    out = tmp_path / "mine.yaml"
    told = driver.run(
        "recipes import", "--from-container", "mine", "--node", "spark-1", "--ask-image", "--out", str(out)
    )
    assert told.code in (0, 2), str(told)
    recipe = yaml.safe_load(out.read_text())
    assert recipe["model"]["id"] == MODEL and recipe["model"]["served_name"] == "tiny"
    assert recipe["engine"]["version"] == "0.33.0", told.err
    assert recipe["serving"]["context"] == 8192 and int(recipe["shm"]) == 1 << 30
    assert recipe["env"]["VLLM_LOGGING_LEVEL"] == "DEBUG"
    assert any("/srv/models" in json.dumps(mount) for mount in recipe["mounts"])
    gone = driver.run("recipes import", "--from-container", "absent", "--node", "spark-1")
    assert gone.code == 1 and "docker ps" in gone.err, str(gone)


@pytest.mark.parametrize("starter", ["sparkrun", "compose"])
def test_up_recognizes_what_serves_the_model_already(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], owners_image: str, starter: str
) -> None:
    """A second copy would not fit: `up` refuses before anything starts, and says how that tool stops its own."""
    if starter == "sparkrun":
        testbed_nodes[0].sh(f"docker run -d --name sparkrun_ab12_head {owners_image} sleep 100000")
        testbed_nodes[0].sh(f"docker exec -d sparkrun_ab12_head {SERVE}")
        stop = "sparkrun stop ab12"
    else:
        label = "com.docker.compose.project=chat"
        testbed_nodes[0].sh(f"docker run -d --label {label} --name chat-vllm-1 {owners_image} {SERVE}")
        stop = "docker compose -p chat down"
    engine = {"name": "vllm", "version": "0.33.0", "image": owners_image, "image_note": "made by the test"}
    model = {"id": MODEL, "simulated": False}
    done = driver.run("up", driver.recipe("docker", engine=engine, model=model, env={}, nodes=1, parallelism={"tp": 1}))
    assert done.code == 1 and stop in done.out + done.err, str(done)
    assert "serves this model already" in done.out + done.err, "the reason to refuse"
    assert len(containers(testbed_nodes[0])) == 1


def test_a_mod_runs_in_the_container_before_the_engine(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """Refused until its digest is approved; then each rank's container is patched first, and another file is another
    deployment."""
    files = {"run.sh": "cp word.txt /tmp/patched\n", "word.txt": "patched by its owner\n"}
    mod = {"name": "fix", "files": files}
    refused = driver.run("up", driver.recipe("docker", mods=[mod]))
    assert refused.code == 1 and "RCP035" in refused.out + refused.err, str(refused)
    approved = {**mod, "approved": Mod("fix", files).digest}
    driver.good("up", driver.recipe("docker", mods=[approved]))
    for node in testbed_nodes:
        (one,) = containers(node)
        assert node.sh(f"docker exec {one['Id']} cat /tmp/patched") == "patched by its owner"
        assert "mod fix" in node.sh(f"docker logs {one['Id']} 2>&1 | head -n 5")
    before = [containers(node)[0]["Id"] for node in testbed_nodes]
    other = {"run.sh": files["run.sh"], "word.txt": "patched again\n"}
    driver.good(
        "up", driver.recipe("docker", mods=[{"name": "fix", "files": other, "approved": Mod("fix", other).digest}])
    )
    assert before != [containers(node)[0]["Id"] for node in testbed_nodes]
    driver.good("down", NAME)
    assert_clean(testbed_nodes)
