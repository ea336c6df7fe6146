"""The way from bytes and times to tokens: whatever the network cut, whatever the server put into a chunk."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.loadgen.stream import TokenStream, message


def sse_event(body: dict[str, Any] | str, end: str = "\n\n") -> bytes:
    return f"data: {body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)}{end}".encode()


def chat_event(
    delta: dict[str, Any], finish: str | None = None, usage: dict[str, int] | None = None, index: int = 0
) -> bytes:
    more = {"usage": usage} if usage else {}
    return sse_event({"choices": [{"index": index, "delta": delta, "finish_reason": finish}], **more})


def usage_event(tokens: int, **more: Any) -> bytes:
    return sse_event({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": tokens, **more}})


def read_stream(*reads: tuple[float, bytes], keep: bool = False) -> TokenStream:
    stream = TokenStream(keep)
    for at, body in reads:
        stream.feed(body, at)
    stream.close(reads[-1][0])
    return stream


ROLE, DONE = chat_event({"role": "assistant", "content": ""}), sse_event("[DONE]")


def test_the_role_is_no_token() -> None:
    """The first chunk of a chat names the role; the first token comes after it."""
    stream = read_stream(
        (1.0, ROLE),
        (2.0, chat_event({"content": "a"})),
        (3.0, chat_event({"content": "b"})),
        (3.1, usage_event(2) + DONE),
    )
    assert stream.tokens() == ([2.0, 3.0], [1, 1], True)
    assert stream.stopped and stream.usage == {"prompt_tokens": 9, "completion_tokens": 2}


def test_one_chunk_may_hold_several_tokens() -> None:
    """Chunks are not tokens: the total of `usage` is shared out by length, and reported to be so."""
    reads = [
        (1.0, chat_event({"content": "ab"})),
        (2.0, chat_event({"content": "abcdef"})),
        (3.0, chat_event({"content": "ab"})),
    ]
    at, counts, exact = read_stream(*reads, (3.0, usage_event(10) + DONE)).tokens()
    assert (at, counts, exact) == ([1.0, 2.0, 3.0], [2, 6, 2], False)


def test_running_counts_are_exact() -> None:
    """Each chunk reports its tokens with continuous usage, so nothing is shared out by length."""
    reads = [
        (1.0, chat_event({"role": "assistant", "content": ""}, usage={"completion_tokens": 0})),
        (2.0, chat_event({"content": "a long first text"}, usage={"completion_tokens": 1})),
        (3.0, chat_event({"content": "b"}, usage={"completion_tokens": 5})),
    ]
    assert read_stream(*reads, (3.0, usage_event(5) + DONE)).tokens() == ([2.0, 3.0], [1, 4], True)


def test_usage_in_the_last_chunk_with_text_is_no_running_count() -> None:
    """A server that adds the total to its last chunk did not send all tokens in it."""
    reads = [
        (1.0, chat_event({"content": "a"})),
        (2.0, chat_event({"content": "b"}, "length", {"completion_tokens": 2})),
    ]
    assert read_stream(*reads, (2.0, DONE)).tokens() == ([1.0, 2.0], [1, 1], True)


def test_several_chunks_in_one_read_count_together() -> None:
    """Chunks of one read came at one time."""
    reads = [(1.0, chat_event({"content": "a"}) + chat_event({"content": "b"})), (2.0, chat_event({"content": "c"}))]
    assert read_stream(*reads, (2.0, usage_event(3) + DONE)).tokens() == ([1.0, 2.0], [2, 1], True)


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_is_tokens_and_no_content(name: str) -> None:
    """The first token of any kind counts for TTFT; the first of the answer is kept apart."""
    stream = read_stream(
        (1.0, chat_event({name: "hm"})), (2.0, chat_event({"content": "yes"})), (2.0, usage_event(2) + DONE)
    )
    assert stream.tokens()[0] == [1.0, 2.0]
    assert stream.first_content == 2.0


def test_reasoning_only_answers_have_tokens() -> None:
    """A model that never comes to its answer has generated tokens all the same."""
    stream = read_stream(
        (1.0, chat_event({"reasoning": "hm"})),
        (2.0, chat_event({"reasoning": "hm"}, "length")),
        (2.0, usage_event(2) + DONE),
    )
    assert (stream.tokens(), stream.first_content) == (([1.0, 2.0], [1, 1], True), None)


def test_calls_of_tools_are_tokens_and_can_be_kept() -> None:
    """Deltas of a tool call carry no content, and yet they are what the model generated."""
    first = {"tool_calls": [{"index": 0, "id": "x", "function": {"name": "find", "arguments": ""}}]}
    second = {"tool_calls": [{"index": 0, "function": {"arguments": '{"a":1}'}}]}
    stream = read_stream(
        (1.0, chat_event(first)), (2.0, chat_event(second, "tool_calls")), (2.0, usage_event(9) + DONE), keep=True
    )
    assert sum(stream.tokens()[1]) == 9
    assert stream.first_content == 1.0
    assert json.loads(stream.answer()) == [{"name": "find", "arguments": '{"a":1}'}]


def test_the_token_that_ends_an_answer_came_with_its_reason() -> None:
    """`usage` counts the end-of-text token, which has no text: it is not spread over the others."""
    reads = [
        (1.0, chat_event({"content": "a"})),
        (2.0, chat_event({"content": "b"})),
        (3.0, chat_event({"content": ""}, "stop")),
    ]
    assert read_stream(*reads, (3.1, usage_event(3) + DONE)).tokens() == ([1.0, 2.0, 3.0], [1, 1, 1], True)


def test_text_completions_are_read_too() -> None:
    """/v1/completions has `text` where chat has a delta."""
    bodies = [sse_event({"choices": [{"index": 0, "text": text, "finish_reason": None}]}) for text in ("", "a", "b")]
    stream = read_stream(
        *((float(at), body) for at, body in enumerate(bodies)), (3.0, usage_event(2) + DONE), keep=True
    )
    assert (stream.tokens(), stream.answer()) == (([1.0, 2.0], [1, 1], True), "ab")


def test_tokens_of_several_choices_are_added() -> None:
    """Each choice counts automatically with n > 1; only the total can be trusted."""
    reads = [
        (float(at), chat_event({"content": "a"}, usage={"completion_tokens": 1 + at // 2}, index=at % 2))
        for at in range(4)
    ]
    assert read_stream(*reads, (4.0, usage_event(4) + DONE)).tokens() == ([0.0, 1.0, 2.0, 3.0], [1, 1, 1, 1], True)


def test_without_usage_there_are_no_tokens() -> None:
    """Chunks are never counted in place of tokens."""
    stream = read_stream((1.0, chat_event({"content": "a"})), (2.0, DONE))
    assert (stream.tokens(), stream.usage, stream.at) == (([], [], True), None, [1.0])


def test_an_error_inside_the_stream_is_kept() -> None:
    """vLLM answers 200 before its engine fails: the error is then an event like any other."""
    stream = read_stream(
        (1.0, chat_event({"content": "a"})), (2.0, sse_event({"error": {"message": "it died", "code": 500}}) + DONE)
    )
    assert stream.error == "it died"


def test_what_is_no_chunk_is_an_error_and_not_a_crash() -> None:
    """Broken JSON, and JSON of another shape."""
    assert "broken" in read_stream((1.0, b"data: {broken\n\n")).error
    assert read_stream((1.0, sse_event({"choices": ["no object"]}))).error


def test_comments_names_and_crlf() -> None:
    """Everything that the format allows next to `data`; also a last event without its empty line."""
    text = (
        b": ping\r\n\r\nevent: message\r\nid: 3\r\n"
        + chat_event({"content": "a"}).replace(b"\n", b"\r\n")
        + b": ping\r\n\r\n"
    )
    stream = read_stream((1.0, text), (2.0, chat_event({"content": "b"})), (3.0, usage_event(2).rstrip()))
    assert (stream.tokens(), stream.error) == (([1.0, 2.0], [1, 1], True), "")


WHOLE = ROLE + b": ping\n\n" + chat_event({"content": "ä€😀"}) + chat_event({"content": '"\\n'}) + usage_event(2) + DONE


@given(st.lists(st.integers(0, len(WHOLE)), max_size=12), st.booleans())
def test_no_cut_changes_what_was_reported(cuts: list[int], crlf: bool) -> None:
    """Reads end anywhere: in a character, in `data:`, between the two ends of a line."""
    whole = WHOLE.replace(b"\n", b"\r\n") if crlf else WHOLE
    places = [0, *sorted(cuts), len(whole)]
    stream = read_stream(*((float(b), whole[a:b]) for a, b in pairwise(places)), keep=True)
    assert stream.answer() == 'ä€😀"\\n'
    assert (sum(stream.tokens()[1]), stream.stopped, stream.error, stream.events) == (2, True, "", 4)


TEXTS = st.one_of(
    st.sampled_from(["a", " the", "", '"', "\\", "ä", "x\n", "content", ', "finish_reason": "']), st.text(max_size=4)
)


@given(st.lists(TEXTS, min_size=1, max_size=12), st.sampled_from(["content", "reasoning"]), st.booleans())
def test_chunks_like_the_one_before_are_distinguished_from_others(texts: list[str], name: str, plain: bool) -> None:
    """Chunks that differ by their text alone are not parsed again, and nothing is heard otherwise for it."""
    body = [
        json.dumps({"choices": [{"delta": {name: text}, "finish_reason": None}]}, ensure_ascii=plain) for text in texts
    ]
    reads = [(float(at), sse_event(text)) for at, text in enumerate(body)] + [(99.0, usage_event(len(texts)) + DONE)]
    slow, quick = read_stream(*reads, keep=True), TokenStream(keep=True)
    quick.feed_all(reads)
    quick.close(99.0)
    assert quick.answer() == slow.answer() == ("".join(texts) if name == "content" else "")
    for told in ("at", "sizes", "chunks", "first_content", "finish", "error", "events", "usage", "stopped"):
        assert getattr(quick, told) == getattr(slow, told), told


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 3)), min_size=1, max_size=30), st.integers(1, 400))
def test_every_total_is_shared_out_whole(reads: list[tuple[int, int]], total: int) -> None:
    """No token is lost, however many `usage` reports for however many chunks, and the first read has one."""
    bodies = [(float(at), chat_event({"content": "x" * size}) * chunks) for at, (size, chunks) in enumerate(reads)]
    stream = read_stream(*bodies, (99.0, usage_event(total) + DONE))
    at, counts, _ = stream.tokens()
    assert sum(counts) == total and at[0] == 0.0
    assert min(counts) >= 1 and at == sorted(at)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"message": "too long"}}, "too long"),
        ({"error": "Unauthorized"}, "Unauthorized"),
        ({"detail": "Not Found"}, "Not Found"),
        ({"object": "error", "message": "bad"}, "bad"),
        ({"error": {"code": 5}}, '{"code":5}'),
    ],
)
def test_errors_are_reported_with_the_servers_message(body: dict[str, Any], said: str) -> None:
    """Each of the forms that OpenAI-compatible servers and proxies use."""
    assert message(body) == said


def test_an_event_without_end_is_an_error() -> None:
    """Guards memory and time against a hostile server: what came is not searched again, and too much is not kept."""
    stream = TokenStream()
    for _ in range(65536):
        stream.feed(b"x" * 64, 1.0)
    assert not stream.error
    for _ in range(16):
        stream.feed(b"x" * (1 << 20), 2.0)
    assert stream.error == "an event of more than 16 MiB"


@given(st.lists(st.integers(0, 400), max_size=6))
def test_cuts_between_line_ends_change_nothing(cuts: list[int]) -> None:
    r"""Guards events that end with \r\n, cut in the middle of their ends."""
    body = b"".join(chat_event({"content": text}) for text in "abc").replace(b"\n", b"\r\n") + usage_event(3) + DONE
    edges = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    stream = read_stream(*((1.0, body[a:b]) for a, b in pairwise(edges)), keep=True)
    assert (stream.text, stream.stopped, stream.error) == (["a", "b", "c"], True, "")
