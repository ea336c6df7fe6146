"""Two replicas on two nodes behind one gateway: simulators, and llama.cpp's real server."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from cluster.clients import asking
from cluster.drive import NAME, QUICK, CommandDriver, assert_clean, running
from cluster.test_several import GatewaySite
from functional.tiny_gguf import write_tiny_gguf
from patience import wait_until
from testbed import ContainerNode
from testbed.harm import cut_ssh, restore_ssh

ONE = {"nodes": 1, "parallelism": {"tp": 1}}
TWO = [f"{NAME}-r1", f"{NAME}-r2"]
TINY_REPLICAS = ["tiny-r1", "tiny-r2"]


@pytest.fixture
def both_nodes(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> GatewaySite:
    driver.supervise, driver.env = True, {"SPARKWRIGHT_SUPERVISOR_SCALE": "0.5"}
    return GatewaySite(driver, testbed_nodes[0])


def ask_chat(client: httpx.Client, model: str, text: str, tokens: int = 4) -> httpx.Response:
    body = {"model": model, "messages": [{"role": "user", "content": text}], "max_tokens": tokens}
    return client.post("/v1/chat/completions", json=body)


def models(drive: CommandDriver) -> list[dict[str, Any]]:
    done = drive.run("status", "--json")
    assert done.code in (0, 1), str(done)
    found: list[dict[str, Any]] = done.json["models"]
    return found


def until_all_serve(drive: CommandDriver) -> None:
    wait_until(lambda: [one["serving"] for one in models(drive)] == [2], lambda: drive.run("status").out, poll=1)


def finished(both_nodes: GatewaySite) -> list[float]:
    wait_until(lambda: all(both_nodes.live(name)["engine"] for name in TWO), "both engines' figures to be read")
    return [both_nodes.live(name)["engine"]["finished"] for name in TWO]


@pytest.mark.full
def test_two_replicas_serve_one_model(both_nodes: GatewaySite, testbed_nodes: list[ContainerNode]) -> None:
    """The life of a model on both nodes, in one deployment: spread, killed, restarted in turn, scaled, taken away."""
    drive, (head, worker) = both_nodes.drive, testbed_nodes
    recipe = drive.recipe("process", serving={"expose": "all"}, **ONE)
    said = drive.good("up", recipe, "--replicas", "2", "--json").json
    assert [one["plan"]["deployment"] for one in said["replicas"]] == TWO
    until_all_serve(drive)  # a supervisor reports `loading` until its own first look
    (model,) = models(drive)
    assert (model["name"], model["serving"], model["replicas"]) == (NAME, 2, TWO)
    assert [len(found) for found in running(testbed_nodes).values()] == [1, 1]
    refuses_without_its_key(both_nodes)
    spreads(both_nodes)
    survives_a_killed_replica(drive, head, worker)
    restarts_in_turn(drive, testbed_nodes)
    assert f"against {NAME} (gateway https://" in drive.run("bench", NAME, "--workload", "prove").out
    with asking(head, drive.folder / "home") as client:
        gone = drive.good("up", recipe, "--replicas", "1", "--json").json["removed"]
    assert gone == [TWO[1]] and client.statuses() == {200}, client.around({200})
    assert running(testbed_nodes)[worker.name] == []
    assert "1 rank(s) removed" in drive.good("down", NAME).out
    assert_clean(testbed_nodes)


def refuses_without_its_key(both_nodes: GatewaySite) -> None:
    """The engine on the other node listens in the network of the two, for the gateway alone."""
    route = both_nodes.head.sh(f"cat /home/spark/.local/state/sparkwright/supervision/{TWO[1]}/door/door.json")
    engine, home = json.loads(route)["engine"], "/home/spark/.local/state/sparkwright/supervision"
    assert not engine.startswith("127."), engine
    assert json.loads(route)["replica_of"] == NAME
    status = both_nodes.head.sh(f"curl -s -o /dev/null -w '%{{http_code}}' http://{engine}/v1/models")
    assert status == "401", "anybody in that network could use it"
    assert both_nodes.head.sh(f"stat -c %a {home}/{TWO[1]}/secrets.json") == "600"


def spreads(both_nodes: GatewaySite) -> None:
    """Both engines answer when several clients ask for different things at the same time."""
    before = finished(both_nodes)
    with both_nodes.client() as client, ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda n: ask_chat(client, "twin-tiny", f"question {n} " * 40), range(64)))
    assert {one.status_code for one in got} == {200}

    def fewest() -> float:
        return min(now - was for now, was in zip(finished(both_nodes), before, strict=True))

    wait_until(lambda: fewest() >= 10, lambda: f"{before}, {finished(both_nodes)}", poll=1)


def survives_a_killed_replica(drive: CommandDriver, head: ContainerNode, worker: ContainerNode) -> None:
    """Requests get answers from the other one, and the supervisor starts it again."""
    with asking(head, drive.folder / "home") as client:
        worker.sh("pkill -KILL -f '[s]parkwright.simulator serve'")
        at = time.monotonic()
        state = "cat /home/spark/.local/state/sparkwright/supervision/drill-r2/live.json"
        wait_until(lambda: json.loads(head.sh(state, user="spark"))["relaunches"] > 0, "the relaunch")
        until_all_serve(drive)
    wrong = [one for one in client.answers if one[1] not in (200, 503) or (one[1] == 503 and not one[3])]
    assert not wrong, wrong
    late = [one for one in client.answers if one[1] != 200 and one[0] > at + 2]
    assert not late, late


def restarts_in_turn(drive: CommandDriver, nodes: list[ContainerNode]) -> None:
    before = running(nodes)
    with asking(nodes[0], drive.folder / "home") as client:
        took = drive.good("restart", NAME, "--rolling", "--json").json["replicas"]
    assert list(took) == TWO and client.statuses() == {200}, client.around({200})
    assert all(set(before[name]).isdisjoint(found) and found for name, found in running(nodes).items())


@pytest.mark.full
def test_llama_cpp_on_both_nodes(both_nodes: GatewaySite, testbed_nodes: list[ContainerNode]) -> None:
    """Real tokens from both; the two nodes share this machine's cores, so no speed is claimed of it."""
    path = Path(both_nodes.llama())
    for node in testbed_nodes[1:]:
        node.put("/home/spark/models/tiny.gguf", write_tiny_gguf(both_nodes.drive.folder / "tiny.gguf").read_bytes())
    rates = {}
    for count in (1, 2):
        said = both_nodes.drive.good("up", str(path), "--replicas", str(count), "--json").json
        assert all(one["done"] == "ready" for one in said.get("replicas", [said])), said
        with both_nodes.client() as client:
            rates[count] = tokens_a_second(client)
    print(f"tokens a second: {rates}")
    done = both_nodes.drive.good("restart", "tiny", "--rolling", "--json").json
    assert list(done["replicas"]) == TINY_REPLICAS
    both_nodes.drive.good("down", "tiny")
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_replicas_of_fixed_speed_on_both_nodes(both_nodes: GatewaySite, testbed_nodes: list[ContainerNode]) -> None:
    """Simulated engines that sleep between tokens, started by `up`: the figures of the whole path are printed."""
    drive = both_nodes.drive
    env = {**QUICK, "SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "1", "SPARKWRIGHT_SIMULATOR_STEP_MS": "50"}
    recipe = drive.recipe("process", env=env, serving={"expose": "all"}, **ONE)
    rates = {}
    for count in (1, 2):
        drive.good("up", recipe, "--replicas", str(count))
        with both_nodes.client() as client:
            rates[count] = tokens_a_second(client, model="twin-tiny", clients=24)
    print(f"tokens a second: {rates}, {rates[2] / rates[1]:.2f} times")
    drive.good("down", NAME)
    assert_clean(testbed_nodes)


def tokens_a_second(client: httpx.Client, seconds: float = 8.0, model: str = "tiny", clients: int = 8) -> float:
    """Tokens of so many clients at once, by the engine's own count."""
    began = time.monotonic()

    def ask(number: int) -> int:
        tokens = 0
        while time.monotonic() < began + seconds:
            answer = ask_chat(client, model, f"{number} {tokens} tell me", 64)
            assert answer.status_code == 200, answer.text
            tokens += answer.json()["usage"]["completion_tokens"]
        return tokens

    with ThreadPoolExecutor(clients) as pool:
        return sum(pool.map(ask, range(clients))) / (time.monotonic() - began)


@pytest.mark.full
def test_a_replica_that_the_head_cannot_reach_is_taken_away_again(
    both_nodes: GatewaySite, testbed_nodes: list[ContainerNode]
) -> None:
    """The network is split: this machine reaches both nodes, and the head does not reach the second one."""
    drive = both_nodes.drive
    recipe = drive.recipe("process", serving={"expose": "all"}, **ONE)
    done = drive.run("up", recipe, "--replicas", "3")
    assert done.code == 1 and "3 replicas of 1 node(s) need 3 nodes, and 2 can be used" in done.err, str(done)
    cut_ssh(testbed_nodes[1], testbed_nodes[0])
    done = drive.run("up", recipe, "--replicas", "2")
    assert done.code == 5 and f"would not reach {testbed_nodes[1].name}" in done.err, str(done)
    assert f"{TWO[1]}: taken away again" in done.err and f"ready before it: {TWO[0]}" in done.err, str(done)
    assert [one["replicas"] for one in models(drive)] == [[TWO[0]]]
    assert running(testbed_nodes)[testbed_nodes[1].name] == []
    restore_ssh(testbed_nodes[1])
    drive.good("down", NAME)
    assert_clean(testbed_nodes)
