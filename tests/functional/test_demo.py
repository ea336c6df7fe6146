"""`sparkwright demo`: the whole loop with real processes on this machine, and nothing left of it."""

import codecs
import json
import re
import signal
import urllib.request
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from functional.command import Shell

MORE = [pytest.param(text, marks=pytest.mark.full) for text in ("engine: twin", "answer: asking")]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path)
    yield made
    made.clean()


def test_the_whole_loop(shell: Shell) -> None:
    """Each verb under its title, a real answer marked simulated, where time went, what to do next; nothing is left."""
    code, out, err = shell.run("demo")
    assert code == 0, err
    titles = [line.split()[2] for line in out.splitlines() if line.startswith("--- sparkwright ")]
    assert titles == ["check", "plan", "up", "status", "down"]
    for part in (
        "SIMULATED: two embedded nodes",
        "all 2 nodes answered",
        "answer SIMULATED: '",
        "where time went",
        "SIMULATED  twin: ready",
        "nothing is left of it",
        "What to do next on real nodes:",
    ):
        assert part in out, part
    assert "rank 1 spark-2  rendezvous" in err
    assert "\x1b" not in out + err
    assert shell.left == []


@pytest.mark.full
def test_as_json(shell: Shell) -> None:
    """One document, marked, with the answer, the times and the state; stderr is silent."""
    code, out, err = shell.run("demo", "--json")
    assert (code, err) == (0, "")
    data = json.loads(out)
    assert data["simulated"] is True and data["answer"]["simulated"] is True
    assert data["answer"]["completion_tokens"] > 0
    assert data["status"][0]["state"] == "ready"
    assert {"facts", "start ranks", "load", "answer", "total"} <= {step["name"] for step in data["steps"]}
    assert shell.left == []


def test_kept_it_can_be_looked_at_and_ended(shell: Shell) -> None:
    """The written cluster file works with every other verb; after `down` and `rm` nothing is left."""
    code, out, err = shell.run("demo", "--keep", "--json")
    assert code == 0, err
    kept = json.loads(out)
    where = ("--cluster", kept["cluster_file"])
    try:
        with urllib.request.urlopen(f"{kept['endpoint']}/models", timeout=60) as answer:
            assert json.load(answer)["data"][0]["id"] == "twin-tiny"
        code, out, _ = shell.run("status", *where)
        assert (code, out.splitlines()[0]) == (0, f"SIMULATED  twin: ready  {kept['endpoint']}")
        code, out, _ = shell.run("facts", "spark-2", *where)
        assert (code, "twin rank 1: running" in out) == (0, True)
        code, out, _ = shell.run("logs", "twin", "--rank", "0", "--tail", "0", *where)
        assert (code, "Application startup complete." in out) == (0, True)
    finally:
        code, out, _ = shell.run("down", "twin", *where)
    assert (code, out) == (0, "twin: 2 rank(s) removed\n")
    assert shell.run("status", *where)[:2] == (0, "nothing runs\n")
    states = [path for path in Path(kept["folder"]).rglob("*") if "deployments" in path.parts or path.name == "lease"]
    assert [path for path in states if path.is_file()] == []
    assert [line for line in shell.left if "sparkwright.simulator" in line] == []


@pytest.mark.parametrize("marker", ["start ranks ...", *MORE])
def test_interrupted_it_leaves_nothing(shell: Shell, marker: str) -> None:
    """Ctrl-C at any moment: ranks, files and folder go before it ends."""
    code, err = shell.interrupted(marker, signal.SIGINT, "demo")
    assert (code, "Traceback" in err, "continue to run" in err) == (130, False, False), err
    assert shell.left == []


def test_terminated_it_leaves_nothing(shell: Shell) -> None:
    """SIGTERM, as a service manager or `timeout` sends it, is treated like Ctrl-C."""
    code, err = shell.interrupted("engine: twin", signal.SIGTERM, "demo")
    assert (code, "Traceback" in err) == (130, False), err
    assert shell.left == []


def test_only_recipes_of_the_simulator_can_be_shown(shell: Shell) -> None:
    """A demonstration downloads nothing."""
    code, out, err = shell.run("demo", "--recipe", "deepseek-v4-flash")
    assert (code, out) == (2, "")
    assert "its engine is vllm" in err
    assert shell.left == []


@pytest.mark.full
def test_a_version_whose_lines_nobody_understands_is_ready_when_it_answers(shell: Shell, tmp_path: Path) -> None:
    """Real ranks that print nothing known: `up` shows that, waits for the API's answer, and saves their logs."""
    code, out, err = shell.run("demo", "--keep", "--json")
    assert code == 0, err
    where = ("--cluster", json.loads(out)["cluster_file"])
    shell.run("down", "twin", *where)
    tree = yaml.safe_load((files("sparkwright.recipes") / "shipped/twin.yaml").read_text(encoding="utf-8"))
    tree["env"] = {**tree.get("env", {}), "SPARKWRIGHT_TWIN_FAULT": "odd_lines"}
    recipe = tmp_path / "odd.yaml"
    recipe.write_text(yaml.safe_dump(tree | {"name": "odd"}))
    try:
        code, out, err = shell.run("up", str(recipe), *where)
        assert code == 0, err
        assert "no line of rank 0 on spark-1 is understood so far" in err
        (folder,) = re.findall(r"logs that were not understood are in (\S+)", err)
        text = (Path(folder) / "rank0-spark-1.log").read_text(encoding="utf-8")
        assert "Application startup complete." in codecs.decode(text, "rot13")
    finally:
        code, out, _ = shell.run("down", "odd", *where)
    assert (code, out) == (0, "odd: 2 rank(s) removed\n")
