"""The answers of the real vLLM 0.21.0, sent again: tokens are those of its `usage`, whatever the network did."""

import json
from pathlib import Path

import pytest

from fakes.replay import PiecewiseReply, ReplayServer, recorded
from functional.load.playing import send_requests
from sparkwright.domain.run import Row

CAPTURES = Path(__file__).resolve().parents[4] / "shared" / "captures"
FOLDERS = (
    "vllm-0.21.0-1node/sse.json",
    "vllm-0.21.0-speculation-agent/sse-ngram.json",
    "vllm-0.21.0-speculation-agent/sse-agent.json",
)


async def row_from_reply(reply: PiecewiseReply) -> Row:
    async with ReplayServer(reply) as url:
        (row,), _ = await send_requests(f"{url}/v1/chat/completions")
    return row


@pytest.mark.parametrize("folder", FOLDERS)
async def test_counts_equal_usage(folder: str) -> None:
    """Every recording: chat, completions, long prompts, tool calls, running usage, speculation, errors."""
    if not (CAPTURES / folder).exists():
        pytest.skip("data: ../shared/captures is absent")
    for one in json.loads((CAPTURES / folder).read_text()):
        pieces = [text.encode() for _, text in one["chunks"]]
        kind = "text/event-stream" if pieces[0].startswith(b"data:") else "application/json"
        row = await row_from_reply(PiecewiseReply(pieces, one["status"], kind))
        if kind == "application/json":
            assert row.kind == ("no-stream" if one["status"] == 200 else f"http-{one['status']}"), one["label"]
            continue
        usage = json.loads(next(text for _, text in reversed(one["chunks"]) if '"usage"' in text)[6:])["usage"]
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
        assert (row.error, row.prompt_tokens, row.cached_tokens) == ("", usage["prompt_tokens"], cached), one["label"]
        assert row.output_tokens == usage["completion_tokens"] == sum(row.reads.tokens), one["label"]


@pytest.mark.parametrize("size", [1, 7, 61, 100_000])
async def test_the_network_does_not_matter(size: int) -> None:
    """The tokens are the same however the bytes are cut."""
    row = await row_from_reply(recorded("chat-32", size))
    assert (row.error, row.prompt_tokens, row.output_tokens, sum(row.reads.tokens)) == ("", 18, 32, 32)


async def test_running_usage_is_exact() -> None:
    """Each read's tokens are known if the engine reports its count with every chunk."""
    row = await row_from_reply(recorded("chat-continuous-usage"))
    assert (row.output_tokens, row.reads.exact) == (8, True)


async def test_speculation_is_shared_out() -> None:
    """64 tokens in 15 chunks: shared out, and reported to be so."""
    row = await row_from_reply(recorded("ngram-chat"))
    assert (row.output_tokens, sum(row.reads.tokens), row.reads.exact) == (64, 64, False)
    assert row.chunks == 16


async def test_the_engine_died() -> None:
    """An error inside the 200 stream, as the real engine sent it."""
    path = CAPTURES / "vllm-0.21.0-1node/killed.json"
    if not path.exists():
        pytest.skip("data: ../shared/captures is absent")
    died = json.loads(path.read_text())[0]
    row = await row_from_reply(PiecewiseReply([text.encode() for _, text in died["chunks"]]))
    assert (row.kind, row.status) == ("error-in-stream", 200) and "EngineCore" in row.error
