"""A real server of which sparkwright knows only the command: Gaijin's dasllama from PyPI, a GGUF engine of its own.

DASLLAMA_VENV names a venv that has it; without that it is installed from the registry, and the tests are skipped where
that cannot be done. Tried with 0.6.6 of October 2026.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes.ports import free_port
from functional.command import UserShell
from functional.test_install_supervisor import SCALED
from functional.test_install_supervisor import user_shell as two_nodes
from functional.tiny_gguf import write_tiny_gguf
from patience import wait_until

pytestmark = pytest.mark.full
PACKAGE = "dasllama==0.6.6"
FORCE = ("--force", "no GPU here")
RECIPE = """name: das
title: dasllama's own server, random weights
model: {{path: {model}, served_name: tiny.gguf}}
engine:
  name: custom
  runtime: process
  venv: {venv}
  command: [dasllama-server, -m, "{{model}}", --host, "{{host}}", -p, "{{port}}", --gpu, "off", -q, fp32, -t, "2"]
serving: {{port: {port}, coherence: false}}
flags: {{ctx: 512, streams: 2}}
"""
shell = two_nodes


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if named := os.environ.get("DASLLAMA_VENV"):
        return Path(named)
    made = tmp_path_factory.mktemp("dasllama")
    install = [str(made / "bin/python"), "-m", "pip", "install", "-q", "--no-deps", PACKAGE]
    for command in ([sys.executable, "-m", "venv", str(made)], install):
        if subprocess.run(command, capture_output=True, timeout=300).returncode:
            pytest.skip(f"{PACKAGE} cannot be installed here")
    return made


class Das:
    def __init__(self, shell: UserShell, venv: Path) -> None:
        self.shell, self.port = shell, free_port()
        model = write_tiny_gguf(shell.folder / "tiny.gguf")
        self.text = RECIPE.format(model=model, venv=venv, port=self.port)
        (shell.folder / "das.yaml").write_text(self.text)

    def good(self, *words: str, **env: str) -> Any:
        code, out, err = self.shell.run(*words, "--json", **env)
        assert code == 0, err + out[-2000:]
        return json.loads(out)

    def live(self) -> Any:
        return json.loads((self.shell.folder / "a/state/supervision/das/live.json").read_text())


@pytest.fixture
def server(shell: UserShell, installed: Path) -> Iterator[Das]:
    yield Das(shell, installed)
    shell.run("down", "das")


def test_a_server_from_a_registry_serves_and_comes_back(server: Das) -> None:
    """Guards the way of an unknown engine with a real one: answer, unknown figures, a kill, a benchmark, the end."""
    (memory,) = json.loads(server.shell.run("plan", "./das.yaml", "--json")[1])["memory"]
    unknown = {line["name"] for line in memory["lines"] if not line["known"]}
    assert memory["verdict"] == "not known" and unknown == {"engine overhead", "KV pool"}
    done = server.good("up", "./das.yaml", *FORCE, **SCALED)
    assert done["answer"]["completion_tokens"] > 0 and not done["answer"]["simulated"] and done["engine"] == {}
    (head,) = server.shell.folder.glob("a/state/deployments/das/rank0/pid")
    os.kill(int(head.read_text().split()[0]), 9)
    wait_until(lambda: server.live()["relaunches"] == 1, "the supervisor to start it again")
    wait_until(lambda: server.live()["phase"] in ("ready", "degraded"), "it to serve again")
    assert server.live()["engine"] is None  # it has no page of figures, and none are made up
    assert "loading" in server.shell.run("logs", "das", "--tail", "0")[1]
    code, out, err = server.shell.run("bench", "das", "--time", "10s", "--json")
    assert code in (0, 1), err  # 1: cut short, it is not valid for each metric
    level = json.loads(out)["runs"][0]["levels"][0]
    assert level["good"] == level["sent"] > 0
    server.good("down", "das")
    assert server.good("status")["deployments"] == []


def test_its_own_words_are_the_reason_of_a_failed_start(server: Das) -> None:
    """Guards a failure of an engine without any rules: what it printed last explains the end."""
    (server.shell.folder / "tiny.gguf").write_bytes(b"GGUF, but nothing else")
    code, out, err = server.shell.run("up", "./das.yaml", "--no-supervise", *FORCE)
    assert code == 5 and "rank 0" in err and "tiny.gguf" in err + out, err
