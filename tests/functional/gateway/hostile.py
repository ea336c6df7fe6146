"""Engines and clients that send anything: made from seeds, so that a case can be played again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

from functional.gateway.gateways import KEY

EVENT = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
SIZES = (b"-6", b"-1", b"0x5", b"+5", b"5 5", b"ffffffffffffffff", b"g", b"", b"7fffffffffffffff", b"5;" + b"x" * 9000)


def http_chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def mutated(dice: Random, data: bytes) -> bytes:
    """Some bytes are others, missing or there twice."""
    made = bytearray(data)
    for _ in range(dice.randrange(1, 6)):
        at = dice.randrange(len(made))
        if dice.random() < 0.4:
            made[at] = dice.randrange(256)
        elif dice.random() < 0.5:
            del made[at : at + dice.randrange(1, 20)]
        else:
            made[at:at] = made[at : at + dice.randrange(1, 200)]
        made = made or bytearray(b"x")
    return bytes(made)


def long_event(dice: Random, size: int) -> Iterator[bytes]:
    """One event that does not end for a while, as the log probabilities of a long prompt make it."""
    yield CHUNKED
    end = dice.choice((b"\n\n", b"\r\n\r\n", b""))
    for _ in range(size >> 16):
        yield http_chunk(b'{"usage":{' * 6553)
    yield http_chunk(end) if end else b""
    yield b"0\r\n\r\n"


def tiny_chunks(dice: Random, size: int) -> Iterator[bytes]:
    yield CHUNKED
    for _ in range(max(size >> 19, 1)):
        yield http_chunk(dice.choice((b"\n", b"d", b"\r", b"{"))) * 9000
    yield b"0\r\n\r\n"


def odd_size(dice: Random, size: int) -> Iterator[bytes]:
    yield CHUNKED + http_chunk(EVENT) + dice.choice(SIZES) + b"\r\nhello\r\n"
    yield http_chunk(EVENT) * 20


def endless_head(dice: Random, size: int) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    for _ in range(max(size >> 14, 40)):
        yield dice.choice((b"X-A: b\r\n", b"x" * 9, b"HTTP/1.1 100 Continue\r\n\r\n")) * 1000


def odd_answer(dice: Random, size: int) -> Iterator[bytes]:
    body = b'{"choices": [], "usage": {"prompt_tokens": 1e999, "completion_tokens": %b}}' % (b"9" * 400)
    whole = dice.choice((CHUNKED + http_chunk(EVENT) * 9 + b"0\r\n\r\n", PLAIN % len(body) + body))
    made = mutated(dice, whole) if dice.random() < 0.7 else whole[: dice.randrange(len(whole))]
    while made:
        step = dice.randrange(1, 400)
        yield made[:step]
        made = made[step:]


def silence(dice: Random, size: int) -> Iterator[bytes]:
    if dice.random() < 0.5:
        yield CHUNKED[: dice.randrange(len(CHUNKED))]


ANSWERS: tuple[Callable[[Random, int], Iterator[bytes]], ...] = (
    long_event,
    tiny_chunks,
    odd_size,
    endless_head,
    odd_answer,
    odd_answer,
    silence,
)


def request(body: bytes, model: str = "bad", more: bytes = b"", key: str = KEY) -> bytes:
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n".encode()
    return head + more + b"Content-Length: %d\r\n\r\n" % len(body) + body


def chat_body(model: str) -> bytes:
    return b'{"model": "%b", "stream": true, "messages": []}' % model.encode()


def questions(dice: Random, size: int) -> Iterator[bytes]:
    """The bytes that one client sends."""
    plain, upgrade = (
        request(chat_body("bad")),
        b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n",
    )
    chunks = plain.split(b"Content-Length")[0] + b"Transfer-Encoding: chunked\r\n\r\n"
    bodies = (
        b"[" * 100_000,
        b'{"a":' * 30_000,
        b'{"model": "bad", "n": 1e999}',
        b"{" + b'"k":"v",' * 20_000,
        b'{"model": ' + b"9" * 5000 + b"}",
        b'{"model": "' + b"\\" * 9000,
        bytes(dice.randrange(256) for _ in range(900)),
    )
    realtime = b"GET /v1/realtime?model=bad HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + KEY.encode() + b"\r\n"
    kinds = (
        plain,
        plain,
        plain,
        mutated(dice, plain),
        request(dice.choice(bodies)),
        chunks + http_chunk(chat_body("bad")) + dice.choice(SIZES) + b"\r\nx\r\n",
        chunks + http_chunk(b"x") * 5000,
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 30_000,
        request(chat_body("bad"), more=upgrade),
        realtime + upgrade + b"\r\n" + bytes(dice.randrange(256) for _ in range(500)),
        request(b"x" * 150_000, more=b"Content-Type: multipart/form-data; boundary=b\r\n"),
        plain[: dice.randrange(len(plain))],
        request(chat_body("bad"), key=dice.choice(("", "x", "\xff" * 90))),
    )
    made = dice.choice(kinds)
    while made:
        step = dice.choice((1 << 16, 1 << 16, dice.randrange(1, 300)))
        yield made[:step]
        made = made[step:]


async def send_parts(writer: asyncio.StreamWriter, parts: Iterator[bytes]) -> None:
    for part in parts:
        writer.write(part)
        await writer.drain()


class Hostile:
    """An engine that plays another odd answer each time. size: bytes of the longest event."""

    def __init__(self, size: int) -> None:
        self.dice, self.size = Random(0), size

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        dice = Random(self.dice.random())
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            if dice.random() < 0.9:
                await reader.readuntil(b"\r\n\r\n")
            await send_parts(writer, dice.choice(ANSWERS)(dice, self.size))
            if dice.random() < 0.2:
                await asyncio.sleep(0.2)
        if dice.random() < 0.3:
            writer.transport.abort()
        writer.close()


async def send_and_read(folder: Path, parts: Iterator[bytes], most: int = 1 << 30) -> bytes:
    """Send that to the gateway's own socket and return what comes until it closes, at most so many bytes."""
    place = os.open(folder, os.O_PATH)  # a socket's own path may have no more than 107 bytes
    try:
        reader, writer = await asyncio.open_unix_connection(f"/proc/self/fd/{place}/service.sock")
    finally:
        os.close(place)
    got = b""
    try:
        with suppress(OSError):
            await send_parts(writer, parts)
        while len(got) < most and (piece := await reader.read(1 << 16)):
            got += piece
    finally:
        writer.transport.abort()
    return got


async def run_hostile_client(folder: Path, seed: int, size: int) -> None:
    """One hostile client, which may leave at any moment."""
    dice = Random(seed)
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(dice.choice((0.02, 0.3, 3.0))):
            await send_and_read(folder, questions(dice, size), dice.choice((1, 5000, 1 << 30)))
