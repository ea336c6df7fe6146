"""The content of an image is read from the image itself, once: a real Docker daemon, real package metadata."""

import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from functional import dockerd
from functional.command import UserShell
from functional.dockerd import BASE
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.facts import EngineFound, Unknown
from sparkwright.engines.launchers import script
from sparkwright.engines.own_data import OptionsOrigin, from_answer, from_text, to_text
from sparkwright.facts.engine_image import Question, engine_of_image, engine_of_node, known_engine, parse_found
from sparkwright.facts.engine_options import OptionsAnswer, options_of_image
from sparkwright.facts.engine_options import parse as parse_options
from sparkwright.recipes.dockerfile import archive

pytestmark = dockerd.skipped()
SITE = "/usr/lib/python3/dist-packages"
VLLM = Question("vllm", ("vllm",))
ARCH = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]


@pytest.fixture(scope="module")
def docker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dockerd.Dockerd]:
    with dockerd.running(tmp_path_factory.mktemp("repo")) as daemon:
        yield daemon


def build_image(docker: dockerd.Dockerd, name: str, *lines: str) -> str:
    docker.docker("build", "--tag", name, "-", stdin="\n".join((f"FROM {BASE}", *lines)).encode())
    return name


def package(name: str, version: str, site: str = SITE) -> str:
    about = f"{site}/{name}-{version}.dist-info"
    text = f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n"
    return f'RUN mkdir -p {about} && printf "{text}" > {about}/METADATA'


def foreign(name: str, arch: str) -> bytes:
    """The archive of an image of another processor for `docker load`: one empty layer."""
    layer = archive({})
    diff = f"sha256:{hashlib.sha256(layer).hexdigest()}"
    config = {"architecture": arch, "os": "linux", "config": {}, "rootfs": {"type": "layers", "diff_ids": [diff]}}
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    files = {"manifest.json": json.dumps(manifest), "config.json": json.dumps(config), "layer.tar": layer.decode()}
    return archive(files)


def read_engine(docker: dockerd.Dockerd, command: Command) -> EngineFound | Unknown | None:
    environ = {**os.environ, "DOCKER_HOST": docker.host}
    done = subprocess.run(command.argv, env=environ, capture_output=True, text=True)
    return parse_found(Completed(done.returncode, done.stdout, done.stderr))


@pytest.mark.full
def test_the_version_of_each_package(docker: dockerd.Dockerd, tmp_path: Path) -> None:
    """Read without importing anything: a package whose code cannot even be imported reports its version all the
    same."""
    name = build_image(docker, "t/ray:1", package("vllm", "0.21.1.dev3+g1a2b3c4"), package("ray", "2.50.0"))
    found = read_engine(docker, engine_of_image(name, replace(VLLM, packages=("vllm", "ray")), str(tmp_path)))
    assert found == EngineFound(ARCH, {"vllm": "0.21.1.dev3+g1a2b3c4", "ray": "2.50.0"})


@pytest.mark.full
def test_an_image_without_the_engine(docker: dockerd.Dockerd, tmp_path: Path) -> None:
    """Nothing is found, which is an answer and not an error."""
    assert read_engine(docker, engine_of_image(BASE, VLLM, str(tmp_path))) == EngineFound(ARCH)


@pytest.mark.full
def test_an_engine_in_a_python_of_its_own(docker: dockerd.Dockerd, tmp_path: Path) -> None:
    """A virtual environment that is not on PATH is found by the folder that pip leaves there."""
    name = build_image(docker, "t/venv:1", package("vllm", "0.21.0", "/opt/venv/lib/python3.11/site-packages"))
    assert read_engine(docker, engine_of_image(name, VLLM, str(tmp_path))) == EngineFound(ARCH, {"vllm": "0.21.0"})


def test_a_program_that_reports_its_version(docker: dockerd.Dockerd, tmp_path: Path) -> None:
    """llama-server is no Python package: its own text is read."""
    shown = "RUN mkdir /app && printf '#!/bin/sh\\necho \"version: 11549 (0f1e2d3)\" >&2\\n' > /app/llama-server"
    name = build_image(docker, "t/llama:1", f"{shown} && chmod 755 /app/llama-server")
    program = Question("/app/llama-server", says_version=True)
    found = read_engine(docker, engine_of_image(name, program, str(tmp_path)))
    assert found == EngineFound(ARCH, {"llama-server": "11549"}, "/app/llama-server")
    assert read_engine(docker, engine_of_image(BASE, program, str(tmp_path))) == EngineFound(ARCH)


def test_the_second_look_starts_nothing(docker: dockerd.Dockerd, tmp_path: Path) -> None:
    """Nothing is known before the first look; afterwards the answer is there without a container."""
    name, cache = build_image(docker, "t/cached:1", package("vllm", "0.21.0")), str(tmp_path / "cache")
    assert read_engine(docker, known_engine(name, VLLM, cache)) is None
    first = read_engine(docker, engine_of_image(name, VLLM, cache))
    since = str(time.time())
    assert (
        read_engine(docker, known_engine(name, VLLM, cache))
        == read_engine(docker, engine_of_image(name, VLLM, cache))
        == first
    )
    made = docker.docker("events", "--since", since, "--until", str(time.time()), "--filter", "event=create")
    assert made == ""
    assert docker.docker("ps", "--all", "--quiet") == ""


def test_an_image_for_another_processor(docker: dockerd.Dockerd, tmp_path: Path) -> None:
    """It cannot run here, and Docker reports which processor it is for."""
    other = {"amd64": "arm64", "arm64": "amd64"}[ARCH]
    docker.docker("load", stdin=foreign("t/other:1", other))
    found = read_engine(docker, engine_of_image("t/other:1", VLLM, str(tmp_path)))
    assert isinstance(found, EngineFound) and found.arch == other and not found.versions


def test_an_image_that_is_not_there(docker: dockerd.Dockerd, tmp_path: Path) -> None:
    """Nothing is known of it: staging reports that it lacks."""
    assert read_engine(docker, engine_of_image("t/absent:1", VLLM, str(tmp_path))) is None


def test_the_environment_of_the_process_runtime(docker: dockerd.Dockerd, tmp_path: Path) -> None:
    """The same question to a node's own Python; a program's first line names the Python it belongs to."""
    python = tmp_path / "bin"
    assert read_engine(docker, engine_of_node(Question("nope", ("nope",)))) == EngineFound("")
    python.mkdir()
    tool = python / "tool"
    tool.write_text(f"#!{sys.executable}\n")
    tool.chmod(0o755)
    found = read_engine(docker, engine_of_node(Question(str(tool), ("click",))))
    assert isinstance(found, EngineFound) and found.versions["click"] and found.program == str(tool)


def test_a_program_below_home(docker: dockerd.Dockerd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`~/venv` in a recipe is the node's home, for the question as for the rank."""
    (tmp_path / "tool").write_text(f"#!{sys.executable}\n")
    (tmp_path / "tool").chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    found = read_engine(docker, engine_of_node(Question("~/tool", ("click",))))
    assert isinstance(found, EngineFound) and found.versions["click"] and found.program == f"{tmp_path}/tool"


def test_a_native_program_of_the_process_runtime(docker: dockerd.Dockerd, tmp_path: Path) -> None:
    """llama-server has no package: the program's own text, and an empty answer where it is not on the node."""
    tool = tmp_path / "llama-server"
    assert read_engine(docker, engine_of_node(Question(str(tool), says_version=True))) == EngineFound("")
    tool.write_text("#!/bin/sh\necho 'version: 10269 (0f1e2d3)' >&2\n")
    tool.chmod(0o755)
    found = read_engine(docker, engine_of_node(Question(str(tool), says_version=True)))
    assert found == EngineFound("", {"llama-server": "10269"}, str(tool))


@pytest.mark.full
def test_up_names_it_before_anything_is_started(docker: dockerd.Dockerd, tmp_path: Path) -> None:
    """The whole command: an image without the recipe's engine is refused after staging, and no container was made."""
    node = {"name": "here", "ssh": "local", "env": {"DOCKER_HOST": docker.host}}
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump({"name": "one", "nodes": [node]}))
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF" + bytes(60))
    recipe = {
        "title": "An image without its engine",
        "model": {"path": str(tmp_path / "tiny.gguf"), "served_name": "tiny"},
        "engine": {"name": "llama-cpp", "version": "2026.10.11549", "image": BASE, "image_note": "the test's"},
    }
    (tmp_path / "r.yaml").write_text(yaml.safe_dump(recipe))
    code, out, err = UserShell(tmp_path).run("up", "./r.yaml", "--cluster", "cluster.yaml", "--force", "a test")
    assert code == 1, out + err
    assert "ENG018" in err and f"llama-server is not in image {BASE}" in err
    assert docker.docker("ps", "--all", "--quiet") == ""


SERVER_ARGS = (
    "class ServerArgs:\\n"
    "    def add_cli_args(parser):\\n"
    '        parser.add_argument("--model-path", "--model", type=str)\\n'
    '        parser.add_argument("--backend", choices=["a", "b"])\\n'
)


@pytest.mark.full
def test_the_options_of_an_image_are_those_of_its_own_parser(docker: dockerd.Dockerd) -> None:
    """Asked in a container without network that is gone afterwards; the answer is of that image's id."""
    folder = f"{SITE}/sglang/srt"
    lines = [f"RUN mkdir -p {folder} && printf '{SERVER_ARGS}' > {folder}/server_args.py", package("sglang", "0.9.0")]
    name = build_image(docker, "t/options:1", *lines)
    asked_of = Question("sglang", ("sglang",))
    command = options_of_image(name, "sglang", asked_of, script("engine_options.py").text)
    done = subprocess.run(command.argv, env={**os.environ, "DOCKER_HOST": docker.host}, capture_output=True, text=True)
    found = parse_options(Completed(done.returncode, done.stdout, done.stderr))
    assert isinstance(found, OptionsAnswer), found
    assert found.build == docker.docker("image", "inspect", "--format", "{{.Id}}", name).strip()
    data = from_text(to_text(from_answer(found.text, OptionsOrigin("sglang", "parser", name, 1.0), "", found.build)))
    assert data.version == "0.9.0" and set(data.names) == {"--model-path", "--model", "--backend"}
    assert data.options["backend"].choices == ("a", "b")
    assert docker.docker("ps", "--all", "--quiet") == ""
    gone = options_of_image("t/absent:1", "sglang", asked_of, "")
    done = subprocess.run(gone.argv, env={**os.environ, "DOCKER_HOST": docker.host}, capture_output=True, text=True)
    assert parse_options(Completed(done.returncode, done.stdout, done.stderr)) == Unknown("", "it is not there")
