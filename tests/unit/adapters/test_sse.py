"""Server-sent events and what they report of an answer."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.replay import CAPTURES, recorded
from sparkwright.adapters.completion import Broken, Completion, SseReader
from unit.for_each import for_each

WHOLE = b"".join(recorded("chat-32").pieces)


def events(*chunks: bytes) -> list[str]:
    reader = SseReader()
    return [data for chunk in chunks for data in reader.feed(chunk)]


@pytest.mark.full
def test_every_cut_gives_the_same_events() -> None:
    """The recording of the real engine reads the same when it is cut in two anywhere."""
    whole = events(WHOLE)
    assert len(whole) == 35 and whole[-1] == "[DONE]"
    assert all(events(WHOLE[:at], WHOLE[at:]) == whole for at in range(2000))


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), min_size=1), min_size=1), st.data())
def test_any_text_in_any_pieces(texts: list[str], data: st.DataObject) -> None:
    """Text of any alphabet comes back whole, also cut inside a character and with any kind of line end."""
    end = data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
    stream = b"".join(b": ping" + end + b"data: " + text.encode() + end + end for text in texts) + b": end\n"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert events(*pieces) == texts


@for_each(
    "stream, wanted",
    [
        (b"data: a\n\ndata: b\n\n", ["a", "b"]),
        (b"data:a\ndata: b\n\n", ["a\nb"]),
        (b"event: x\nid: 1\nretry: 5\ndata:  a\n\n", [" a"]),
        (b": comment\n\n\n\ndata: a\n\n", ["a"]),
        (b"data\n\n", [""]),
        (b"data: not complete\n", []),
    ],
)
def test_fields(stream: bytes, wanted: list[str]) -> None:
    """Several events in one read, several lines in one event, and lines that are not data."""
    assert events(stream) == wanted


def test_time_to_first_token_is_not_that_of_the_role() -> None:
    """The first event carries only the role and comes when prefill ends; the first token is the next one."""
    heard = Completion()
    for second, data in enumerate(events(WHOLE)):
        heard.take(data, float(second))
    assert (heard.first, heard.events, heard.done) == (1.0, 34, True)
    assert (heard.prompt_tokens, heard.completion_tokens) == (18, 32)


@pytest.mark.parametrize(
    "delta", [{"content": "x"}, {"reasoning": "x"}, {"reasoning_content": "x"}, {"tool_calls": [1]}]
)
def test_any_kind_of_token_is_a_first_token(delta: dict[str, object]) -> None:
    """Content, reasoning under both of its names, and a tool call."""
    heard = Completion()
    heard.take(json.dumps({"choices": [{"delta": {"content": None}}]}), 1.0)
    heard.take(json.dumps({"choices": [{"delta": delta}]}), 2.0)
    assert heard.first == 2.0


def test_content_goes_before_reasoning() -> None:
    """The text is the content; only without any it is the reasoning."""
    heard = Completion()
    heard.take('{"choices":[{"delta":{"reasoning":"think"}}]}', 0.0)
    assert heard.text == "think"
    heard.take('{"choices":[{"delta":{"content":"say"}}]}', 0.0)
    assert heard.text == "say"


@pytest.mark.parametrize(
    "odd", ['{"choices":null}', '{"choices":[null]}', '{"usage":[]}', '{"choices":[{"delta":null}]}']
)
def test_odd_events_are_survived(odd: str) -> None:
    """An event without anything in it does not raise."""
    heard = Completion()
    heard.take(odd, 0.0)
    assert (heard.first, heard.completion_tokens) == (None, None)


@pytest.mark.parametrize("error", ['"no"', '{"message":"no"}', '{"code":"no"}'])
def test_errors_in_the_stream(error: str) -> None:
    """An error object of any shape ends the answer."""
    with pytest.raises(Broken, match="no"):
        Completion().take(f'{{"error":{error}}}', 0.0)


def test_recordings_are_ours() -> None:
    """Every recording reports where it comes from."""
    assert all(json.loads(path.read_text())["from"].startswith("vllm-0.21.0") for path in CAPTURES.iterdir())


@pytest.mark.full
@pytest.mark.parametrize("piece", [b"x" * 64, b"data: " + b"x" * 4000 + b"\n"])
def test_an_event_without_end_is_refused(piece: bytes) -> None:
    """Guards memory and time against a hostile server: what came is not searched again, and too much is an error."""
    reader = SseReader()
    for _ in range((4 << 20) // len(piece)):
        assert reader.feed(piece) == []
    with pytest.raises(Broken, match="16 MiB"):
        for _ in range(15):
            reader.feed(piece * ((1 << 20) // len(piece)))
