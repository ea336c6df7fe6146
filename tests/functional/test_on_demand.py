"""Models on demand: started by their first request, stopped when nobody asks, next to one that serves all the time."""

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import openai
import pytest

from drills.switches import CODER, TINY, SwitchSite, drill_switches
from functional.command import UserShell
from functional.gateway.gateways import has_caddy
from functional.test_install_supervisor import user_shell as user_shell
from functional.test_several import FORCE, Served
from functional.test_several import served as served
from patience import wait_until

pytestmark = pytest.mark.full

ON_DEMAND = "  on_demand: true\n  idle_minutes: 0.4\n  wait_seconds: 60\n"  # a tenth of it in these tests
CHAT = {"model": "alpha", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}


def on_demand(served: Served, name: str, **env: str) -> str:
    path = served.recipe(name, **env)
    text = (served.shell.folder / path).read_text()
    (served.shell.folder / path).write_text(text.replace("serving:\n", f"serving:\n{ON_DEMAND}"))
    return path


def read_live(served: Served, name: str) -> dict[str, Any]:
    path = served.shell.folder / f"a/state/supervision/{name}/live.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def is_asleep(served: Served, name: str) -> None:
    wait_until(lambda: read_live(served, name)["phase"] == "on_demand", f"{name} to be stopped")


def test_twenty_clients_start_it_and_it_ends_without_them(served: Served) -> None:
    """Guards the whole way: stopped when idle, one start for all who wait, no start for what names no model of it."""
    served.good("up", served.recipe("beta"), *FORCE)
    served.good("up", on_demand(served, "alpha"), *FORCE)
    is_asleep(served, "alpha")
    _, text, _ = served.shell.run("status", "alpha")
    assert "alpha: on demand, stopped for" in text and "the next request starts it; a start usually takes" in text, text
    with served.client as client:

        def states() -> dict[str, str]:
            return {row["id"]: row["state"] for row in client.get("/v1/models").json()["data"]}

        # A busy machine makes beta degraded for a while: a probe is late.
        wait_until(lambda: states() == {"alpha": "on_demand", "beta": "ready"}, lambda: str(states()))
        assert client.post("/v1/completions", json={"model": "x", "prompt": "y"}).status_code == 404
        assert client.post("/v1/completions", json={"prompt": "y"}).status_code == 400
        assert client.get("/v1/responses/r1?model=alpha").status_code == 503, "a GET starts nothing"
        assert read_live(served, "alpha")["phase"] == "on_demand"
        key = client.headers["Authorization"].removeprefix("Bearer ")
        root = str(client.base_url).rstrip("/")
        sdk = openai.OpenAI(base_url=f"{root}/v1", http_client=client, max_retries=0, api_key=key)

        def ask(number: int) -> str:
            if number % 4 == 0:
                try:
                    leaves = httpx.Timeout(60, read=0.2)  # only once it is connected: the gateway must see it
                    return str(client.post("/v1/chat/completions", json=CHAT, timeout=leaves).status_code)
                except httpx.ReadTimeout:
                    return "left"
            if number % 2:
                answer = sdk.chat.completions.create(**CHAT)  # type: ignore[call-overload]
                return "whole" if answer.usage.completion_tokens else ""
            parts = sdk.chat.completions.create(**CHAT, stream=True)  # type: ignore[call-overload]
            return "stream" if "".join(one.choices[0].delta.content or "" for one in parts if one.choices) else ""

        with ThreadPoolExecutor(20) as pool:
            leavers_first = sorted(range(20), key=lambda number: number % 4)  # once alpha serves, it would answer them
            got = sorted(pool.map(ask, leavers_first))
        assert got == ["left"] * 5 + ["stream"] * 5 + ["whole"] * 10
        assert read_live(served, "alpha")["relaunches"] == 1 and read_live(served, "beta")["relaunches"] == 0
        is_asleep(served, "alpha")
        assert read_live(served, "alpha")["incidents"] == 0


@pytest.mark.full
def test_a_start_that_the_plan_refuses_is_answered_with_its_reason(served: Served) -> None:
    """Guards what serves next to it: 503 with the finding and Retry-After, nothing stopped, and a later try."""
    served.good("up", on_demand(served, "alpha"), *FORCE)
    is_asleep(served, "alpha")  # its supervisor holds the lease while it stops the ranks
    served.good("up", served.recipe("beta"), *FORCE)
    with served.client as client, socket.create_server(("127.0.0.1", served.port)):
        answer = client.post("/v1/chat/completions", json=CHAT)
        assert answer.status_code == 503 and 20 <= int(answer.headers["Retry-After"]) <= 30
        said = answer.json()["error"]
        assert said["code"] == "deployment_on_demand" and "PORT001" in said["message"]
        next_try = read_live(served, "alpha")["back_at"]
        assert client.post("/v1/chat/completions", json=CHAT).json()["error"]["code"] == "deployment_on_demand"
        assert read_live(served, "alpha")["back_at"] == next_try, "refused again without another try"
        body = {**CHAT, "model": "beta"}
        assert client.post("/v1/chat/completions", json=body).status_code == 200
    assert read_live(served, "alpha")["incidents"] == 0 and read_live(served, "beta")["relaunches"] == 0


@pytest.mark.full
def test_it_is_never_stopped_while_a_request_runs(served: Served) -> None:
    """Guards a stream that lasts longer than the idle time, at the gateway's count of what is under way."""
    served.good("up", on_demand(served, "alpha", SPARKWRIGHT_SIMULATOR_TOKEN_SCALE="1"), *FORCE)
    with served.client as client:
        body = {**CHAT, "max_tokens": 1000, "ignore_eos": True, "stream": True}
        with client.stream("POST", "/v1/chat/completions", json=body) as stream:
            parts = stream.iter_text()
            first, began = next(parts), time.monotonic()
            # On a busy machine it may have been stopped before the request, which then has started it
            before = read_live(served, "alpha")["relaunches"]
            text = first + "".join(parts)
        assert time.monotonic() - began > 3 and text.rstrip().endswith("data: [DONE]")
        assert read_live(served, "alpha")["relaunches"] == before


@pytest.mark.full
def test_a_restart_waits_for_a_stream_as_long_as_asked(served: Served) -> None:
    """Guards `--drain SECONDS`: without it this stream is cut after 3 s, a tenth of the default in these tests."""
    served.good("up", served.recipe("alpha", SPARKWRIGHT_SIMULATOR_TOKEN_SCALE="1"), *FORCE)
    with served.client as client, ThreadPoolExecutor(1) as pool:
        body = {**CHAT, "max_tokens": 1000, "ignore_eos": True, "stream": True}
        with client.stream("POST", "/v1/chat/completions", json=body) as stream:
            lines = stream.iter_lines()
            next(lines)
            began, restarted = time.monotonic(), pool.submit(served.good, "restart", "alpha", "--drain", "600")
            text = "\n".join(lines)
        assert text.rstrip().endswith("data: [DONE]") and time.monotonic() - began > 4
        restarted.result()
        assert client.post("/v1/chat/completions", json=CHAT).status_code == 200


@pytest.mark.full
def test_switches_under_load_leave_no_request_without_tokens_or_a_reason(user_shell: UserShell) -> None:
    """Guards the drill of 200 switches in its short form: two simulators in turns, next to llama.cpp's real server."""
    if not has_caddy():
        pytest.skip("caddy is not installed")
    pytest.importorskip("xllamacpp", reason="the wheel that holds llama.cpp's server is not installed")
    found = drill_switches(SwitchSite(user_shell), 2)
    assert not found.wrong, found.wrong[:3]
    assert found.got[CODER]["tokens"] > 5 and sum(found.got[CODER].values()) > found.got[CODER]["tokens"]
    assert set(found.got[TINY]) == {"tokens"}
