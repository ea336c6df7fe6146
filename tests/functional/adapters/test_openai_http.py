"""Asking an endpoint: what the real vLLM 0.21.0 sent, cut in every way, and everything that is no answer."""

import asyncio
import json
import ssl
import subprocess
from pathlib import Path

import pytest

from fakes.ports import free_port
from fakes.replay import PiecewiseReply, ReplayServer, recorded
from sparkwright.adapters.machine import SystemClock
from sparkwright.adapters.openai_http import HttpTimeouts, OpenAiEndpoint
from sparkwright.domain.command import Secret
from sparkwright.domain.deployment import Answer
from sparkwright.domain.errors import NotReady

USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":2}}\n\n'
HELLO = b'data: {"choices":[{"delta":{"content":"Hello"}}]}\n\n'
DONE = b"data: [DONE]\n\n"


async def ask_endpoint(
    reply: PiecewiseReply, key: Secret | None = None, timeouts: HttpTimeouts | None = None
) -> Answer:
    async with ReplayServer(reply) as url:
        return await OpenAiEndpoint(SystemClock(), timeouts).ask(url, "tiny-qwen3", "Hi", 32, key)


async def refusal(reply: PiecewiseReply, timeouts: HttpTimeouts | None = None) -> str:
    with pytest.raises(NotReady) as raised:
        await ask_endpoint(reply, None, timeouts)
    assert raised.value.exit_code == 5
    return raised.value.message


@pytest.mark.parametrize("size", [0, 1, 2, 7, 61, 1000, 100_000])
async def test_answer_does_not_depend_on_the_network(size: int) -> None:
    """The answer is the same however the bytes are cut, and its tokens are those of `usage`."""
    answer = await ask_endpoint(recorded("chat-32", size))
    assert (answer.prompt_tokens, answer.completion_tokens, answer.simulated) == (18, 32, False)
    assert answer.text.startswith(" jumpant") and 0 < answer.ttft <= answer.total


async def test_tokens_are_not_chunks() -> None:
    """Speculation brought 64 tokens in 15 events: counting events would be wrong by four."""
    reply = recorded("ngram-chat")
    answer = await ask_endpoint(reply)
    assert (answer.completion_tokens, len(reply.pieces)) == (64, 17)
    assert answer.text.startswith(" jump")


async def test_running_usage_counts_once() -> None:
    """The last usage counts if it comes with every event."""
    assert (await ask_endpoint(recorded("chat-continuous-usage"))).completion_tokens == 8


async def test_tool_call_is_an_answer() -> None:
    """Tokens that are a tool call are tokens."""
    answer = await ask_endpoint(recorded("chat-tool-required"))
    assert answer.completion_tokens > 0 and answer.ttft < answer.total


async def test_a_certificate_that_is_not_trusted_says_where_its_ca_is(tmp_path: Path) -> None:
    """Guards a second laptop: it is told which command writes ca.crt, and which machine has it."""
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=localhost", "-days", "1"]
    subprocess.run([*words, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    async with server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(NotReady) as raised:
            await OpenAiEndpoint(SystemClock()).get(f"{url}/v1/models", None, 10.0)
    assert "its certificate is not trusted here" in raised.value.message
    assert "`sparkwright up RECIPE`" in raised.value.hint and "writes ca.crt on this machine" in raised.value.hint
    assert "copy it from the machine where `up` was called" in raised.value.hint


async def test_request_is_openai_only() -> None:
    """The body holds what any OpenAI-compatible server takes; the key is in the header, and only when there is one."""
    replay = ReplayServer(PiecewiseReply([HELLO, USAGE, DONE]))
    async with replay as url:
        endpoint = OpenAiEndpoint(SystemClock())
        await endpoint.ask(url + "/v1/", "m", "Hi", 5, Secret("s3cret"))
        await endpoint.ask(url, "m", "Hi", 5, None)
    (line, headers, body), (_, plain, _) = replay.requests
    assert line == "POST /v1/chat/completions" and headers["authorization"] == "Bearer s3cret"
    assert "authorization" not in plain
    assert json.loads(body) == {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 5,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_the_same_question_asked_greedily() -> None:
    """Guards the canary: what it hears is compared with what it heard before."""
    replay = ReplayServer(PiecewiseReply([HELLO, USAGE, DONE]))
    async with replay as url:
        answer = await OpenAiEndpoint(SystemClock()).greedy(url, "m", "Hi", 8, None)
    body = json.loads(replay.requests[0][2])
    assert (body["temperature"], body["max_tokens"], answer.text) == (0, 8, "Hello")


async def test_a_page_is_shown_or_it_is_none() -> None:
    """Guards the figures: an error page is not taken for one of metrics, and silence ends automatically."""
    limits = HttpTimeouts(models=0.2)
    replies = [PiecewiseReply([b"up 1\n"]), PiecewiseReply([b"up 1\n"], status=500), PiecewiseReply([b"up"], hang=True)]
    shown = []
    for reply in replies:
        async with ReplayServer(reply) as url:
            shown.append(await OpenAiEndpoint(SystemClock(), limits).page(url, "metrics", None))
    shown.append(await OpenAiEndpoint(SystemClock(), limits).page(f"http://127.0.0.1:{free_port()}", "metrics", None))
    assert shown == ["up 1\n", None, None, None]


@pytest.mark.parametrize(("value", "simulated"), [("1", True), ("true", True), ("0", False), ("", False)])
async def test_simulated_is_reported(value: str, simulated: bool) -> None:
    """An answer of the simulator is marked as simulated by its header."""
    answer = await ask_endpoint(PiecewiseReply([HELLO, USAGE, DONE], headers={"X-Sparkwright-Simulated": value}))
    assert answer.simulated is simulated


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node is asked directly, also where the office's proxy is set."""
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{free_port()}")
    assert (await ask_endpoint(PiecewiseReply([HELLO, USAGE, DONE]))).text == "Hello"


async def test_engine_killed_in_an_answer() -> None:
    """vLLM's engine died and the stream reports it, inside HTTP 200 and closed by [DONE]: no answer."""
    message = await refusal(recorded("killed-midstream"))
    assert "EngineCore encountered an issue" in message and "after 2 events" in message


@pytest.mark.parametrize(
    ("label", "wanted"),
    [
        ("chat-too-long", 'HTTP 400: {"error":{"message":"This model\'s maximum context length is 32768'),
        ("chat-wrong-model", 'HTTP 404: {"error":{"message":"The model `nope` does not exist.'),
        ("no-key", 'HTTP 401: {"error":"Unauthorized"}'),
    ],
)
async def test_http_errors_report_what_came(label: str, wanted: str) -> None:
    """The server's own text and status are shown, and no more than 300 characters of them."""
    message = await refusal(recorded(label))
    assert wanted in message and len(message) < 450


async def test_page_of_a_proxy_is_no_answer() -> None:
    """HTTP 200 with something that is no stream shows what it is."""
    assert "HTTP 200: <html>" in await refusal(PiecewiseReply([b"<html>" + b"x" * 5000], content_type="text/html"))


@pytest.mark.parametrize("cut", [True, False], ids=["broken", "ended"])
async def test_cut_stream_is_no_answer(cut: bool) -> None:
    """A stream without [DONE] is not taken for a short answer, whether it broke or just ended."""
    message = await refusal(PiecewiseReply([HELLO, USAGE], cut=cut))
    assert "after 2 events: 'Hello'" in message


@pytest.mark.parametrize(
    ("pieces", "wanted"),
    [
        ([HELLO, DONE], "no `usage`"),
        ([b'data: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":0}}\n\n', DONE], "0 tokens"),
        ([DONE], "no `usage`"),
        ([b"data: {oops\n\n", DONE], "no JSON: {oops"),
        ([b"data: [1]\n\n", DONE], "no object"),
        ([b'data: {"error":"boom"}\n\n'], "error in the stream: boom"),
    ],
)
async def test_stream_without_tokens_is_no_answer(pieces: list[bytes], wanted: str) -> None:
    """Only tokens that the server counted prove that it answers."""
    assert wanted in await refusal(PiecewiseReply(pieces))


async def test_silence_is_no_answer() -> None:
    """A server that takes the request and then reports nothing (its worker is dead) is not waited for for ever."""
    message = await refusal(PiecewiseReply([HELLO], hang=True), HttpTimeouts(silence=0.2))
    assert "silence until the time was up" in message and "after 1 events" in message


async def test_nobody_there() -> None:
    """A refused connection is named in the message."""
    endpoint = OpenAiEndpoint(SystemClock())
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(NotReady, match="connection refused"):
        await endpoint.ask(url, "m", "Hi", 5, None)
    assert await endpoint.models(url, None) == ()


async def test_models() -> None:
    """The ids that are served; nothing when what answers is not a list of models."""
    endpoint = OpenAiEndpoint(SystemClock())
    good = b'{"object":"list","data":[{"id":"tiny-qwen3","object":"model"},{"id":"b"}]}'
    bodies = [(200, good), (200, b"[]"), (200, b'{"data":[{}]}'), (200, b"<html>"), (401, good), (503, b"")]
    found = []
    for status, body in bodies:
        async with ReplayServer(PiecewiseReply([body] if body else [], status, "application/json")) as url:
            found.append(await endpoint.models(url, Secret("k")))
    assert found == [("tiny-qwen3", "b"), (), (), (), (), ()]
