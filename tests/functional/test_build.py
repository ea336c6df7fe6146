"""`sparkwright build` with a real Docker daemon (the classic builder, as Debian has it), real git and real pip."""

import json
import os
import platform
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from functional import dockerd
from functional.command import UserShell
from functional.dockerd import BASE
from patience import wait_until

PLATFORM = {"x86_64": "linux/amd64", "aarch64": "linux/arm64"}[platform.machine()]
# Builds its wheel with nothing but the standard library, and tells its version as setuptools-scm does.
PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
BACKEND = """\
import os, zipfile
def build_wheel(folder, settings=None, metadata=None):
    version = os.environ["SETUPTOOLS_SCM_PRETEND_VERSION"]
    name, about = f"vllm-{version}-py3-none-any.whl", f"vllm-{version}.dist-info"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.write("vllm.py")
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\\nName: vllm\\nVersion: {version}\\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{about}/RECORD", "")
    return name
"""

pytestmark = [pytest.mark.full, dockerd.skipped()]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two commits on a branch and a third that only `refs/pull/7/head` names, as on GitHub."""
    folder = tmp_path_factory.mktemp("repo")
    run_git(folder, "init", "-q", "-b", "main", ".")
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "backend.py").write_text(BACKEND)
    for number in (1, 2, 3):
        (folder / "vllm.py").write_text(f"NUMBER = {number}\n")
        run_git(folder, "add", "-A")
        run_git(folder, "commit", "-q", "-m", f"number {number}")
    run_git(folder, "update-ref", "refs/pull/7/head", "HEAD")
    run_git(folder, "reset", "-q", "--hard", "HEAD~1")
    return folder


def run_git(folder: Path, *words: str) -> str:
    who = {f"GIT_{role}_{part}": "t@localhost" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    environ = {**os.environ, **who, "HOME": str(folder)}
    return subprocess.run(["git", *words], cwd=folder, env=environ, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def docker(repository: Path) -> Iterator[dockerd.Dockerd]:
    with dockerd.running(repository) as daemon:
        yield daemon


class BuildShell:
    """The real command on this machine as its one node."""

    def __init__(self, folder: Path, docker: dockerd.Dockerd, head: str) -> None:
        self.shell, self.docker, self.head = UserShell(folder), docker, head
        node = {"name": "here", "ssh": "local", "env": {"DOCKER_HOST": docker.host}}
        (folder / "cluster.yaml").write_text(yaml.safe_dump({"name": "one", "nodes": [node]}))

    def recipe(self, name: str = "mine", **build: Any) -> str:
        source = {"name": "vllm", "repository": "file:///repo", "commit": self.head, "version": "0.21.0"}
        section = {"base": BASE, "unpinned": "made by the test", "platform": PLATFORM, "sources": [source], **build}
        tree = {
            "name": name,
            "title": "A build",
            "model": {"id": "org/name"},
            "engine": {"name": "vllm", "version": "0.21.0"},
            "build": section,
        }
        path = self.shell.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(tree, sort_keys=False))
        return str(path)

    def build(self, recipe: str, *words: str) -> tuple[int, str, str]:
        return self.shell.run("build", recipe, "--cluster", "cluster.yaml", *words)

    def remains(self) -> dict[str, list[str]]:
        """Containers, and images without a name that no other one has below it."""
        dangling = self.docker.docker("images", "--quiet", "--filter", "dangling=true").split()
        return {"containers": self.docker.docker("ps", "--all", "--quiet").split(), "dangling": dangling}


@pytest.fixture
def bench(tmp_path: Path, docker: dockerd.Dockerd, repository: Path) -> Iterator[BuildShell]:
    made = BuildShell(tmp_path, docker, run_git(repository, "rev-parse", "refs/pull/7/head").strip())
    yield made
    made.shell.clean()


@pytest.mark.full
def test_a_pull_requests_head_is_built_and_reports_where_it_comes_from(bench: BuildShell) -> None:
    """The one commit is fetched by its hash though no branch has it, and labels and record name all parts."""
    path = bench.recipe(env={"ODD": 'a "b" $HOME \\ c'}, steps=["echo done > /opt/step"])
    code, out, err = bench.build(path, "--json")
    assert code == 0, err
    told = json.loads(out)
    name = told["image"]
    run = bench.docker.docker("run", "--rm", "--network", "none", name, "sh", "-c", 'echo "$ODD"; cat /opt/step')
    assert run == 'a "b" $HOME \\ c\ndone'
    python = "import vllm, importlib.metadata as m; print(vllm.NUMBER, m.version('vllm'))"
    assert bench.docker.docker("run", "--rm", "--network", "none", name, "python3", "-c", python) == "3 0.21.0"
    image = json.loads(bench.docker.docker("image", "inspect", name))[0]
    assert image["Config"]["Labels"]["sparkwright.build.sources"] == f"vllm=file:///repo@{bench.head}"
    record = json.loads((bench.shell.folder / told["record"].replace("~/", "")).read_text())
    assert record["id"] == image["Id"] == told["ids"]["here"]
    assert "vllm==0.21.0" in " ".join(record["packages"]).replace(" @ ", "==") or "vllm" in str(record["packages"])
    assert record["files"]["Dockerfile"].startswith("# Image for the recipe mine")
    assert bench.remains() == {"containers": [], "dangling": []}


def test_the_second_build_builds_nothing(bench: BuildShell) -> None:
    """The name is the hash of what goes in: what is there is not made again, and another commit is another name."""
    first, again = (bench.build(bench.recipe("twice", sources=[]), "--json") for _ in range(2))
    assert (json.loads(first[1])["built"], json.loads(again[1])["built"]) == (True, False)
    assert json.loads(first[1])["ids"] == json.loads(again[1])["ids"]
    code, out, _ = bench.build(bench.recipe("twice", sources=[], steps=["true"]), "--json")
    assert code == 0 and json.loads(out)["image"] != json.loads(first[1])["image"]


def test_a_commit_that_is_not_there(bench: BuildShell) -> None:
    """The error has git's own text, no image gets the name, and no container stays."""
    source = {"name": "vllm", "repository": "file:///repo", "commit": "ab" * 20}
    code, _, err = bench.build(bench.recipe("absent", sources=[source]))
    assert code == 1
    assert "could not be built (docker build: exit" in err and "ab" * 20 in err and "hint:" in err
    assert bench.docker.docker("images", "--quiet", "sparkwright/absent") == ""
    assert bench.remains()["containers"] == []


@pytest.mark.full
def test_ctrl_c_leaves_no_container_and_no_name(bench: BuildShell) -> None:
    """Interrupted in the middle of a step: the step's container is gone, the lease too, and the message names both."""
    path = bench.recipe("slow", sources=[], steps=["sleep 120"])
    process = bench.shell.start("build", path, "--cluster", "cluster.yaml")
    while not bench.docker.docker("ps", "--quiet", "--filter", "status=running"):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    err = process.communicate(timeout=60)[1]
    code = process.returncode
    assert code == 130, err
    assert "no image sparkwright/slow:" in err
    # Docker ends the step's container after its client has gone
    wait_until(lambda: bench.docker.docker("ps", "--all", "--quiet") == "", "the step's container to be gone")
    assert bench.docker.docker("images", "--quiet", "sparkwright/slow") == ""


@pytest.mark.full
def test_another_architecture_is_refused(bench: BuildShell) -> None:
    """Nothing is emulated: the finding names both machines, before anything is built."""
    other = "linux/arm64" if PLATFORM == "linux/amd64" else "linux/amd64"
    code, _, err = bench.build(bench.recipe("other", platform=other))
    assert code == 1
    assert "ENG020" in err and "uname -m: expected" in err
