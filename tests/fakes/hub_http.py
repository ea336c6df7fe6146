"""A real server on loopback that answers the few calls of the hub's API that a plan needs."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CONFIG = '{"num_hidden_layers": 2, "num_attention_heads": 4}'
TREE = "/api/models/org/name/tree/main?recursive=1"
RESOLVE = "/org/name/resolve/main/config.json"
Reply = tuple[int, dict[str, str], bytes]


def file(path: str, size: int) -> dict[str, Any]:
    return {"type": "file", "oid": "0" * 40, "size": size, "path": path}


FILES = [
    file("config.json", len(CONFIG)), file("model-00001-of-00002.safetensors", 5_000_000_000),
    file("model-00002-of-00002.safetensors", 2_000_000_000), file("consolidated.safetensors", 7_000_000_000),
    file("original/model.safetensors", 7_000_000_000), {"type": "directory", "oid": "1", "size": 0, "path": "original"},
]  # fmt: skip


class Server(ThreadingHTTPServer):
    """replies: path -> status, headers, body; a path that is not there is 404. sent: bytes of each body.

    ranges: whether it serves a part of a file, as the hub does.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies: dict[str, Reply | Callable[[], Reply]] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.sent: list[int] = []
        self.ranges = True
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.answer(TREE, FILES)
        self.replies[RESOLVE] = (200, {}, CONFIG.encode())

    def answer(self, path: str, data: object, **headers: str) -> None:
        self.replies[path] = (200, headers, json.dumps(data).encode())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers.get("Authorization")))
        reply = self.server.replies.get(self.path, (404, {}, b'{"error": "Entry not found"}'))
        status, headers, body = reply() if callable(reply) else reply
        wanted = self.headers.get("Range", "").removeprefix("bytes=").split("-")
        if len(wanted) == 2 and self.server.ranges and status == 200:
            status, body = 206, body[int(wanted[0]) : int(wanted[1]) + 1]
        self.server.sent.append(len(body))
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):  # a client may have read enough
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
