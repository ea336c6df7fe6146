"""A server that answers like an OpenAI-compatible one, but lacks what it is asked to lack, and fails when asked to."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "odd-one"
PIECE = 0.002


@dataclass
class OddServer:
    """The server's behaviour.

    usage: whether streams have it. refused: fields that it answers with 400. away: how many requests it sends away at
    first with `retry_after`; late_away: the same, of those that are measured. too_long: answers 400 to prompts of more
    characters. dies: after so many measured requests it answers nothing any more; closes: after so many of any kind.
    html: it answers every request with a page; page_after: from so many on. huge: bytes of an answer
    to a one-word instruction. drips: such an answer comes a byte a second.
    """

    usage: bool = True
    tokenize: bool = False
    key: str = ""
    refused: tuple[str, ...] = ()
    away: int = 0
    late_away: int = 0
    retry_after: str = "1"
    too_long: int = 0
    dies: int = -1
    closes: int = -1
    html: bool = False
    page_after: int = -1
    huge: int = 0
    drips: bool = False
    models: tuple[str, ...] = (MODEL,)
    port: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def measured(body: dict[str, Any]) -> bool:
    """True for a request of the tests' small workload; probes and counts of tokens look otherwise."""
    return body["max_tokens"] == 8 and str(body["messages"][0]["content"]).startswith("Case")


@contextmanager
def served(odd: OddServer) -> Iterator[OddServer]:
    handler = type("Handler", (_Handler,), {"odd": odd})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    odd.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield odd
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    odd: OddServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        if self._closed():
            return
        if self.path == "/v1/models":
            self._json(200, {"data": [{"id": name} for name in self.odd.models]})
        else:
            self._json(404, {"error": "not here"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self._closed():
            return
        if self.path == "/tokenize" and self.odd.tokenize:
            self._json(200, {"count": len(body["prompt"].split()), "tokens": body["prompt"].split()})
        elif self.path != "/v1/chat/completions":
            self._json(404, {"error": "not here"})
        else:
            self._answer(body)

    def _closed(self) -> bool:
        """True if the request is not answered: it died, or it wants another key."""
        odd = self.odd
        if 0 <= odd.dies < sum(map(measured, odd.asked)) or 0 <= odd.closes < len(odd.asked):
            self.close_connection = True
            return True
        if odd.html or 0 <= odd.page_after < len(odd.asked):
            self._page()
            return True
        given = self.headers.get("authorization", "")
        odd.keys.append(given)
        if odd.key and given != f"Bearer {odd.key}":
            self._json(401, {"error": {"message": "who are you?"}})
            return True
        return False

    def _answer(self, body: dict[str, Any]) -> None:
        odd = self.odd
        odd.asked.append(body)
        number, late = len(odd.asked), sum(map(measured, odd.asked))
        wrong = [name for name in odd.refused if name in body or name in body.get("stream_options", {})]
        length = sum(len(message["content"]) for message in body["messages"])
        if number <= odd.away or (measured(body) and late <= odd.late_away):
            self._json(429, {"error": {"message": "slow down"}}, {"Retry-After": odd.retry_after})
        elif wrong:
            self._json(400, {"error": {"message": f"Extra inputs are not permitted: {wrong[0]}"}})
        elif odd.too_long and length > odd.too_long:
            self._json(400, {"error": {"message": f"maximum context length is {odd.too_long // 4} tokens"}})
        elif odd.drips and str(body["messages"][0]["content"]).startswith("Reply"):
            self._drip()
        elif odd.huge and "Reply" in str(body["messages"][0]["content"]):
            self._json(200, {"choices": [{"message": {"content": "x" * odd.huge}, "finish_reason": "stop"}]})
        elif body.get("stream"):
            self._stream(body)
        else:
            self._json(200, {"choices": [{"message": {"content": "x"}}], "usage": self._usage(length, 1)})

    def _drip(self) -> None:
        """Never whole while anybody waits for it."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "9999")
        self.end_headers()
        try:
            while True:
                self.wfile.write(b" ")
                self.wfile.flush()
                time.sleep(1.0)
        except OSError:
            self.close_connection = True

    def _stream(self, body: dict[str, Any]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        length = sum(len(message["content"]) for message in body["messages"])
        for _ in range(body["max_tokens"]):
            time.sleep(PIECE)
            self._event({"choices": [{"index": 0, "delta": {"content": "word "}, "finish_reason": None}]})
        last: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}
        self._event(last)
        if self.odd.usage and body.get("stream_options"):
            self._event({"choices": [], "usage": self._usage(length, body["max_tokens"])})
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _usage(self, length: int, made: int) -> dict[str, int]:
        prompt = max(length // 5, 1)
        return {"prompt_tokens": prompt, "completion_tokens": made, "total_tokens": prompt + made}

    def _event(self, body: dict[str, Any]) -> None:
        self._chunk(b"data: " + json.dumps(body).encode() + b"\n\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _page(self) -> None:
        content = b"<!doctype html><html><body>Welcome</body></html>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _json(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
