"""The bytes of an engine, however odd: read by the parser, bounded, and never taken for whole when they are not."""

from __future__ import annotations

import h11
import pytest

from sparkwright.supervisor.proxy.engine_answer import HEAD_LIMIT, EngineAnswer, MalformedAnswer
from unit.for_each import for_each

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"


def read(data: bytes, step: int, method: str = "POST") -> tuple[bytes, EngineAnswer]:
    answer = EngineAnswer(method)
    return b"".join(answer.feed(data[at : at + step]) for at in range(0, len(data), step)), answer


@for_each(
    "data, body",
    [
        (HEAD + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: x\r\n\r\n", b"abcde"),
        (SIZED + b"abc", b"abc"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n" + SIZED + b"abc", b"abc"),
        (SIZED + b"abcHTTP/1.1 200 OK\r\n\r\nnonsense", b"abc"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
)
def test_an_answer_is_whole_at_its_own_end(data: bytes, body: bytes) -> None:
    """The answer ends there however it falls into reads, and whatever comes after it."""
    for step in (1, 7, len(data)):
        got, answer = read(data, step)
        assert (got, answer.complete) == (body, True), step
        assert answer.status in (200, 204)


@for_each(
    "data",
    [
        HEAD + b"-6\r\nx",
        HEAD + b"zz\r\nx",
        HEAD + b"0x10\r\nx",
        HEAD + b"fffffffffffffffffffff\r\nx",
        HEAD + b"3\r\nabcX\r\n",
        b"HTTP/1.1 2OO OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA" + b"a" * HEAD_LIMIT,
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * HEAD_LIMIT,
        b"HTTP/1.1 100 Continue\r\n\r\n" * HEAD_LIMIT,
        HEAD + b"0\r\n" + b"T: x\r\n" * HEAD_LIMIT,
        HEAD + b"1;" + b"x" * 2 * HEAD_LIMIT,
    ],
)
def test_what_is_no_answer_ends_and_nothing_of_it_is_kept(data: bytes) -> None:
    """A size below zero, a head, a trailer or an extension without end: the gateway hung or grew on these."""
    answer = EngineAnswer("POST")
    with pytest.raises(MalformedAnswer):
        for at in range(0, len(data), 4096):
            answer.feed(data[at : at + 4096])
    assert not answer.complete


@for_each("data", [b"", HEAD, HEAD + b"3\r\nab", SIZED + b"ab", b"HTTP/1.1 200", b"220 smtp.example\r\n"])
def test_an_end_too_early_is_seen(data: bytes) -> None:
    """Guards half an answer: it never looks whole."""
    answer = EngineAnswer("POST")
    if data:
        answer.feed(data)
    with pytest.raises(MalformedAnswer):
        answer.feed(b"")


def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    """HTTP/1.0 servers end an answer so; one to HEAD has no body at all."""
    got, answer = read(b"HTTP/1.0 200 OK\r\n\r\nabc", 5)
    assert (got, answer.complete) == (b"abc", False)
    assert (answer.feed(b""), answer.complete) == (b"", True)
    assert read(SIZED, 9, "HEAD")[1].complete


def test_a_websocket_s_bytes_are_passed_on_unread() -> None:
    """Nothing is parsed from 101 on, also not the rest of the same read."""
    opening = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"
    answer = EngineAnswer("GET", upgrade=True)
    assert answer.feed(opening + b"\x81\x02hi") == b"\x81\x02hi"
    assert (answer.switched, answer.feed(b"\x00-6\r\n")) == (True, b"\x00-6\r\n")
    assert (b"connection", b"upgrade") in answer.passed_headers


def test_headers_of_the_connection_stay_here() -> None:
    """The client's side has framing of its own."""
    _, answer = read(HEAD.replace(b"\r\n\r\n", b"\r\nConnection: close\r\nKeep-Alive: 5\r\nX-A: 1\r\n\r\n"), 11)
    assert answer.passed_headers == [(b"content-type", b"text/event-stream"), (b"x-a", b"1")]


def test_many_small_chunks_in_one_read_cost_no_more_than_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards other streams from an engine that sends much at once: what is left is copied once a read, not a chunk."""
    copies = []
    rest = h11.Connection.trailing_data.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(h11.Connection, "trailing_data", property(lambda http: copies.append(1) or rest(http)))
    answer = EngineAnswer("POST")
    assert (answer.feed(HEAD + b"1\r\na\r\n" * 500), answer.feed(b"1\r\nb\r\n")) == (b"a" * 500, b"b")
    assert len(copies) == 2
