"""A real server on loopback that answers the few calls of the hub's API that a plan needs."""

import json
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CONFIG = '{"num_hidden_layers": 2, "num_attention_heads": 4}'
TREE = "/api/models/org/name/tree/main?recursive=1"
RESOLVE = "/org/name/resolve/main/config.json"
FOLDER = "/org/name/resolve/main/"
MODEL = Path(__file__).parents[1] / "data" / "models" / "qwen3-8b.config.json"
INDEX = "model.safetensors.index.json"
Tensors = Mapping[str, tuple[str, int]]
Reply = tuple[int, dict[str, str], bytes]


def file_entry(path: str, size: int) -> dict[str, Any]:
    return {"type": "file", "oid": "0" * 40, "size": size, "path": path}


FILES = [
    file_entry("config.json", len(CONFIG)), file_entry("model-00001-of-00002.safetensors", 5_000_000_000),
    file_entry("model-00002-of-00002.safetensors", 2_000_000_000),
    file_entry("consolidated.safetensors", 7_000_000_000),
    file_entry("original/model.safetensors", 7_000_000_000),
    {"type": "directory", "oid": "1", "size": 0, "path": "original"},
]  # fmt: skip


class HubServer(ThreadingHTTPServer):
    """replies: path -> status, headers, body; a path that is not there is 404. sent: bytes of each body.

    ranges: whether it serves a part of a file, as the hub does.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), HubServerHandler)
        self.replies: dict[str, Reply | Callable[[], Reply]] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.sent: list[int] = []
        self.ranges = True
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.answer(TREE, FILES)
        self.replies[RESOLVE] = (200, {}, CONFIG.encode())

    def answer(self, path: str, data: object, **headers: str) -> None:
        self.replies[path] = (200, headers, json.dumps(data).encode())


class HubServerHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: HubServer

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
def serving() -> Iterator[HubServer]:
    server = HubServer()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def shard_header(tensors: Tensors) -> bytes:
    """The header and a beginning of numbers that nobody should read."""
    at, header = 0, {}
    for name, (dtype, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": [1], "data_offsets": [at, at + size]}
        at += size
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    return struct.pack("<Q", len(text)) + text


def publish_model(server: HubServer, shards: Mapping[str, Tensors], indexed: bool = True) -> None:
    """A repository of these shards."""
    bodies = {name: shard_header(tensors) for name, tensors in shards.items()}
    sizes = {name: len(bodies[name]) + sum(size for _, size in tensors.values()) for name, tensors in shards.items()}
    text = MODEL.read_bytes()
    files = [file_entry("config.json", len(text)), *(file_entry(name, size) for name, size in sizes.items())]
    server.replies[f"{FOLDER}config.json"] = (200, {}, text)
    for name, body in bodies.items():
        server.replies[FOLDER + name] = (200, {}, body)
    if indexed:
        total = sum(size for tensors in shards.values() for _, size in tensors.values())
        named = {tensor: name for name, tensors in shards.items() for tensor in tensors}
        body = json.dumps({"metadata": {"total_size": total}, "weight_map": named}).encode()
        files.append(file_entry(INDEX, len(body)))
        server.replies[FOLDER + INDEX] = (200, {}, body)
    server.answer(TREE, files)
