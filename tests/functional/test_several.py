"""Several deployments on one head: planned next to each other, one address, one replaced while the other serves."""

import json
import os
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from fakes.ports import free_port
from functional.command import UserShell
from functional.gateway.gateways import has_caddy
from functional.gateway.head import free_pair
from functional.test_diagnose_deployment import RECIPE
from functional.test_install_supervisor import SCALED, wait_until_ended
from functional.test_install_supervisor import user_shell as user_shell
from patience import wait_until

FORCE = ("--force", "no GPU here")


class Served:
    """Deployments of the simulator that all ask for the same ports."""

    def __init__(self, shell: UserShell) -> None:
        self.shell, self.door, self.port, self.master = shell, free_pair(), free_port(), free_port()

    def recipe(self, name: str, model: str = "", **env: str) -> str:
        env = {"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0.01", **env}
        text = RECIPE.replace("name: twin\ntitle", f"name: {name}\ntitle")
        text = text.replace("served_name: twin-tiny", f"served_name: {model or name}")
        ports = f"  port: {self.port}\n  master_port: {self.master}\n  gateway: {{port: {self.door}}}\n"
        text = text.replace("serving:\n", f"serving:\n{ports}")
        text += "\nenv:\n" + "".join(f"  {key}: '{value}'\n" for key, value in env.items())
        (self.shell.folder / f"{name}.yaml").write_text(text)
        return f"./{name}.yaml"

    def good(self, *words: str) -> Any:
        code, out, err = self.shell.run(*words, "--json", **SCALED)
        assert code == 0, err + out[-2000:]
        return json.loads(out)

    @property
    def client(self) -> httpx.Client:
        keys = self.shell.folder / ".local/state/sparkwright/keys"
        (ca,), (key, *_) = list(keys.rglob("ca.crt")), list(keys.rglob("*.key"))
        headers = {"Authorization": f"Bearer {key.read_text().strip()}"}
        trusted = ssl.create_default_context(cafile=str(ca))
        return httpx.Client(base_url=f"https://127.0.0.1:{self.door}", verify=trusted, headers=headers, timeout=60)


@pytest.fixture
def served(user_shell: UserShell) -> Iterator[Served]:
    if not has_caddy():
        pytest.skip("caddy is not installed")
    yield Served(user_shell)
    for name in ("alpha", "beta", "gamma"):
        user_shell.run("down", name)


class RepeatingClient:
    """A client that asks again and again for one model; what it got."""

    def __init__(self, client: httpx.Client, model: str) -> None:
        self.client, self.model, self.over = client, model, threading.Event()
        self.got: list[tuple[int, str, str]] = []
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        body = {"model": self.model, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}
        while not self.over.is_set():
            answer = self.client.post("/v1/chat/completions", json=body)
            self.got.append((answer.status_code, answer.headers.get("Retry-After", ""), answer.text))
            time.sleep(0.1)

    def end(self) -> set[int]:
        self.over.set()
        self.thread.join(60)
        refused = [one for one in self.got if one[0] == 503]
        assert all(after and json.loads(text)["error"]["message"] for _, after, text in refused), refused[:3]
        return {status for status, _, _ in self.got}


def names_in(folder: Path) -> list[str]:
    """Nothing once the folder is gone, also when it goes just now."""
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


@pytest.mark.full
def test_two_share_one_address_and_one_is_replaced_next_to_the_other(served: Served) -> None:
    """Guards the whole way: ports that move, one list of models, a switch under load, and an end without remains."""
    served.good("up", served.recipe("alpha", "coder"), *FORCE)
    plan = served.good("up", served.recipe("beta"), *FORCE)["plan"]
    codes = {finding["code"] for finding in plan["findings"]}
    assert "RANK002" in codes and not codes & {"RANK001", "PORT001"}, codes
    assert served.good("up", served.recipe("beta"), *FORCE)["done"] == "already serving"
    with served.client as client:
        rows = client.get("/v1/models").json()["data"]
        assert [(row["id"], row["deployment"]) for row in rows] == [("coder", "alpha"), ("beta", "beta")]
        unknown = client.post("/v1/completions", json={"model": "x", "prompt": "y"})
        assert unknown.status_code == 404 and "coder, beta" in unknown.json()["error"]["message"]
        asking = [RepeatingClient(client, "coder"), RepeatingClient(client, "beta")]
        served.good("switch", "alpha", served.recipe("gamma", "coder"), *FORCE)
        asked = len(asking[0].got)
        wait_until(lambda: len(asking[0].got) > asked + 3, "answers after the switch")
        assert [one.end() for one in asking] == [{200, 503}, {200}]
        rows = client.get("/v1/models").json()["data"]
        assert {row["deployment"] for row in rows} == {"beta", "gamma"}
        failing = served.recipe("alpha", "coder", SPARKWRIGHT_SIMULATOR_FAULT="oom@load")
        asking = [RepeatingClient(client, "coder"), RepeatingClient(client, "beta")]
        code, _, err = served.shell.run("switch", "gamma", failing, *FORCE, **SCALED)
        assert code == 5 and "rolled back: gamma serves again" in err, err
        assert [one.end() for one in asking] == [{200, 503}, {200}]
        served.good("down", "gamma")
        assert client.post("/v1/completions", json={"prompt": "y"}).status_code == 200, "one alone needs no name"
    served.good("down", "beta")
    supervision = served.shell.folder / "a/state/supervision"
    wait_until(lambda: not names_in(supervision), "the gateway to go with the last of them")
    wait_until_ended(served.shell)


def test_next_to_one_that_nobody_watches_nothing_is_started(served: Served) -> None:
    """Guards what runs: what it will take is not known, so the plan is refused with the way out, and it stays."""
    served.good("up", served.recipe("alpha"), "--no-supervise", *FORCE)
    code, _, err = served.shell.run("up", served.recipe("beta"), **SCALED)
    assert code == 1 and "deployment alpha runs on this node" in err and "sparkwright down alpha" in err, err
    (left,) = served.good("status")["deployments"]
    assert (left["name"], left["state"]) == ("alpha", "ready")
