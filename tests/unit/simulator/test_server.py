"""Keys, open routes and the mark: what a client sees besides answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sparkwright.simulator.job import EngineDead
from unit.simulator.inprocess import MakeClient, plain_bytes


async def test_models_are_listed_as_recorded_but_owned_by_the_simulator(
    captures: Path, make_client: MakeClient
) -> None:
    """/v1/models has vLLM's bytes except that owned_by reports simulated."""
    client = await make_client()
    reply = await client.get("/v1/models")
    text = plain_bytes(reply.text).replace("sparkwright-twin (simulated)", "vllm")
    text = text.replace(client.service.rank.model.path, "/models/tiny-qwen3")
    assert text == plain_bytes((captures / "models.json").read_text(encoding="utf-8"))


async def test_a_key_covers_only_v1(captures: Path, make_client: MakeClient) -> None:
    """The routes that were open in the recording are open with --api-key, and the others answer the recorded way."""
    recorded = json.loads((captures / "open-routes.json").read_text(encoding="utf-8"))
    client = await make_client("--api-key", "secret")
    for path, seen in recorded.items():
        reply = await client.get(path)
        if seen.startswith("ERR"):
            assert f"Error {reply.status}:" in seen and seen.endswith(">" + reply.text), path
        else:
            assert reply.status == 200, path
            assert path in ("/metrics", "/version") or reply.text == seen, path


@pytest.mark.parametrize(("key", "status"), [("", 401), ("wrong", 401), ("secret", 200), ("from-env", 200)])
async def test_keys_come_from_flag_and_environment(make_client: MakeClient, key: str, status: int) -> None:
    """Each known key opens /v1 and no other does."""
    client = await make_client("--api-key", "secret", env={"VLLM_API_KEY": "from-env"})
    reply = await client.get("/v1/models", key)
    assert reply.status == status
    assert status == 200 or reply.text == '{"error":"Unauthorized"}'


async def test_everything_is_marked_simulated(make_client: MakeClient) -> None:
    """Version, metrics, models, fingerprint and the headers of all, refusals too, report that nothing is real."""
    client = await make_client("--api-key", "k")
    paths = ["/version", "/metrics", "/v1/models", "/health", "/nowhere"]
    replies = [await client.get(path, "k") for path in paths] + [await client.get("/v1/models")]
    assert all(dict(r.headers)["x-sparkwright-simulated"] == "1" for r in replies)
    assert all("simulated" in r.text for r in replies[:3])
    answer = await client.post("/v1/completions", {"prompt": "x"}, "k")
    assert "simulated" in answer.json["system_fingerprint"]


async def test_tokens_can_be_counted_and_turned_back(make_client: MakeClient) -> None:
    """/tokenize counts what a completion's usage counts, and /detokenize gives the text back."""
    client = await make_client()
    text = "def quick_sort(items):\n    return items"
    counted = (await client.post("/tokenize", {"prompt": text})).json
    used = (await client.post("/v1/completions", {"prompt": text, "max_tokens": 1})).json["usage"]
    back = (await client.post("/detokenize", {"tokens": counted["tokens"]})).json
    assert list(counted) == ["count", "max_model_len", "tokens", "token_strs"]
    assert counted["count"] == len(counted["tokens"]) == used["prompt_tokens"]
    assert back == {"prompt": text}


async def test_chat_counts_its_frame_too(make_client: MakeClient) -> None:
    """/tokenize with messages agrees with the usage of the same chat."""
    client = await make_client()
    talk = {"messages": [{"role": "user", "content": "hello there"}]}
    counted = (await client.post("/tokenize", talk)).json["count"]
    used = (await client.post("/v1/chat/completions", {**talk, "max_tokens": 1})).json["usage"]
    assert counted == used["prompt_tokens"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "JSON decode error"),
        (b"[]", "valid dictionary"),
        (b'{"model": "tiny-qwen3"}', "Field required"),
        (b'{"prompt": "x", "max_tokens": 0}', "max_tokens must be at least 1, got 0."),
        (b'{"prompt": "x", "n": 2}', "one choice"),
        (b'{"prompt": ["x", "y"]}', "one prompt"),
        (b'{"prompt": "x", "stream_options": {"include_usage": true}}', "Stream options"),
    ],
)
async def test_bad_bodies_are_client_errors(make_client: MakeClient, body: bytes, words: str) -> None:
    """A body that makes no sense is a 400 with an error object, never a 500."""
    reply = await (await make_client()).post("/v1/completions", body)
    assert reply.status == 400
    assert list(reply.json["error"]) == ["message", "type", "param", "code"] and words in reply.json["error"]["message"]


async def test_an_engine_that_dies_mid_stream_ends_it_as_recorded(captures: Path, make_client: MakeClient) -> None:
    """The client of a running stream gets an error object and [DONE] inside its 200; /health is 503 then."""
    recorded = json.loads((captures / "killed.json").read_text(encoding="utf-8"))[0]["chunks"]
    client = await make_client(env={"SPARKWRIGHT_SIMULATOR_STEP_MS": "1"})
    engine = client.service.engine
    steps = 0

    class Dying:
        async def step(self, answered: int, seconds: float) -> None:
            nonlocal steps
            steps += 1
            if steps > 3:
                raise EngineDead

    engine.ranks = Dying()
    body = {"prompt": "x", "max_tokens": 1000, "stream": True, "ignore_eos": True}
    reply = await client.post("/v1/completions", body)
    assert reply.status == 200
    assert [r.decode() for r in reply.reads[-2:]] == [c[1] for c in recorded[-2:]]
    assert (await client.get("/health")).status == 503
    late = await client.post("/v1/completions", body)
    assert late.status == 500 and late.json["error"]["type"] == "InternalServerError"


async def test_a_text_prompt_may_be_token_ids(make_client: MakeClient) -> None:
    """Load tools send ids: as many prompt tokens as ids."""
    reply = await (await make_client()).post("/v1/completions", {"prompt": list(range(77)), "max_tokens": 1})
    assert reply.json["usage"]["prompt_tokens"] == 77


async def test_garbage_is_garbage(make_client: MakeClient) -> None:
    """The fault makes answers that a canary must notice."""
    client = await make_client(env={"SPARKWRIGHT_SIMULATOR_FAULT": "garbage"})
    reply = await client.post("/v1/completions", {"prompt": "x", "max_tokens": 9})
    assert reply.json["choices"][0]["text"] == "!" * 9
