"""Every verb through `run`, on two fake nodes: text, JSON and exit codes."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from fakes.endpoint import FakeEndpoint
from fakes.rank_node import Exit
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.services import Services
from sparkwright.cli.main import run
from sparkwright.cli.plan_result import still_to_copy
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.command import Completed, Secret
from sparkwright.domain.errors import NotReady, Unreachable
from sparkwright.domain.plan import Placement, Plan, RankSpec
from sparkwright.domain.recipe import EngineChoice, Model, Recipe, Runtime
from sparkwright.ports import Sink
from unit.app.scene import JOINS, Scene, cluster, scene

Call = Callable[..., tuple[int, str, str]]
MEMINFO = """MemTotal: 127535084 kB
MemFree: 111000000 kB
MemAvailable: 117500000 kB
Buffers: 1 kB
Cached: 6120448 kB
"""
TWIN = """title: t
model: {id: sparkwright/twin-tiny, simulated: true}
engine: {name: simulator, version: 0.21.0, runtime: process}
nodes: 2
parallelism: {tp: 2}
"""


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """Two nodes of a simulated cluster; whatever the command line names, they are what it works on."""
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    made = scene()
    lab = replace(cluster(), simulated=True)

    @asynccontextmanager
    async def services(_: Cluster, __: ClusterOptions, sink: Sink) -> AsyncIterator[Services]:
        yield replace(made.services, cluster=lab, sink=sink)

    monkeypatch.setattr("sparkwright.wiring.services", services)
    monkeypatch.setattr("sparkwright.wiring.cluster_of", lambda *_: lab)
    monkeypatch.setattr("sparkwright.wiring.has_cluster", lambda _: True)
    for node in made.nodes:
        node.on("/proc/meminfo", MEMINFO)
    return made


@pytest.fixture
def call(here: Scene, capsys: Any) -> Call:
    def calling(*words: str) -> tuple[int, str, str]:
        code = run(list(words))
        said = capsys.readouterr()
        return code, said.out, said.err

    return calling


def lost(here: Scene) -> None:
    here.nodes[1].on(lambda command: True, Unreachable("spark-2", "no route to host", "is it on?"))


def simulated(data: Any) -> bool:
    """True if `simulated: true` is in it, at any depth."""
    if isinstance(data, dict):
        return data.get("simulated") is True or any(simulated(value) for value in data.values())
    return isinstance(data, list) and any(simulated(value) for value in data)


FORCE = ("--force", "a test")


@pytest.mark.parametrize(
    "words",
    [
        ("check",),
        ("facts",),
        ("facts", "spark-1"),
        ("plan", "twin", *FORCE),
        ("up", "twin", "--dry-run", *FORCE),
        ("up", "twin", *FORCE),
        ("up", "twin", "--detach", *FORCE),
        ("recipes", "list"),
        ("recipes", "show", "twin"),
    ],
    ids=" ".join,
)
def test_json_is_json_and_reports_simulated(call: Call, words: tuple[str, ...]) -> None:
    """stdout is one JSON document and nothing else; nothing simulated is passed off as real."""
    code, out, _ = call(*words, "--json")
    assert code in (0, 1)
    assert simulated(json.loads(out))


def test_json_of_what_runs_reports_simulated(here: Scene, call: Call) -> None:
    """status and down recognize it by the labels that the ranks themselves carry."""
    call("up", "twin", *FORCE)
    for words in (("status",), ("down", "twin")):
        code, out, _ = call(*words, "--json")
        assert code == 0
        assert simulated(json.loads(out)), words


def test_every_screen_reports_simulated(here: Scene, call: Call) -> None:
    """Every text has the mark."""
    for words in (("check",), ("facts",), ("plan", "twin"), ("up", "twin", *FORCE), ("status",)):
        _, out, _ = call(*words)
        assert "SIMULATED" in out or words[0] == "up", words
        assert "\x1b" not in out


def test_the_life_of_a_deployment(here: Scene, call: Call) -> None:
    """up, up again, status, down, status: each reports what is so, and the exit code is good."""
    code, out, err = call("up", "twin", *FORCE)
    assert code == 0, err
    assert out.startswith("SIMULATED  twin: ready after ")
    assert "  address   http://127.0.0.1:8000/v1" in out
    code, out, _ = call("up", "twin", *FORCE)
    assert code == 0 and out.startswith("SIMULATED  twin: already serving; the engine was not touched; checked in ")
    code, out, _ = call("status")
    assert (code, out.splitlines()[0]) == (0, "SIMULATED  twin: ready  http://127.0.0.1:8000/v1")
    code, out, _ = call("down", "twin")
    assert (code, out) == (0, "twin: 2 rank(s) removed\n")
    assert here.clean
    assert call("status")[:2] == (0, "nothing runs\n")
    for verb in ("status", "logs", "diagnose", "down", "restart"):
        code, out, err = call(verb, "twni")
        assert (code, out, "no deployment twni on spark-1, spark-2" in err, "there are: none" in err) == (
            2,
            "",
            True,
            True,
        )
    assert call("up", "twin", "--replace", "twni", *FORCE)[0] == 2


def test_progress_goes_to_stderr(here: Scene, call: Call) -> None:
    """stdout can be piped: it is the result."""
    _, out, err = call("up", "twin", *FORCE)
    assert "rank 0 spark-1  load" in err
    assert "rank 0 spark-1  load" not in out
    _, _, err = call("down", "twin", "--json")
    assert err == ""


def test_a_start_that_fails_is_5_with_the_proof(here: Scene, call: Call) -> None:
    """The last lines, the rank with its code, where the logs are."""
    here.nodes[1].script = (JOINS, "last words", Exit(1))
    code, out, err = call("up", "twin", *FORCE)
    assert (code, out) == (5, "")
    assert "  | last words" in err
    assert "error: rank 1 on spark-2 exited with code 1" in err
    assert "logs:  /evidence/twin" in err
    assert "Traceback" not in err


def test_a_degraded_deployment_is_1(here: Scene, call: Call) -> None:
    """Scripts can distinguish them."""
    call("up", "twin", *FORCE)
    here.endpoint = FakeEndpoint(NotReady("500 EngineDeadError"), models=("twin-tiny",))
    code, out, _ = call("status")
    assert (code, "degraded" in out) == (1, True)
    assert call("status", "--no-probe")[0] == 0


def test_a_taken_lease_is_4(here: Scene, call: Call) -> None:
    """The message has the holder, the reason, the time, and the way around it."""
    here.nodes[0].holder = '{"holder": "bob@desk", "why": "up x", "since": 1795233000, "nonce": "ff"}'
    code, _, err = call("up", "twin", *FORCE)
    assert code == 4
    assert "bob@desk holds the lease for `up x` since 10 min" in err
    assert call("up", "twin", "--break-lease", *FORCE)[0] == 0


@pytest.mark.parametrize(
    "words", [("check",), ("facts",), ("plan", "twin"), ("up", "twin"), ("status",), ("down", "twin")], ids=" ".join
)
def test_a_lost_node_is_3_and_named(here: Scene, call: Call, words: tuple[str, ...]) -> None:
    """The node is named with everything else known, and never a traceback."""
    lost(here)
    code, out, err = call(*words)
    assert code == 3
    assert "no route to host" in out + err
    assert "Traceback" not in err


def test_a_node_that_is_not_in_the_cluster_is_2(call: Call) -> None:
    """A typing error gives no empty answer."""
    code, _, err = call("facts", "spark-9")
    assert code == 2
    assert err.splitlines() == ["error: cluster lab has no node 'spark-9'", "hint:  its nodes: spark-1, spark-2"]


def test_facts_of_one_node_ask_only_that_one(here: Scene, call: Call) -> None:
    """The other may be down."""
    lost(here)
    assert call("facts", "spark-1")[0] == 0
    assert here.nodes[1].round_trips == 0


def test_a_plan_that_up_would_refuse_is_1_and_reports_it(call: Call, tmp_path: Any) -> None:
    """The refusal is the last line, after the findings; `up --dry-run` is the whole text with the same code."""
    file = tmp_path / "odd.yaml"
    file.write_text(f"{TWIN}flags: {{no-such-flag: true}}\n")
    code, out, _ = call("plan", str(file))
    assert code == 1
    assert out.splitlines()[-1].startswith("Not launchable: ")
    dry, text, _ = call("up", str(file), "--dry-run")
    assert (dry, text) == call("plan", str(file), "--splits", "--commands")[:2] == (code, text)
    code, _, err = call("up", str(file))
    assert (code, "no-such-flag" in err, "Traceback" in err) == (1, True, False)


def test_a_refused_plan_is_not_written_out(call: Call, tmp_path: Any) -> None:
    """A user who asks for files is shown that there are none, and why: not given the plan as text."""
    file = tmp_path / "odd.yaml"
    file.write_text(f"{TWIN}flags: {{no-such-flag: true}}\n")
    code, out, err = call("plan", str(file), "--emit", "shell", "--out", str(tmp_path / "x"))
    assert (code, out, (tmp_path / "x").exists()) == (1, "", False)
    assert "no-such-flag" in err and "odd: nothing was written: 1 finding prevents it" in err
    assert "hint:  to write them all the same" in err
    code, out, err = call("plan", str(file), "--emit", "shell", "--out", str(tmp_path / "x"), *FORCE)
    assert (code, (tmp_path / "x").exists()) == (0, True) and "ERROR" in err and "no-such-flag" in err


def test_files_for_later_do_not_look_at_ports_in_use_now(call: Call, here: Scene) -> None:
    """Guards a migration of what serves now: its own ports are taken; a start is refused all the same."""
    here.nodes[0].on("ss -ltnp", '@@ ss\nLISTEN 0 128 0.0.0.0:8000 0.0.0.0:* users:(("nginx",pid=7,fd=3))\n')
    code, out, _ = call("plan", "twin", "--json", *FORCE)
    assert code == 1 and "PORT001" in [one["code"] for one in json.loads(out)["findings"]], out
    code, out, err = call("plan", "twin", "--emit", "shell", "--json", *FORCE)
    assert code == 0 and json.loads(out)["files"] and "PORT001" not in err, err


def test_the_files_of_a_plan_as_json(call: Call) -> None:
    """The files go to stdout, or to a folder: one of both."""
    code, out, _ = call("plan", "twin", "--emit", "shell", "--json", *FORCE)
    assert code == 0 and [file["path"] for file in json.loads(out)["files"]] == ["spark-1/rank.sh", "spark-2/rank.sh"]
    assert call("plan", "twin", "--emit", "shell", "--json", "--out", "x")[0] == 2


def test_what_nobody_copies_for_the_files_is_reported() -> None:
    """A folder that is called by the commit once the weights are there cannot be in files before."""
    argv = ("serve", "/models/hub/models--a--b/snapshots/main")
    spec = RankSpec(0, "spark-1", argv, {}, Runtime.DOCKER)
    recipe = Recipe("r", "R", Model("a/b"), EngineChoice("trtllm", "1"))
    made = Plan("r", recipe, cluster(), Placement((), {}), (spec,), (), (), "127.0.0.1", 8000, "b")
    first, second = still_to_copy(made, ("weights: on no node; fetched once on spark-1, then copied",))
    assert first == "to be copied there before the start: weights: on no node"
    assert second.startswith("then write the files again: /snapshots/main")


def test_a_recipe_that_does_not_exist_is_2(call: Call) -> None:
    """The recipe is refused before any node is asked."""
    for verb in ("plan", "up"):
        code, _, err = call(verb, "nope")
        assert (code, err.startswith("error: recipe 'nope' does not exist")) == (2, True)


def test_a_key_that_is_not_set_is_2(here: Scene, call: Call, tmp_path: Any) -> None:
    """A set key shows in no text and no JSON."""
    file = tmp_path / "mine.yaml"
    file.write_text(f"{TWIN}serving: {{api_key_env: MY_KEY}}\n")
    code, _, err = call("plan", str(file))
    assert (code, "MY_KEY" in err) == (2, True)
    here.secrets = {"MY_KEY": Secret("k-123456")}
    for words in (("plan", str(file)), ("plan", str(file), "--json"), ("up", str(file), *FORCE), ("status", "--json")):
        assert "k-123456" not in "".join(map(str, call(*words)))


def test_logs_are_lines_with_their_rank(here: Scene, call: Call) -> None:
    """The lines are one object each as JSON."""
    call("up", "twin", *FORCE)
    for number, node in enumerate(here.nodes):
        node.on("tail -n", [f"line of {number}"])
    code, out, _ = call("logs", "twin")
    assert (code, sorted(out.splitlines())) == (0, ["0| line of 0", "1| line of 1"])
    _, out, _ = call("logs", "twin", "--rank", "1", "--json")
    row = json.loads(out)
    assert (row["rank"], row["node"], row["line"]) == (1, "spark-2", "line of 1")


def test_logs_show_no_control_characters_unless_asked_for(here: Scene, call: Call) -> None:
    """Guards the terminal against what an engine, or a client by way of it, has logged."""
    call("up", "twin", *FORCE)
    for node in here.nodes:
        node.on("tail -n", ["a\x9b2J\u202eb"])
    assert call("logs", "twin", "--rank", "0")[1] == "0| a 2J b\n"
    assert call("logs", "twin", "--rank", "0", "--raw")[1] == "0| a\x9b2J\u202eb\n"


def test_a_node_that_refuses_to_start_is_1(here: Scene, call: Call) -> None:
    """The message has the node's report and the remedy, and nothing is left."""
    here.nodes[0].refuses = Completed(125, "", "no space left on device")
    code, _, err = call("up", "twin", *FORCE)
    assert code == 1
    assert "no space left on device" in err
    assert here.clean
