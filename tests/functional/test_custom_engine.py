"""`engine: custom`: a server that sparkwright does not know, from the recipe to the end of its deployment."""

import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fakes import odd_server
from fakes.ports import free_port
from functional.command import UserShell
from functional.test_install_supervisor import user_shell as user_shell
from patience import wait_until

FORCE = ("--force", "no GPU here", "--json")
ENGINE = """name: odd
title: A server that nobody knows
model: {{path: {model}, served_name: odd}}
engine:
  name: {name}
  runtime: process
{more}
nodes: {nodes}
parallelism: {{tp: {nodes}}}
serving: {{port: {port}, master_port: {master}}}
"""
COMMAND = '["{python}", "{script}", --host, "{{host}}", --port, "{{port}}", --rank, "{{rank}}", --fault, "{fault}"]'


class OddDeployment:
    def __init__(self, shell: UserShell) -> None:
        self.shell, self.port = shell, free_port()
        (shell.folder / "odd.bin").write_bytes(b"weights")
        self.words = {"python": sys.executable, "script": odd_server.__file__}

    def recipe(self, fault: str = "", nodes: int = 1, extra: str = "") -> str:
        more = "  command: " + COMMAND.format(fault=fault, **self.words) + f"\n{extra}"
        return self.written(name="custom", more=more, nodes=nodes)

    def written(self, name: str, more: str, nodes: int = 1) -> str:
        model, master = self.shell.folder / "odd.bin", free_port()
        text = ENGINE.format(model=model, name=name, more=more, nodes=nodes, port=self.port, master=master)
        (self.shell.folder / "odd.yaml").write_text(text)
        return "./odd.yaml"

    def good(self, *words: str) -> Any:
        code, out, err = self.shell.run(*words, "--json")
        assert code == 0, err + out[-2000:]
        return json.loads(out)


@pytest.fixture
def odd_deployment(user_shell: UserShell) -> Iterator[OddDeployment]:
    yield OddDeployment(user_shell)
    user_shell.run("down", "odd")


def test_a_custom_engine_serves_from_up_to_down(odd_deployment: OddDeployment) -> None:
    """Guards the whole way of an engine of which only the command is known: an answer, supervision, bench, an end."""
    _, out, _ = odd_deployment.shell.run("plan", odd_deployment.recipe(), "--json")
    (memory,) = json.loads(out)["memory"]
    unknown = {line["name"] for line in memory["lines"] if not line["known"]}
    assert memory["verdict"] == "not known" and unknown == {"engine overhead", "KV pool"}
    done = odd_deployment.good("up", odd_deployment.recipe(), "--force", "no GPU here")
    assert done["answer"]["text"] == "odd four" and not done["answer"]["simulated"]
    wait_until(lambda: deployment_state(odd_deployment) == "ready", "the supervisor's first answers")
    assert shown_deployment(odd_deployment)["ranks"][0]["engine"] == "custom"
    code, out, _ = odd_deployment.shell.run("logs", "odd")
    assert code == 0 and "odd: listening on port" in out
    os.kill(odd_pid(odd_deployment), 9)
    wait_until(
        lambda: deployment_state(odd_deployment) == "ready" and relaunched(odd_deployment),
        "the supervisor to start it again",
    )
    odd_deployment.good("down", "odd")
    assert odd_deployment.good("status")["deployments"] == []


def shown_deployment(odd: OddDeployment) -> Any:
    _, out, _ = odd.shell.run("status", "--json")  # exits 1 while it is not ready
    (shown,) = json.loads(out)["deployments"]
    return shown


def odd_pid(odd: OddDeployment) -> int:
    rank = shown_deployment(odd)["ranks"][0]
    return int((Path(rank["handle"]) / "pid").read_text().split()[0])


def deployment_state(odd: OddDeployment) -> str:
    return str(shown_deployment(odd)["state"])


def relaunched(odd: OddDeployment) -> bool:
    live = json.loads((odd.shell.folder / "a/state/supervision/odd/live.json").read_text())
    return bool(live["relaunches"])


@pytest.mark.full
@pytest.mark.each_row
@pytest.mark.parametrize(
    ("fault", "extra", "said"),
    [
        ("silent", "", ""),
        ("html", "  definition: {health: /health}\n", "answers with a web page"),
    ],
)
def test_an_odd_server_is_ready_by_its_answer(odd_deployment: OddDeployment, fault: str, extra: str, said: str) -> None:
    """Guards readiness: neither a silent log nor a page for people hides or proves that it serves."""
    code, out, err = odd_deployment.shell.run("up", odd_deployment.recipe(fault, extra=extra), "--no-supervise", *FORCE)
    assert code == 0 and said in err and json.loads(out)["answer"]["text"] == "odd four", err


@pytest.mark.parametrize(
    ("fault", "said"),
    [("background", "gone into the background"), ("broken", "the odd model file is corrupt")],
)
def test_an_odd_server_that_ends_says_why(odd_deployment: OddDeployment, fault: str, said: str) -> None:
    """Guards failures: a fork into the background and an early end each name their cause."""
    code, out, err = odd_deployment.shell.run("up", odd_deployment.recipe(fault), "--no-supervise", *FORCE)
    assert code == 5 and said in err + out, err + out
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", odd_deployment.port), 5):
        pass


@pytest.mark.full
def test_a_server_that_listens_everywhere_is_found_by_check(odd_deployment: OddDeployment) -> None:
    """Guards the gateway and its keys: a server that ignores the address it was given serves whoever reaches it."""
    odd_deployment.good("up", odd_deployment.recipe("open"), "--no-supervise", "--force", "no GPU here")
    _, out, _ = odd_deployment.shell.run("check", "--json")
    (found,) = (one for one in json.loads(out)["findings"] if one["code"] == "SEC011" and one["subject"] == "a")
    assert str(odd_deployment.port) in found["evidence"], found
    odd_deployment.good("down", "odd")
    odd_deployment.good("up", odd_deployment.recipe(), "--no-supervise", "--force", "no GPU here")
    _, out, _ = odd_deployment.shell.run("check", "--json")
    assert "SEC011" not in {one["code"] for one in json.loads(out)["findings"]}


@pytest.mark.full
def test_two_ranks_of_a_custom_engine_start_and_end(odd_deployment: OddDeployment) -> None:
    """Guards more than one rank: each gets its number, and `down` ends both."""
    odd_deployment.good("up", odd_deployment.recipe(nodes=2), "--no-supervise", "--force", "no GPU here")
    ranks = odd_deployment.good("status")["deployments"][0]["ranks"]
    assert [(one["rank"], one["state"]) for one in ranks] == [(0, "running"), (1, "running")]
    odd_deployment.good("down", "odd")
    assert odd_deployment.good("status")["deployments"] == []


def test_an_engine_file_of_the_user_s_is_found_and_read(odd_deployment: OddDeployment) -> None:
    """Guards ~/.config/sparkwright/engines: the recipe names the engine, its log is read by the file's rules."""
    folder = odd_deployment.shell.folder / ".config/sparkwright/engines"
    folder.mkdir(parents=True)
    command = [odd_deployment.words["python"], odd_deployment.words["script"], "--host", "{host}", "--port", "{port}"]
    rule = "[[log.rule]]\nphase = \"server\"\npattern = 'odd: listening on port (?P<p>\\d+)'\nready = true\n"
    (folder / "odd.toml").write_text(f'name = "odd"\ncommand = {json.dumps(command)}\nhealth = "/health"\n{rule}')
    listed = odd_deployment.good("engines", "list")
    assert [one["from"] for one in listed["described"] if one["engine"] == "odd"], listed
    done = odd_deployment.good("up", odd_deployment.written("odd", ""), "--no-supervise", "--force", "no GPU here")
    assert done["answer"]["text"] == "odd four"
    (folder / "odd.toml").write_text('name = "odd"\ncommand = ["x"]\n')
    code, _, err = odd_deployment.shell.run("plan", odd_deployment.written("odd", ""))
    assert code == 2 and "odd.toml:2: `command` has no {port}" in err
