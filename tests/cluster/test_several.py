"""Two simulators over both nodes and llama.cpp's real server behind one gateway: switched under load, and on demand."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from cluster.drive import QUICK, CommandDriver, assert_clean
from cluster.engines_drive import GGUF
from cluster.stage_drive import VENV
from cluster.test_llama_cpp_up import SHIPPED
from drills.switches import CODER, TINY, SwitchOutcome, load
from functional.tiny_gguf import write_tiny_gguf
from patience import CALL, PATIENCE, wait_until
from testbed import ContainerNode

SWITCHES, CLIENTS = 2, 20
HALF = {"SPARKWRIGHT_SUPERVISOR_SCALE": "0.5"}
SLEEPY = {"on_demand": True, "idle_minutes": 0.1, "wait_seconds": PATIENCE}


@dataclass
class GatewaySite:
    drive: CommandDriver
    head: ContainerNode

    def recipe(self, name: str, **serving: object) -> str:
        """A recipe of the simulator, over both nodes, by a name of its own."""
        model = {"id": "sparkwright/twin-tiny", "served_name": CODER, "size": "2GiB", "simulated": True}
        made = self.drive.recipe("process", QUICK, name=name, model=model, serving={"expose": "all", **serving})
        return str(Path(made).replace(self.drive.folder / f"{name}.yaml"))

    def llama(self) -> str:
        tree: dict[str, Any] = yaml.safe_load(SHIPPED.read_text())
        tree["engine"]["venv"], tree["model"] = VENV, {"path": GGUF, "served_name": TINY}
        tree |= {"name": TINY, "serving": {**tree["serving"], "expose": "all", "coherence": False}}
        path = self.drive.folder / f"{TINY}.yaml"
        path.write_text(yaml.safe_dump(tree))
        self.head.put(GGUF, write_tiny_gguf(self.drive.folder / "tiny.gguf").read_bytes())
        return str(path)

    def client(self) -> httpx.Client:
        (key, *_) = (self.drive.folder / "home/.local/state/sparkwright/keys").rglob("*.key")
        headers = {"Authorization": f"Bearer {key.read_text().strip()}"}
        return httpx.Client(base_url=f"https://{self.head.mgmt}:8443", verify=False, headers=headers, timeout=CALL)

    def live(self, name: str) -> dict[str, Any]:
        text = self.head.sh(f"cat /home/spark/.local/state/sparkwright/supervision/{name}/live.json")
        found: dict[str, Any] = json.loads(text)
        return found


@pytest.fixture
def gateway_site(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> GatewaySite:
    driver.supervise, driver.env = True, dict(HALF)
    return GatewaySite(driver, testbed_nodes[0])


@pytest.mark.full
def test_switched_under_load_next_to_one_that_serves_on(
    gateway_site: GatewaySite, testbed_nodes: list[ContainerNode]
) -> None:
    """Guards each request of five clients: tokens, or a 503 with its reason; none for the third model."""
    found, names = SwitchOutcome(), ("alpha", "gamma")
    gateway_site.drive.good("up", gateway_site.recipe("alpha"))
    gateway_site.drive.good("up", gateway_site.llama())
    with load(gateway_site, found, 0.1):
        for number in range(SWITCHES):
            now, then = names[number % 2], names[1 - number % 2]
            gateway_site.drive.good("switch", now, gateway_site.recipe(then))
    assert not found.wrong, found.wrong[:5]
    assert all(kinds["tokens"] > 20 for kinds in found.got.values()), found.got
    for name in (names[SWITCHES % 2], TINY):
        gateway_site.drive.good("down", name)
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_twenty_clients_that_wait_start_it_once(gateway_site: GatewaySite, testbed_nodes: list[ContainerNode]) -> None:
    """Guards a start by the supervisor on the head, over both nodes, next to a model that serves all the time."""
    gateway_site.drive.good("up", gateway_site.llama())
    gateway_site.drive.good("up", gateway_site.recipe("nap", **SLEEPY))
    wait_until(
        lambda: gateway_site.live("nap")["phase"] == "on_demand", lambda: gateway_site.drive.run("status").out, poll=0.5
    )
    body = {"model": CODER, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}
    with gateway_site.client() as client, ThreadPoolExecutor(CLIENTS) as pool:
        got = list(pool.map(lambda _: client.post("/v1/chat/completions", json=body), range(CLIENTS)))
        assert [one.status_code for one in got] == [200] * CLIENTS, [one.text[:300] for one in got]
        assert all(one.json()["usage"]["completion_tokens"] for one in got)
    assert {name: gateway_site.live(name)["relaunches"] for name in ("nap", TINY)} == {"nap": 1, TINY: 0}
    for name in ("nap", TINY):
        gateway_site.drive.good("down", name)
    assert_clean(testbed_nodes)
