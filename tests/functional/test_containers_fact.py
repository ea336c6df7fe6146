"""The reports of a real Docker daemon on its containers and images, as `check` reads them."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from functional import dockerd
from functional.dockerd import BASE
from patience import wait_until
from sparkwright.domain.command import Completed
from sparkwright.domain.fabric_facts import Containers
from sparkwright.domain.facts import Docker
from sparkwright.facts.docker import CONTAINERS, DOCKER
from sparkwright.facts.fact import Fact

pytestmark = dockerd.skipped()
ARCH = {"x86_64": "amd64", "aarch64": "arm64"}


@pytest.fixture(scope="module")
def docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dockerd.Dockerd]:
    with dockerd.running(tmp_path_factory.mktemp("empty")) as daemon:
        yield daemon


def read_fact(fact: Fact[object], docker: dockerd.Dockerd, **env: str) -> object:
    environ = {**os.environ, "DOCKER_HOST": docker.host, **env}
    done = subprocess.run(fact.command.argv, env=environ, capture_output=True, text=True, timeout=60, check=False)
    return fact.read(Completed(done.returncode, done.stdout, done.stderr))


def test_an_empty_daemon_has_one_image(docker: dockerd.Dockerd) -> None:
    """Guards that no container is an answer, and that the image's architecture is this machine's."""
    found = read_fact(CONTAINERS, docker)
    assert isinstance(found, Containers)
    assert found.containers == ()
    assert [(image.tags, image.arch) for image in found.images] == [((BASE,), ARCH[os.uname().machine])]


def test_policy_label_and_command_are_reported(docker: dockerd.Dockerd) -> None:
    """Guards the fields of `docker inspect` that the rules read, and that no option's value is kept."""
    policy = ("--restart", "unless-stopped", "--network", "host", "--name", "qwen", "--entrypoint", "vllm")
    docker.docker("create", *policy, BASE, "serve", "m", "--api-key", "S3CR3T")
    docker.docker("create", "--label", "sparkwright.deployment=big", "--name", "ours", BASE)
    found = read_fact(CONTAINERS, docker)
    assert isinstance(found, Containers)
    told = {c.name: (c.image, c.running, c.restart, c.gpu, c.ours, c.network, c.command) for c in found.containers}
    assert told["qwen"] == (BASE, False, "unless-stopped", False, False, "host", "vllm serve m")
    assert told["ours"][4] is True
    assert "S3CR3T" not in repr(found)


def test_what_other_tools_serve_is_reported(docker: dockerd.Dockerd) -> None:
    """Guards the label of Docker Compose, and that of a container that sleeps its processes say which model it is."""
    label = ("--label", "com.docker.compose.project=llm")
    docker.docker(
        "create", *label, "--name", "llm-vllm-1", BASE, "vllm", "serve", "--model=org/m", "--api-key", "S3CR3T"
    )
    name = "sparkrun_0123456789ab_head"
    docker.docker("run", "-d", "--network", "none", "--name", name, "--entrypoint", "sleep", BASE, "600")
    docker.docker("exec", "-d", name, "sh", "-c", "sleep 600; :", "vllm", "serve", "org/big", "--api-key", "S3CR3T")
    # `exec -d` returns before its process has begun
    wait_until(
        lambda: "org/big" in repr(read_fact(CONTAINERS, docker)), lambda: repr(read_fact(CONTAINERS, docker)), 0.2
    )
    found = read_fact(CONTAINERS, docker)
    docker.docker("rm", "-f", name)
    assert isinstance(found, Containers)
    told = {c.name: (c.project, c.model, c.running) for c in found.containers}
    assert told["llm-vllm-1"] == ("llm", "org/m", False)
    assert told[name] == ("", "org/big", True)
    assert "S3CR3T" not in repr(found)


def test_log_driver_is_reported(docker: dockerd.Dockerd) -> None:
    """Guards the daemon's own default, which has no end."""
    found = read_fact(DOCKER, docker)
    assert isinstance(found, Docker)
    assert (found.log_driver, found.proxy) == ("json-file", "")
