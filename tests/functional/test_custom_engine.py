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
from functional.command import Shell
from functional.test_install_supervisor import shell as shell
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


class Odd:
    def __init__(self, shell: Shell) -> None:
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
def odd(shell: Shell) -> Iterator[Odd]:
    yield Odd(shell)
    shell.run("down", "odd")


def test_a_custom_engine_serves_from_up_to_down(odd: Odd) -> None:
    """Guards the whole way of an engine of which only the command is known: an answer, supervision, bench, an end."""
    _, out, _ = odd.shell.run("plan", odd.recipe(), "--json")
    (memory,) = json.loads(out)["memory"]
    unknown = {line["name"] for line in memory["lines"] if not line["known"]}
    assert memory["verdict"] == "not known" and unknown == {"engine overhead", "KV pool"}
    done = odd.good("up", odd.recipe(), "--force", "no GPU here")
    assert done["answer"]["text"] == "odd four" and not done["answer"]["simulated"]
    (seen,) = odd.good("status")["deployments"]
    assert (seen["state"], seen["ranks"][0]["engine"]) == ("ready", "custom")
    code, out, _ = odd.shell.run("logs", "odd")
    assert code == 0 and "odd: listening on port" in out
    os.kill(odd_pid(odd), 9)
    wait_until(lambda: state(odd) == "ready" and relaunched(odd), "the supervisor to start it again")
    odd.good("down", "odd")
    assert odd.good("status")["deployments"] == []


def odd_pid(odd: Odd) -> int:
    rank = odd.good("status")["deployments"][0]["ranks"][0]
    return int((Path(rank["handle"]) / "pid").read_text().split()[0])


def state(odd: Odd) -> str:
    _, out, _ = odd.shell.run("status", "--json")  # exits 1 while it is not ready
    return str(json.loads(out)["deployments"][0]["state"])


def relaunched(odd: Odd) -> bool:
    live = json.loads((odd.shell.folder / "a/state/supervision/odd/live.json").read_text())
    return bool(live["relaunches"])


@pytest.mark.each_row
@pytest.mark.parametrize(
    ("fault", "extra", "said"),
    [
        ("silent", "", ""),
        ("html", "  definition: {health: /health}\n", "answers with a web page"),
    ],
)
def test_an_odd_server_is_ready_by_its_answer(odd: Odd, fault: str, extra: str, said: str) -> None:
    """Guards readiness: neither a silent log nor a page for people hides or proves that it serves."""
    code, out, err = odd.shell.run("up", odd.recipe(fault, extra=extra), "--no-supervise", *FORCE)
    assert code == 0 and said in err and json.loads(out)["answer"]["text"] == "odd four", err


@pytest.mark.each_row
@pytest.mark.parametrize(
    ("fault", "said"),
    [("background", "gone into the background"), ("broken", "the odd model file is corrupt")],
)
def test_an_odd_server_that_ends_says_why(odd: Odd, fault: str, said: str) -> None:
    """Guards failures: a fork into the background and an early end each name their cause."""
    code, out, err = odd.shell.run("up", odd.recipe(fault), "--no-supervise", *FORCE)
    assert code == 5 and said in err + out, err + out
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", odd.port), 5):
        pass


def test_a_server_that_listens_everywhere_is_found_by_check(odd: Odd) -> None:
    """Guards the gateway and its keys: a server that ignores the address it was given serves whoever reaches it."""
    odd.good("up", odd.recipe("open"), "--no-supervise", "--force", "no GPU here")
    _, out, _ = odd.shell.run("check", "--json")
    (found,) = (one for one in json.loads(out)["findings"] if one["code"] == "SEC011" and one["subject"] == "a")
    assert str(odd.port) in found["evidence"], found
    odd.good("down", "odd")
    odd.good("up", odd.recipe(), "--no-supervise", "--force", "no GPU here")
    _, out, _ = odd.shell.run("check", "--json")
    assert "SEC011" not in {one["code"] for one in json.loads(out)["findings"]}


def test_two_ranks_of_a_custom_engine_start_and_end(odd: Odd) -> None:
    """Guards more than one rank: each gets its number, and `down` ends both."""
    odd.good("up", odd.recipe(nodes=2), "--no-supervise", "--force", "no GPU here")
    ranks = odd.good("status")["deployments"][0]["ranks"]
    assert [(one["rank"], one["state"]) for one in ranks] == [(0, "running"), (1, "running")]
    odd.good("down", "odd")
    assert odd.good("status")["deployments"] == []


def test_an_engine_file_of_the_user_s_is_found_and_read(odd: Odd) -> None:
    """Guards ~/.config/sparkwright/engines: the recipe names the engine, its log is read by the file's rules."""
    folder = odd.shell.folder / ".config/sparkwright/engines"
    folder.mkdir(parents=True)
    command = [odd.words["python"], odd.words["script"], "--host", "{host}", "--port", "{port}"]
    rule = "[[log.rule]]\nphase = \"server\"\npattern = 'odd: listening on port (?P<p>\\d+)'\nready = true\n"
    (folder / "odd.toml").write_text(f'name = "odd"\ncommand = {json.dumps(command)}\nhealth = "/health"\n{rule}')
    listed = odd.good("engines", "list")
    assert [one["from"] for one in listed["described"] if one["engine"] == "odd"], listed
    done = odd.good("up", odd.written("odd", ""), "--no-supervise", "--force", "no GPU here")
    assert done["answer"]["text"] == "odd four"
    (folder / "odd.toml").write_text('name = "odd"\ncommand = ["x"]\n')
    code, _, err = odd.shell.run("plan", odd.written("odd", ""))
    assert code == 2 and "odd.toml:2: `command` has no {port}" in err
