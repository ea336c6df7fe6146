"""Connections: kept, closed, raced, refused, secured; and every phase has an end."""

import asyncio
import ssl
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from fakes.ports import free_port
from functional.load.playing import played, send_requests
from functional.load.truth import (
    CLOSE,
    HEAD,
    LAST,
    ROLE,
    ScriptStep,
    SeenRequest,
    chunked,
    delta_event,
    ending,
    plain_answer,
    sse_event,
    steady,
    truth_server,
)
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import LoadJob, Session, Turn
from sparkwright.domain.workload import Pace

QUICK = steady(2, 0.01, 0.01)


async def test_connections_are_kept() -> None:
    """Twenty requests on four streams take four connections, opened before the first is sent."""
    async with truth_server(QUICK) as server:
        rows, _ = await send_requests(server.url, count=20, streams=4)
    assert server.connections == 4
    assert [row.error for row in rows] == [""] * 20


async def test_a_server_that_closes_after_each_answer() -> None:
    """Connection: close, with a length, with chunks, and with neither (the end is the end of the connection)."""
    text = sse_event({"choices": [{"index": 0, "delta": {"content": "a"}}]})
    whole = (
        text + sse_event({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 1}}) + sse_event("[DONE]")
    )
    head = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n"
    answers = [
        [
            ScriptStep(0.0, head + b"content-length: %d\r\n\r\n" % len(whole)),
            ScriptStep(0.05, whole),
            ScriptStep(0.1, CLOSE),
        ],
        [
            ScriptStep(0.0, head + b"transfer-encoding: chunked\r\n\r\n" + chunked(whole) + b"0\r\n\r\n"),
            ScriptStep(0.1, CLOSE),
        ],
        [ScriptStep(0.0, head + b"\r\n"), ScriptStep(0.05, whole), ScriptStep(0.1, CLOSE)],
    ]
    async with truth_server(lambda seen: answers[seen.number % 3]) as server:
        rows, _ = await send_requests(server.url, count=6)
    assert [(row.error, row.output_tokens) for row in rows] == [("", 1)] * 6
    assert server.connections == 6


async def test_the_end_may_come_in_two_reads() -> None:
    """The last chunk is cut anywhere, and the next request goes out all the same."""
    whole = chunked(ROLE, delta_event(content="a")) + ending(1)

    def script(seen: SeenRequest) -> list[ScriptStep]:
        cut = len(whole) - 1 - seen.number
        return [ScriptStep(0.0, HEAD + whole[:cut]), ScriptStep(0.05, whole[cut:])]

    async with truth_server(script) as server:
        rows, _ = await send_requests(server.url, count=7)
    assert [row.error for row in rows] == [""] * 7
    assert server.connections == 1


async def test_text_that_looks_like_the_end() -> None:
    """A chunk that ends in `0` and the end of a line is not the end of the answer."""
    odd = b"data: 0\r\n"
    script = [
        ScriptStep(0.0, HEAD),
        ScriptStep(0.05, b"%x\r\n%s\r\n" % (len(odd), odd)),
        ScriptStep(0.3, chunked(b"\r\n", delta_event(content="a")) + ending(1)),
    ]
    async with truth_server(lambda _: script) as server:
        (row,), _ = await send_requests(server.url)
    assert (row.error, row.output_tokens) == ("", 1)


async def test_a_closed_connection_is_not_the_requests_fault() -> None:
    """The server closes an idle connection as the next request is on its way: sent once more, on a fresh one."""

    def script(seen: SeenRequest) -> list[ScriptStep]:
        first_here = sum(one.connection == seen.connection for one in server.seen) == 1
        return list(QUICK(seen)) if first_here else [ScriptStep(0.0, CLOSE)]

    async with truth_server(script) as server:
        rows, _ = await send_requests(server.url, count=4)
    assert [row.error for row in rows] == [""] * 4
    assert len(server.seen) == 7 and server.connections == 4


async def test_a_fresh_connection_that_breaks_is_a_failure() -> None:
    """Nothing is sent again in silence where it could hide a broken server."""
    async with truth_server(lambda _: [ScriptStep(0.05, CLOSE)]) as server:
        (row,), _ = await send_requests(server.url)
    assert row.kind in ("cut", "reset") and len(server.seen) == 1


async def test_streams_cut_in_the_middle() -> None:
    """An answer without its last chunk is cut, however many tokens came; its parts keep their times."""
    begun = [ScriptStep(0.0, HEAD), ScriptStep(0.05, chunked(ROLE, delta_event(content="a"))), ScriptStep(0.1, CLOSE)]
    whole_but_unfinished = [ScriptStep(0.0, HEAD), ScriptStep(0.05, chunked(delta_event(content="a")) + b"0\r\n\r\n")]
    async with truth_server(lambda seen: (begun, whole_but_unfinished)[seen.number]) as server:
        rows, _ = await send_requests(server.url, count=2)
    assert [row.kind for row in rows] == ["cut", "cut"]
    assert all(row.first is not None and row.output_tokens is None for row in rows)


async def test_answers_that_end_early_are_no_short_answers() -> None:
    """A proxy ends a cut stream in order, and a server that goes down reports `abort`: neither is a quick answer.

    With usage in every chunk both have tokens that could be counted.
    """
    begun = chunked(delta_event(usage=1, content="a"))
    ends = (begun + LAST, begun + chunked(delta_event("abort", usage=1)) + ending(1))
    async with truth_server(lambda seen: [ScriptStep(0.0, HEAD + ends[seen.number])]) as server:
        rows, _ = await send_requests(server.url, count=2)
    assert [row.kind for row in rows] == ["cut", "aborted"]
    assert "finish_reason abort" in rows[1].error


SILENT = [ScriptStep(0.0, HEAD), ScriptStep(0.02, chunked(delta_event(content="a"))), ScriptStep(5.0, b"")]


@pytest.mark.parametrize(
    ("steps", "limits", "kind"),
    [
        ([ScriptStep(5.0, b"")], {"first_byte": 0.3}, "no-answer"),
        (SILENT, {"silence": 0.3}, "silence"),
        (SILENT, {"whole": 0.4}, "time-up"),
    ],
)
async def test_every_phase_has_an_end(steps: Sequence[ScriptStep], limits: dict[str, float], kind: str) -> None:
    """No answer, no more of it, no end of the level: a row with the reason, in time."""
    async with truth_server(lambda _: steps) as server, asyncio.timeout(60.0):
        rows, _ = await send_requests(server.url, count=2, streams=2, **limits)
    assert [row.kind for row in rows] == [kind, kind]


async def test_nobody_there() -> None:
    """A port where nothing listens, and a name that is none."""
    rows, _ = await send_requests(f"http://127.0.0.1:{free_port()}/v1/chat/completions", count=3)
    assert [row.kind for row in rows] == ["refused"] * 3 and "ECONNREFUSED" in rows[0].error
    (row,), _ = await send_requests("http://no-such-host.invalid/v1/chat/completions")
    assert row.kind == "unknown-host" and "no-such-host" in row.error


async def test_a_url_that_is_none() -> None:
    """Reported before anything is sent."""
    with pytest.raises(UsageError, match="ftp://x"):
        await send_requests("ftp://x/v1")


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
async def test_a_server_that_asks_for_patience(status: str) -> None:
    """The row holds how long it asked for; nothing is sent again behind the user's back."""
    async with truth_server(lambda _: plain_answer(status, {"error": "slow down"}, "retry-after: 7")) as server:
        (row,), _ = await send_requests(server.url)
    assert (row.kind, row.retry_after, row.error) == (f"http-{status[:3]}", 7.0, "slow down")
    assert len(server.seen) == 1


async def test_answers_that_are_no_stream() -> None:
    """A web page, JSON in place of a stream, and something that is not HTTP: each reported in a row."""
    page = [ScriptStep(0.0, b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\n<a/>")]
    answers = [
        page,
        plain_answer("200 OK", {"choices": []}),
        [ScriptStep(0.0, b"SSH-2.0-OpenSSH_9.6\r\n")],
        plain_answer("401 No", {"error": "Unauthorized"}),
    ]
    async with truth_server(lambda seen: answers[seen.number]) as server:
        rows, _ = await send_requests(server.url, count=4)
    assert [row.kind for row in rows] == ["no-stream", "no-stream", "bad-http", "http-401"]
    assert "text/html" in rows[0].error and rows[3].error == "Unauthorized"


async def test_the_key_and_large_bodies() -> None:
    """8 MB of prompt arrive whole, with the key; `sent` is when the last of it was given away."""
    large = "x" * (8 << 20)
    async with truth_server(QUICK) as server:
        asked = LoadJob(server.url, (Session(0, (Turn(large, "", ""),)),), Pace(), whole=30.0)
        (row,), _ = await played(asked, Secret("sesame"))
    assert row.error == "" and server.seen[0].body == large.encode()
    assert "authorization: bearer sesame" in server.seen[0].head.lower()
    assert "accept-encoding" not in server.seen[0].head.lower()


async def test_an_answer_before_the_request_is_whole() -> None:
    """A server that refuses a large body while it comes in: its message is reported, not a broken pipe."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(plain_answer("413 Too Large", {"error": "too large"})[0].sent)
        await asyncio.sleep(0.3)
        writer.transport.abort()
        gone.set()

    gone = asyncio.Event()
    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    large = Session(0, (Turn("x" * (32 << 20), "", ""),))
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/chat/completions"
    (row,), _ = await played(LoadJob(url, (large,), Pace(), whole=30.0))
    await gone.wait()
    server.close()
    assert (row.kind, row.error) == ("http-413", "too large")


async def test_ipv6_and_localhost() -> None:
    """An address in brackets; a name with two addresses of which one is dead."""
    async with truth_server(QUICK, host="::1") as server:
        rows, _ = await send_requests(server.url, count=2)
        assert [row.error for row in rows] == ["", ""] and f"host: [::1]:{server.port}" in server.seen[0].head.lower()
    async with truth_server(QUICK) as server:
        rows, _ = await send_requests(server.url.replace("127.0.0.1", "localhost"), count=3, streams=2)
        assert [row.error for row in rows] == [""] * 3


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    named = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    subprocess.run([*made, *named, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return key, cert


async def test_tls(certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """https with an authority that the system knows works like http; with one that it does not, it reports it."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate[1], certificate[0])
    async with truth_server(steady(4, 0.05, 0.02), secure=context) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        refused, _ = await send_requests(url, count=1)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[1]))
        rows, _ = await send_requests(url, count=8, streams=4)
    assert refused[0].kind == "tls" and "certificate" in refused[0].error.lower()
    assert [(row.error, row.output_tokens, sum(row.reads.tokens)) for row in rows] == [("", 4, 4)] * 8


async def test_simulated_is_reported() -> None:
    """The header of a simulated server is in every row."""
    head = HEAD.replace(b"\r\n\r\n", b"\r\nX-Sparkwright-Simulated: 1\r\n\r\n")
    async with truth_server(
        lambda _: [ScriptStep(0.0, head + chunked(delta_event(content="a")) + ending(1))]
    ) as server:
        (row,), _ = await send_requests(server.url)
    assert row.simulated and row.error == ""
