"""`sparkwright demo`: a supervised deployment that loses a rank and recovers, with real processes on this machine."""

import codecs
import html
import json
import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from functional.command import UserShell
from functional.gateway.gateways import has_caddy
from patience import PATIENCE

LINES = 24
MORE = [
    pytest.param(word, marks=pytest.mark.full)
    for word in ("plan", "address", "fault", "(?:503|held|refused)", "recovered")
]


@pytest.fixture
def user_shell(tmp_path: Path) -> Iterator[UserShell]:
    if not has_caddy():
        pytest.skip("caddy is not installed")
    made = UserShell(tmp_path)
    yield made
    made.clean()


def demo_leftovers(shell: UserShell) -> list[str]:
    """Processes, files and keys of a demonstration."""
    return shell.left + [str(path) for path in shell.folder.rglob("*.key")]


def test_it_shows_the_product_on_one_screen(user_shell: UserShell) -> None:
    """Gateway, console, a killed rank, the 503 with its reason, the recovery and the incident; nothing is left."""
    code, out, err = user_shell.run("demo")
    assert (code, err) == (0, ""), err
    lines = out.splitlines()
    assert len(lines) <= LINES and "\x1b" not in out, out
    assert lines[0].startswith("SIMULATED: two embedded nodes")
    words = [found[1] for line in lines if (found := re.match(r" *[\d.]+ s  (\w+) ", line))]
    steps = ["check", "plan", "up", "ready", "address", "console", "fault", "recovered", "incident", "proof"]
    assert [word for word in words if word not in ("503", "held", "refused")] == [*steps, "doubt", "down", "nothing"], (
        out
    )
    assert re.search(r"http://127\.0\.0\.1:\d+/console/   key sk-", out)
    # Which happens depends on the machine: a model that is back soon makes clients wait, a busy one answers late.
    assert re.search(r"503 +after [\d.]+ s: .*rank 1 on spark-2 ended and left no exit code|(held|refused) +a", out)
    assert re.search(r"incident +1: rank killed by an external signal \[LIVE009\]", out)
    assert re.search(r"proof +rank 1 on spark-2 was killed by signal 9 from outside", out)
    assert demo_leftovers(user_shell) == []


@pytest.mark.full
def test_as_json(user_shell: UserShell) -> None:
    """One document, marked, with the answer, the fault, the incident and the state; stderr is silent."""
    code, out, err = user_shell.run("demo", "--json")
    assert (code, err) == (0, "")
    data = json.loads(out)
    assert data["simulated"] is True and data["answer"]["simulated"] is True
    assert (data["fault"]["status"], data["fault"]["refused"] > 0) in ((503, True), (0, True), (200, False))
    assert data["fault"]["node"] == "spark-2"
    assert data["incident"]["number"] == 1 and data["incident"]["proof"] and data["incident"]["doubts"]
    assert data["status"][0]["state"] == "ready"
    assert demo_leftovers(user_shell) == []


@pytest.mark.full
def test_kept_it_can_be_looked_at_and_ended(user_shell: UserShell) -> None:
    """`status`, `top`, `connect`, `incidents` and the console work on it; the printed command ends it."""
    code, out, err = user_shell.run("demo", "--keep")
    assert code == 0, err
    kept = Path(re.findall(r"SPARKWRIGHT_CLUSTER=(\S+)", out)[0])
    env = {"SPARKWRIGHT_CLUSTER": str(kept)}
    address, key = re.findall(r"console +(http\S+) +key (\S+)", out)[0]
    try:
        code, out_, _ = user_shell.run("status", **env)
        assert (code, "SIMULATED  simulator: ready" in out_, "incidents: 1" in out_) == (0, True, True), out_
        code, out_, _ = user_shell.run("incidents", "show", "1", **env)
        assert (code, "LIVE009" in out_) == (0, True)
        process = user_shell.start("top", "--every", "0.5", **env)
        assert process.stdout
        frame = process.stdout.readline() + process.stdout.readline()
        assert "SIMULATED  simulator: ready" in frame
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        code, out_, _ = user_shell.run("connect", "curl", **env)
        assert (code, "twin-tiny" in out_) == (0, True), out_
        console = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        console.open(f"{address}login", f"key={key}".encode(), timeout=60)
        with console.open(f"{address}connect", timeout=60) as page:
            curl = re.findall(r"<pre[^>]*>(read .*?)</pre>", html.unescape(page.read().decode()), re.S)[0]
        done = subprocess.run(["bash", "-c", curl], input=f"{key}\n", capture_output=True, text=True, timeout=60)
        assert json.loads(done.stdout)["choices"], "the curl of the page works when it is pasted"
    finally:
        ending = re.findall(r"sparkwright down simulator && rm -r (\S+) (\S+)", out)[0]
        code, out_, _ = user_shell.run("down", "simulator", **env)
    assert (code, out_) == (0, "simulator: 2 rank(s) removed\n")
    assert kept.parent == Path(ending[0]) and list(Path(ending[1]).glob("*.key"))
    assert user_shell.run("status", **env)[:2] == (0, "nothing runs\n")
    assert [line for line in user_shell.left if "sparkwright.simulator" in line or "supervision" in line] == []


def interrupted(shell: UserShell, word: str, number: signal.Signals) -> tuple[int, str]:
    """Sends the signal once a line begins with the word; exit code and both outputs."""
    with shell.start("demo") as process:  # closes its pipes, also after a failure
        assert process.stdout
        said = ""
        try:
            for line in process.stdout:
                said += line
                if re.match(rf" *[\d.]+ s  {word} ", line):
                    break
            process.send_signal(number)
            rest, err = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    return process.returncode, said + rest + err


@pytest.mark.full
@pytest.mark.parametrize("word", ["up", *MORE])
def test_interrupted_it_leaves_nothing(user_shell: UserShell, word: str) -> None:
    """Ctrl-C at any moment: ranks, supervisor, gateway, files and keys go before it ends."""
    code, said = interrupted(user_shell, word, signal.SIGINT)
    assert (code, "Traceback" in said) == (130, False), said
    assert "continue to run" not in said and demo_leftovers(user_shell) == []


@pytest.mark.full
def test_terminated_it_leaves_nothing(user_shell: UserShell) -> None:
    """SIGTERM, as a service manager or `timeout` sends it, is treated like Ctrl-C."""
    code, said = interrupted(user_shell, "up", signal.SIGTERM)
    assert (code, "Traceback" in said) == (130, False), said
    assert demo_leftovers(user_shell) == []


def test_only_recipes_of_the_simulator_can_be_shown(user_shell: UserShell) -> None:
    """A demonstration downloads nothing."""
    code, out, err = user_shell.run("demo", "--recipe", "deepseek-v4-flash")
    assert (code, out) == (2, "")
    assert "its engine is vllm" in err
    assert demo_leftovers(user_shell) == []


@pytest.mark.full
def test_a_version_whose_lines_nobody_understands_is_ready_when_it_answers(
    user_shell: UserShell, tmp_path: Path
) -> None:
    """Real ranks that print nothing known: `up` shows that, waits for the API's answer, and saves their logs."""
    code, out, err = user_shell.run("demo", "--keep", "--json")
    assert code == 0, err
    where = ("--cluster", json.loads(out)["cluster_file"])
    user_shell.run("down", "simulator", *where)
    tree = yaml.safe_load((files("sparkwright.recipes") / "shipped/simulator.yaml").read_text(encoding="utf-8"))
    tree["env"] = {**tree.get("env", {}), "SPARKWRIGHT_SIMULATOR_FAULT": "odd_lines"}
    recipe = tmp_path / "odd.yaml"
    recipe.write_text(yaml.safe_dump(tree | {"name": "odd"}))
    try:
        code, out, err = user_shell.run("up", str(recipe), "--no-supervise", *where)
        assert code == 0, err
        assert "no line of rank 0 on spark-1 is understood so far" in err
        (folder,) = re.findall(r"logs that were not understood are in (\S+)", err)
        text = (Path(folder) / "rank0-spark-1.log").read_text(encoding="utf-8")
        assert "Application startup complete." in codecs.decode(text, "rot13")
    finally:
        code, out, _ = user_shell.run("down", "odd", *where)
    assert (code, out) == (0, "odd: 2 rank(s) removed\n")
