"""`sparkwright build` as far as it needs no node: what it would build, and what it reports of wrong arguments."""

import json
import subprocess
from pathlib import Path

import pytest

from functional.command import UserShell
from sparkwright.recipes.dockerfile import FOLDER

SHIPPED = "deepseek-v4-flash-built"
PLAIN = "title: mine\nmodel: {id: a/b}\nengine: {name: vllm, version: 0.21.0, runtime: process}\n"


@pytest.fixture
def user_shell(tmp_path: Path) -> UserShell:
    """A shell without a cluster file: someone who only looks has none yet."""
    return UserShell(tmp_path)


def test_a_dry_run_prints_all_that_docker_would_be_given(user_shell: UserShell) -> None:
    """The same files as with --json, the Dockerfile first, and every script that it copies is among them."""
    code, out, err = user_shell.run("build", SHIPPED, "--dry-run")
    assert code == 0, err
    told = json.loads(user_shell.run("build", SHIPPED, "--dry-run", "--json")[1])
    assert out.startswith(f"# image {told['image']} for linux/arm64\n")
    assert [line[7:] for line in out.splitlines() if line.startswith("# ---- ")] == list(told["files"])
    copied = [line.split()[1:-1] for line in told["files"]["Dockerfile"].splitlines() if line.startswith("COPY ")]
    assert {name for names in copied for name in names} == set(told["files"]) - {"Dockerfile"}
    assert told["labels"]["sparkwright.build.sources"].endswith("72261a7af149fa5d3fe2ed2b9956e92590731012")


def test_its_scripts_are_good_shell(user_shell: UserShell) -> None:
    """A mistake in one would be found after an hour of compiling."""
    files = json.loads(user_shell.run("build", SHIPPED, "--dry-run", "--json")[1])["files"]
    scripts = {name: text for name, text in files.items() if name.endswith(".sh")}
    assert set(scripts) == {"source-vllm.sh", "ptxas.sh", "steps.sh"} and FOLDER in files["Dockerfile"]
    for name, text in scripts.items():
        assert run_script(text, "-n") == (0, ""), name


def run_script(text: str, *words: str) -> tuple[int, str]:
    done = subprocess.run(["sh", *words], input=text, capture_output=True, text=True)
    return done.returncode, done.stderr


def test_the_ptxas_link(tmp_path: Path, user_shell: UserShell) -> None:
    """Run for real, with a Triton of the test's own: the link is where it looks, and a ptxas too old is named."""
    text = json.loads(user_shell.run("build", SHIPPED, "--dry-run", "--json")[1])["files"]["ptxas.sh"]
    ptxas, site = tmp_path / "cuda/ptxas", tmp_path / "site"
    (site / "triton").mkdir(parents=True)
    (site / "triton/__init__.py").write_text("raise ImportError('nothing is imported')\n")
    ptxas.parent.mkdir()
    local = f"PYTHONPATH={site}; export PYTHONPATH\n" + text.replace("/usr/local/cuda/bin/ptxas", str(ptxas))
    assert "take a -devel image" in run_script(local)[1]
    for known, code in (("sm_120a", 1), ("sm_121a", 0)):
        ptxas.write_text(f"#!/bin/sh\necho Allowed values: {known}\n")
        ptxas.chmod(0o755)
        assert run_script(local)[0] == code
    assert (site / "triton/backends/nvidia/bin/ptxas").resolve() == ptxas


def test_a_recipe_without_the_section(user_shell: UserShell) -> None:
    """Reported in one message; nothing is asked of any node."""
    (user_shell.folder / "cluster.yaml").write_text("name: one\nnodes: [{name: here, ssh: local}]\n")
    (user_shell.folder / "mine.yaml").write_text(PLAIN)
    code, out, err = user_shell.run("build", "./mine.yaml")
    assert (code, out) == (2, "") and "it has no `build` section" in err and "hint:" in err
    assert user_shell.run("build", "./mine.yaml", "--dry-run")[0] == 2
