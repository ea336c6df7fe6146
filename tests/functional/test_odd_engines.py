"""Engines that tell less than usual, or in another form: each goes on, and what is not known is told once."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from functional.command import UserShell
from functional.test_diagnose_deployment import recipe

pytestmark = [pytest.mark.full, pytest.mark.each_row]
SIMULATOR = f"{sys.executable} -m sparkwright.simulator"
QUICK = {"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0.01"}
FORCE = ("--force", "no GPU here")
# The form of vLLM 0.33.0's `--logging-config '{"formatter": "json"}'` (vllm/logging_utils/formatter.py).
AS_JSON = r"""
import json, re, signal, subprocess, sys
signal.signal(signal.SIGTERM, lambda *_: ran.terminate())
ran = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
for line in ran.stdout:
    found = re.match(r"\(([\w-]+) pid=(\d+)\) (\w+) (\d\d-\d\d [\d:]+) \[(\S+?)\.py:\d+\] (.*)", line)
    if found:
        process, pid, level, at, name, message = found.groups()
        head = {"asctime": f"2026-{at},123", "levelname": level, "name": f"vllm.{name}", "processName": process}
        line = json.dumps({**head, "process": int(pid), "message": message}) + "\n"
    sys.stdout.write(line); sys.stdout.flush()
sys.exit(ran.wait())
"""


@pytest.fixture
def user_shell(tmp_path: Path) -> Iterator[UserShell]:
    """Two entries that are this machine, distinguished by their state folders."""
    entry = (
        "  - {{name: {0}, ssh: local, fabric: {{address: 127.0.0.{2}, interface: lo, hcas: []}},"
        " paths: {{state: {1}/{0}/state, models: {1}/models, hub: {1}/hub, cache: {1}/cache}}}}\n"
    )
    nodes = "".join(entry.format(name, tmp_path, number) for number, name in enumerate("ab", 1))
    (tmp_path / "cluster.yaml").write_text(f"head: a\nnodes:\n{nodes}")
    made = UserShell(tmp_path)
    yield made
    made.run("down", "twin")
    made.clean()


def odd_recipe(shell: UserShell, engine: str) -> str:
    """The recipe with `engine` in place of the engine's version line."""
    path = recipe(shell, **QUICK)
    text, changed = re.subn(r"  version: 0\.21\.0.*\n", engine, (shell.folder / "twin.yaml").read_text())
    assert changed == 1
    (shell.folder / "twin.yaml").write_text(text)
    return path


def started_by(shell: UserShell, line: str) -> str:
    """The recipe with a program of its own, a shell script with this line."""
    program = shell.folder / "engine"
    program.write_text(f"#!/bin/sh\n{line}\n")
    program.chmod(0o755)
    return odd_recipe(shell, f"  version: 0.33.0\n  entrypoint: [{program}]\n")


def run_well(shell: UserShell, *words: str) -> str:
    code, out, err = shell.run(*words)
    assert code == 0, f"{' '.join(words)}: exit {code}\n{out}\n{err}"
    return out + err


def logs(shell: UserShell) -> list[Path]:
    return sorted(shell.folder.glob("?/state/deployments/twin/rank*/log"))


@pytest.mark.parametrize("version", ["0.33.0+cu130.gabc", "nightly", "main"])
def test_a_version_that_nobody_has_read(user_shell: UserShell, version: str) -> None:
    """Guards every step with it: the nearest flags are used, which is told once, and nothing is refused."""
    path = odd_recipe(user_shell, f"  version: {version}\n")
    for words in (("recipes", "validate", path), ("plan", path, "--nodes", "2", "--why")):
        told = run_well(user_shell, *words)
        assert told.count("ENG005") == 1 and f"no flag data for {version}" in told, told
    told = run_well(user_shell, "up", path, "--no-supervise", *FORCE)
    assert "ready" in told and told.count("ENG005") <= 1, told
    run_well(user_shell, "down", "twin")


def test_a_log_in_json(user_shell: UserShell) -> None:
    """Guards vLLM 0.33's other form of log: phases are seen, and a good start has no cause."""
    (user_shell.folder / "as_json.py").write_text(AS_JSON)
    path = started_by(user_shell, f'exec {sys.executable} {user_shell.folder}/as_json.py {SIMULATOR} "$@"')
    run_well(user_shell, "recipes", "validate", path)
    run_well(user_shell, "plan", path, "--nodes", "2")
    told = run_well(user_shell, "up", path, "--no-supervise", *FORCE)
    assert re.search(r"rank 0 a +graphs", told) and "not understood" not in told, told
    (first, *_) = logs(user_shell)
    assert '{"asctime"' in first.read_text()
    run_well(user_shell, "diagnose", str(first))


def test_an_engine_without_any_log(user_shell: UserShell) -> None:
    """Guards a quiet engine: its answer proves the start, and a diagnosis of nothing names no cause."""
    path = started_by(user_shell, f'exec {SIMULATOR} "$@" >/dev/null 2>&1')
    run_well(user_shell, "recipes", "validate", path)
    run_well(user_shell, "plan", path, "--nodes", "2")
    told = run_well(user_shell, "up", path, "--no-supervise", *FORCE)
    assert "ready" in told and told.count("rank 0 on a has printed nothing") == 1, told
    (first, *_) = logs(user_shell)
    code, out, err = user_shell.run("diagnose", str(first))
    assert (code, out) == (2, "") and "nothing" in err, out + err
