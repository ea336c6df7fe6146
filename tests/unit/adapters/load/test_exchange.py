"""HTTP taken off late and in batches: whatever the cuts, what is heard is what was sent."""

import json
import sys
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sparkwright.adapters.load.exchange import BATCH, Exchange, outcome

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
TEXTS = st.one_of(st.sampled_from(["a", " the", " a longer text", '"', "\\", "ä", "\r\n", "0"]), st.text(max_size=5))


def http_chunk(body: bytes, upper: bool = False) -> bytes:
    return (b"%X\r\n%s\r\n" if upper else b"%x\r\n%s\r\n") % (len(body), body)


def sse_event(body: object) -> bytes:
    return b"data: " + (body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)).encode() + b"\n\n"


def tokens(texts: list[str], upper: bool = False) -> list[bytes]:
    """One HTTP chunk each, as servers write them; the last one has the reason for the end."""
    bodies = [{"choices": [{"delta": {"content": text}, "finish_reason": None}]} for text in texts]
    bodies[-1]["choices"][0]["finish_reason"] = "stop"
    return [http_chunk(sse_event(body), upper) for body in bodies]


def ending(count: int) -> bytes:
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": count}}
    return http_chunk(sse_event(usage)) + http_chunk(sse_event("[DONE]")) + b"0\r\n\r\n"


def read_exchange(parts: list[bytes], every: int) -> Exchange:
    """Read at 1.0, 2.0, ...; looked into after so many reads."""
    exchange = Exchange(lambda _: None, b"", 0.0, True)
    for number, part in enumerate(parts, 1):
        exchange.times.append(float(number))
        exchange.parts.append(part)
        if number % every == 0:
            exchange.frame()
            exchange.digest()
    exchange.end()
    return exchange


@given(st.lists(TEXTS, min_size=1, max_size=40), st.integers(1, 20), st.booleans())
def test_one_chunk_a_read(texts: list[str], every: int, upper: bool) -> None:
    """Chunks that are like the one before are taken without the parsers, and nothing is lost or moved by it."""
    exchange = read_exchange([HEAD, *tokens(texts, upper), ending(len(texts))], every)
    stream = exchange.stream
    assert stream and exchange.complete and exchange.failed == ("", "")
    assert stream.answer() == "".join(texts) and stream.finish == "stop"
    assert stream.at == [float(number) for number, text in enumerate(texts, 2) if text]
    assert stream.usage == {"prompt_tokens": 3, "completion_tokens": len(texts)} and not stream.error


@given(st.lists(TEXTS, min_size=1, max_size=12), st.lists(st.integers(0, 3000), max_size=30), st.integers(1, 5))
def test_cuts_anywhere(texts: list[str], cuts: list[int], every: int) -> None:
    """Cuts are anywhere: in the line before a chunk, between its two last bytes, in the head, in the last chunk."""
    whole = HEAD + b"".join(tokens(texts)) + ending(len(texts))
    places = [0, *sorted({cut % len(whole) for cut in cuts} - {0}), len(whole)]
    exchange = read_exchange([whole[a:b] for a, b in pairwise(places)], every)
    assert exchange.complete and exchange.stream and exchange.stream.answer() == "".join(texts)
    assert exchange.bytes == len(whole) and exchange.failed == ("", "")


def test_what_chunks_have_in_common_is_found() -> None:
    """The bytes around the text of plain chunks are known after the first of them."""
    exchange = read_exchange([HEAD, *tokens(["word"] * 100)[:-1]], BATCH)
    assert exchange.stream and exchange.stream.around[0].endswith(b'"content": "')
    assert outcome(read_exchange([HEAD, *tokens(["word"] * 100), ending(100)], BATCH), 0.0)["reads"][1:] == (
        [1] * 100,
        True,
    )


def test_nothing_holds_an_exchange_that_has_ended() -> None:
    """The collector is off during a job: a circle through the parser would stay for ever."""
    exchange = read_exchange([HEAD, *tokens(["a"]), ending(1)], 1)
    assert sys.getrefcount(exchange) == 2
