"""Two deployments behind one gateway: the body's model decides, whatever the body looks like."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator

import pytest

from functional.gateway.conftest import Opened
from functional.gateway.gateways import LocalGateway
from functional.gateway.test_gateway import openai_error
from functional.gateway.test_streams import HEAD, PART, engine_that
from functional.simulator.process import wait_until

NAMES = "alpha, tiny"


@pytest.fixture
def shared_gateway(opened: Opened) -> Iterator[LocalGateway]:
    """`tiny` and, next to it on the same port, `alpha`; each answers with its own name."""

    def plain(name: bytes) -> bytes:
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(name), name)

    with (
        engine_that(lambda link: link.sendall(plain(b"tiny"))) as tiny,
        engine_that(lambda link: link.sendall(plain(b"alpha"))) as alpha,
    ):
        gateway = opened(tiny)
        gateway.add("alpha", alpha)
        yield gateway


def test_the_model_decides(shared_gateway: LocalGateway) -> None:
    """Guards the route for a model named first, last, behind a long text, in pieces, and in a form."""
    long = "x" * 150_000
    for name in ("tiny", "alpha"):
        for body in ({"model": name}, {"messages": [{"content": long + '"model":"other"'}], "model": name}):
            assert shared_gateway.post("/v1/chat/completions", body).text == name
        text = json.dumps({"messages": [long], "model": name}).encode()
        pieces = (text[at : at + 7000] for at in range(0, len(text), 7000))
        with shared_gateway.client() as client:
            assert client.post("/v1/completions", content=pieces).text == name
            form = {"files": {"file": ("a.wav", b"RIFF" * 1000)}, "data": {"model": name}}
            assert client.post("/v1/audio/transcriptions", **form).text == name  # type: ignore[arg-type]


def test_a_name_that_nobody_serves_is_404(shared_gateway: LocalGateway) -> None:
    """Guards what a client reads of a wrong name, in OpenAI's shape: which names there are."""
    refused = shared_gateway.post("/v1/chat/completions", {"model": "gpt-4", "messages": []})
    assert (refused.status_code, openai_error(refused)["code"]) == (404, "model_not_found")
    assert "'gpt-4'" in str(openai_error(refused)["message"]) and NAMES in str(openai_error(refused)["message"])


def test_the_list_has_all_models_with_who_serves_them(opened: Opened) -> None:
    """Guards what clients list: each engine's own rows, adapters included, which are routed too; one that is away."""

    def lists(*names: str) -> Callable[[socket.socket], None]:
        body = json.dumps({"object": "list", "data": [{"id": name, "max_model_len": 9} for name in names]}).encode()
        return lambda link: link.sendall(
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(body), body)
        )

    with engine_that(lists("tiny", "tiny-lora")) as tiny, engine_that(lists("alpha")) as alpha:
        gateway = opened(tiny)
        gateway.add("alpha", alpha)
        gateway.add("gone", "127.0.0.1:1")
        gateway.live()
        rows = gateway.get("/v1/models").json()["data"]
        found = [(row["id"], row["deployment"], row["state"], row.get("max_model_len")) for row in rows]
        assert found == [
            ("alpha", "alpha", "unknown", 9),
            ("gone", "gone", "unknown", None),
            ("tiny", "tiny", "ready", 9),
            ("tiny-lora", "tiny", "ready", 9),
        ]
        assert gateway.post("/v1/completions", {"model": "tiny-lora"}).status_code == 200


def test_without_a_name_only_one_deployment_can_be_meant(shared_gateway: LocalGateway) -> None:
    """Guards that nothing is guessed between two, and that one alone needs no name."""
    refused = shared_gateway.post("/v1/chat/completions", {"messages": []})
    assert (refused.status_code, openai_error(refused)["code"]) == (400, "model_missing")
    assert NAMES in str(openai_error(refused)["message"])
    shared_gateway.without("alpha")
    assert shared_gateway.post("/v1/chat/completions", {"messages": []}).text == "tiny"


def test_a_key_for_one_deployment_opens_no_other(shared_gateway: LocalGateway) -> None:
    """Guards that a key's own deployment is all that it sees, names included."""
    shared_gateway.keys_for("alpha")
    assert shared_gateway.post("/v1/completions", {"model": "alpha"}).text == "alpha"
    refused = shared_gateway.post("/v1/completions", {"model": "tiny"})
    assert (refused.status_code, "Models: alpha." in refused.text) == (404, True), refused.text
    assert shared_gateway.post("/v1/completions", {}).text == "alpha"


def test_a_deployment_that_is_away_does_not_close_the_other(shared_gateway: LocalGateway) -> None:
    """Guards that 503 is an answer of one deployment, not of the address."""
    shared_gateway.live(refusing=True, why="it is being replaced")
    assert shared_gateway.post("/v1/completions", {"model": "alpha"}).text == "alpha"
    refused = shared_gateway.post("/v1/completions", {"model": "tiny"})
    assert refused.status_code == 503 and "being replaced" in refused.text


def test_a_client_that_leaves_frees_its_engine(opened: Opened) -> None:
    """Guards engines against answers that nobody reads, also after a long body."""
    left: list[bool] = []

    def plays(link: socket.socket) -> None:
        link.sendall(HEAD + PART)
        left.append(link.recv(1) == b"")

    with engine_that(plays) as address:
        gateway = opened(address)
        with gateway.client() as client:
            body = {"messages": ["x" * 100_000], "model": "tiny"}
            with client.stream("POST", "/v1/completions", json=body) as stream:
                next(stream.iter_raw())
        wait_until("the engine's connection is closed", lambda: left == [True])
