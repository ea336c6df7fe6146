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
from unit.app.scene import JOINS, ClusterScene, cluster, make_scene

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
def cluster_scene(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> ClusterScene:
    """Two nodes of a simulated cluster; whatever the command line names, they are what it works on."""
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    made = make_scene()
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
def call_verb(cluster_scene: ClusterScene, capsys: Any) -> Call:
    def calling(*words: str) -> tuple[int, str, str]:
        code = run(list(words))
        said = capsys.readouterr()
        return code, said.out, said.err

    return calling


def lose_node(here: ClusterScene) -> None:
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
def test_json_is_json_and_reports_simulated(call_verb: Call, words: tuple[str, ...]) -> None:
    """stdout is one JSON document and nothing else; nothing simulated is passed off as real."""
    code, out, _ = call_verb(*words, "--json")
    assert code in (0, 1)
    assert simulated(json.loads(out))


def test_json_of_what_runs_reports_simulated(cluster_scene: ClusterScene, call_verb: Call) -> None:
    """status and down recognize it by the labels that the ranks themselves carry."""
    call_verb("up", "twin", *FORCE)
    for words in (("status",), ("down", "twin")):
        code, out, _ = call_verb(*words, "--json")
        assert code == 0
        assert simulated(json.loads(out)), words


def test_every_screen_reports_simulated(cluster_scene: ClusterScene, call_verb: Call) -> None:
    """Every text has the mark."""
    for words in (("check",), ("facts",), ("plan", "twin"), ("up", "twin", *FORCE), ("status",)):
        _, out, _ = call_verb(*words)
        assert "SIMULATED" in out or words[0] == "up", words
        assert "\x1b" not in out


def test_the_life_of_a_deployment(cluster_scene: ClusterScene, call_verb: Call) -> None:
    """up, up again, status, down, status: each reports what is so, and the exit code is good."""
    code, out, err = call_verb("up", "twin", *FORCE)
    assert code == 0, err
    assert out.startswith("SIMULATED  twin: ready after ")
    assert "  address   http://127.0.0.1:8000/v1" in out
    code, out, _ = call_verb("up", "twin", *FORCE)
    assert code == 0 and out.startswith("SIMULATED  twin: already serving; the engine was not touched; checked in ")
    code, out, _ = call_verb("status")
    assert (code, out.splitlines()[0]) == (0, "SIMULATED  twin: ready  http://127.0.0.1:8000/v1")
    code, out, _ = call_verb("down", "twin")
    assert (code, out) == (0, "twin: 2 rank(s) removed\n")
    assert cluster_scene.clean
    assert call_verb("status")[:2] == (0, "nothing runs\n")
    for verb in ("status", "logs", "diagnose", "down", "restart"):
        code, out, err = call_verb(verb, "twni")
        assert (code, out, "no deployment twni on spark-1, spark-2" in err, "there are: none" in err) == (
            2,
            "",
            True,
            True,
        )
    assert call_verb("up", "twin", "--replace", "twni", *FORCE)[0] == 2


def test_progress_goes_to_stderr(cluster_scene: ClusterScene, call_verb: Call) -> None:
    """stdout can be piped: it is the result."""
    _, out, err = call_verb("up", "twin", *FORCE)
    assert "rank 0 spark-1  load" in err
    assert "rank 0 spark-1  load" not in out
    _, _, err = call_verb("down", "twin", "--json")
    assert err == ""


def test_a_start_that_fails_is_5_with_the_proof(cluster_scene: ClusterScene, call_verb: Call) -> None:
    """The last lines, the rank with its code, where the logs are."""
    cluster_scene.nodes[1].script = (JOINS, "last words", Exit(1))
    code, out, err = call_verb("up", "twin", *FORCE)
    assert (code, out) == (5, "")
    assert "  | last words" in err
    assert "error: rank 1 on spark-2 exited with code 1" in err
    assert "logs:  /evidence/twin" in err
    assert "Traceback" not in err


def test_a_degraded_deployment_is_1(cluster_scene: ClusterScene, call_verb: Call) -> None:
    """Scripts can distinguish them."""
    call_verb("up", "twin", *FORCE)
    cluster_scene.endpoint = FakeEndpoint(NotReady("500 EngineDeadError"), models=("twin-tiny",))
    code, out, _ = call_verb("status")
    assert (code, "degraded" in out) == (1, True)
    assert call_verb("status", "--no-probe")[0] == 0


def test_a_taken_lease_is_4(cluster_scene: ClusterScene, call_verb: Call) -> None:
    """The message has the holder, the reason, the time, and the way around it."""
    cluster_scene.nodes[0].holder = '{"holder": "bob@desk", "why": "up x", "since": 1795233000, "nonce": "ff"}'
    code, _, err = call_verb("up", "twin", *FORCE)
    assert code == 4
    assert "bob@desk holds the lease for `up x` since 10 min" in err
    assert call_verb("up", "twin", "--break-lease", *FORCE)[0] == 0


@pytest.mark.parametrize(
    "words", [("check",), ("facts",), ("plan", "twin"), ("up", "twin"), ("status",), ("down", "twin")], ids=" ".join
)
def test_a_lost_node_is_3_and_named(cluster_scene: ClusterScene, call_verb: Call, words: tuple[str, ...]) -> None:
    """The node is named with everything else known, and never a traceback."""
    lose_node(cluster_scene)
    code, out, err = call_verb(*words)
    assert code == 3
    assert "no route to host" in out + err
    assert "Traceback" not in err


def test_a_node_that_is_not_in_the_cluster_is_2(call_verb: Call) -> None:
    """A typing error gives no empty answer."""
    code, _, err = call_verb("facts", "spark-9")
    assert code == 2
    assert err.splitlines() == ["error: cluster lab has no node 'spark-9'", "hint:  its nodes: spark-1, spark-2"]


def test_facts_of_one_node_ask_only_that_one(cluster_scene: ClusterScene, call_verb: Call) -> None:
    """The other may be down."""
    lose_node(cluster_scene)
    assert call_verb("facts", "spark-1")[0] == 0
    assert cluster_scene.nodes[1].round_trips == 0


def test_a_plan_that_up_would_refuse_is_1_and_reports_it(call_verb: Call, tmp_path: Any) -> None:
    """The refusal is the last line, after the findings; `up --dry-run` is the whole text with the same code."""
    file = tmp_path / "odd.yaml"
    file.write_text(f"{TWIN}flags: {{no-such-flag: true}}\n")
    code, out, _ = call_verb("plan", str(file))
    assert code == 1
    assert out.splitlines()[-1].startswith("Not launchable: ")
    dry, text, _ = call_verb("up", str(file), "--dry-run")
    assert (dry, text) == call_verb("plan", str(file), "--splits", "--commands")[:2] == (code, text)
    code, _, err = call_verb("up", str(file))
    assert (code, "no-such-flag" in err, "Traceback" in err) == (1, True, False)


def test_a_refused_plan_is_not_written_out(call_verb: Call, tmp_path: Any) -> None:
    """A user who asks for files is shown that there are none, and why: not given the plan as text."""
    file = tmp_path / "odd.yaml"
    file.write_text(f"{TWIN}flags: {{no-such-flag: true}}\n")
    code, out, err = call_verb("plan", str(file), "--emit", "shell", "--out", str(tmp_path / "x"))
    assert (code, out, (tmp_path / "x").exists()) == (1, "", False)
    assert "no-such-flag" in err and "odd: nothing was written: 1 finding prevents it" in err
    assert "hint:  to write them all the same" in err
    code, out, err = call_verb("plan", str(file), "--emit", "shell", "--out", str(tmp_path / "x"), *FORCE)
    assert (code, (tmp_path / "x").exists()) == (0, True) and "ERROR" in err and "no-such-flag" in err


def test_files_for_later_do_not_look_at_ports_in_use_now(call_verb: Call, cluster_scene: ClusterScene) -> None:
    """Guards a migration of what serves now: its own ports are taken; a start is refused all the same."""
    cluster_scene.nodes[0].on("ss -ltnp", '@@ ss\nLISTEN 0 128 0.0.0.0:8000 0.0.0.0:* users:(("nginx",pid=7,fd=3))\n')
    code, out, _ = call_verb("plan", "twin", "--json", *FORCE)
    assert code == 1 and "PORT001" in [one["code"] for one in json.loads(out)["findings"]], out
    code, out, err = call_verb("plan", "twin", "--emit", "shell", "--json", *FORCE)
    assert code == 0 and json.loads(out)["files"] and "PORT001" not in err, err


def test_the_files_of_a_plan_as_json(call_verb: Call) -> None:
    """The files go to stdout, or to a folder: one of both."""
    code, out, _ = call_verb("plan", "twin", "--emit", "shell", "--json", *FORCE)
    assert code == 0 and [file["path"] for file in json.loads(out)["files"]] == ["spark-1/rank.sh", "spark-2/rank.sh"]
    assert call_verb("plan", "twin", "--emit", "shell", "--json", "--out", "x")[0] == 2


def test_what_nobody_copies_for_the_files_is_reported() -> None:
    """A folder that is called by the commit once the weights are there cannot be in files before."""
    argv = ("serve", "/models/hub/models--a--b/snapshots/main")
    spec = RankSpec(0, "spark-1", argv, {}, Runtime.DOCKER)
    recipe = Recipe("r", "R", Model("a/b"), EngineChoice("trtllm", "1"))
    made = Plan("r", recipe, cluster(), Placement((), {}), (spec,), (), (), "127.0.0.1", 8000, "b")
    first, second = still_to_copy(made, ("weights: on no node; fetched once on spark-1, then copied",))
    assert first == "to be copied there before the start: weights: on no node"
    assert second.startswith("then write the files again: /snapshots/main")


def test_a_recipe_that_does_not_exist_is_2(call_verb: Call) -> None:
    """The recipe is refused before any node is asked."""
    for verb in ("plan", "up"):
        code, _, err = call_verb(verb, "nope")
        assert (code, err.startswith("error: recipe 'nope' does not exist")) == (2, True)


def test_a_key_that_is_not_set_is_2(cluster_scene: ClusterScene, call_verb: Call, tmp_path: Any) -> None:
    """A set key shows in no text and no JSON."""
    file = tmp_path / "mine.yaml"
    file.write_text(f"{TWIN}serving: {{api_key_env: MY_KEY}}\n")
    code, _, err = call_verb("plan", str(file))
    assert (code, "MY_KEY" in err) == (2, True)
    cluster_scene.secrets = {"MY_KEY": Secret("k-123456")}
    for words in (("plan", str(file)), ("plan", str(file), "--json"), ("up", str(file), *FORCE), ("status", "--json")):
        assert "k-123456" not in "".join(map(str, call_verb(*words)))


def test_logs_are_lines_with_their_rank(cluster_scene: ClusterScene, call_verb: Call) -> None:
    """The lines are one object each as JSON."""
    call_verb("up", "twin", *FORCE)
    for number, node in enumerate(cluster_scene.nodes):
        node.on("tail -n", [f"line of {number}"])
    code, out, _ = call_verb("logs", "twin")
    assert (code, sorted(out.splitlines())) == (0, ["0| line of 0", "1| line of 1"])
    _, out, _ = call_verb("logs", "twin", "--rank", "1", "--json")
    row = json.loads(out)
    assert (row["rank"], row["node"], row["line"]) == (1, "spark-2", "line of 1")


def test_logs_show_no_control_characters_unless_asked_for(cluster_scene: ClusterScene, call_verb: Call) -> None:
    """Guards the terminal against what an engine, or a client by way of it, has logged."""
    call_verb("up", "twin", *FORCE)
    for node in cluster_scene.nodes:
        node.on("tail -n", ["a\x9b2J\u202eb"])
    assert call_verb("logs", "twin", "--rank", "0")[1] == "0| a 2J b\n"
    assert call_verb("logs", "twin", "--rank", "0", "--raw")[1] == "0| a\x9b2J\u202eb\n"


def test_a_node_that_refuses_to_start_is_1(cluster_scene: ClusterScene, call_verb: Call) -> None:
    """The message has the node's report and the remedy, and nothing is left."""
    cluster_scene.nodes[0].refuses = Completed(125, "", "no space left on device")
    code, _, err = call_verb("up", "twin", *FORCE)
    assert code == 1
    assert "no space left on device" in err
    assert cluster_scene.clean
