"""A hub for the tests: the few answers of huggingface.co that `hf download` needs. Runs on a node.

python3 hub_server.py PORT LOG: each request is a line of LOG: method, path, Authorization header. While LOG.hold exists
the last shard does not come.
"""

import hashlib
import json
import os
import random
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REVISION = "89abcdef0123456789abcdef0123456789abcdef"
MIB = 1 << 20
CONFIG = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 512}
SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]


def content(name: str) -> bytes:
    if name == "config.json":
        return json.dumps(CONFIG).encode()
    if name.endswith(".index.json"):
        return json.dumps({"weight_map": {f"layers.{n}": shard for n, shard in enumerate(SHARDS)}}).encode()
    size = 5 * MIB
    head = json.dumps({"weight": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    return len(head).to_bytes(8, "little") + head + random.Random(name).randbytes(size)


FILES = {name: content(name) for name in (*SHARDS, "config.json", "model.safetensors.index.json")}


class HubHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.note()
        path = self.path.partition("?")[0]
        if "/gated" in path:
            self.refuse(403, "GatedRepo", "Access to model acme/gated is restricted. You must ask for access.")
        elif not path.startswith(("/api/models/acme/tiny", "/acme/tiny/")):
            self.refuse(404, "RepoNotFound", "Repository not found")
        elif "/resolve/" in path:
            self.file(path.rpartition("/")[2])
        elif "/tree/" in path:
            self.reply([{"type": "file", "path": n, "size": len(b), "oid": content_etag(b)} for n, b in FILES.items()])
        else:
            self.reply({"id": "acme/tiny", "sha": REVISION, "siblings": [{"rfilename": name} for name in FILES]})

    do_HEAD = do_GET

    def note(self) -> None:
        with open(sys.argv[2], "a") as log:
            log.write(f"{self.command} {self.path} {self.headers.get('Authorization')}\n")

    def refuse(self, status: int, code: str, message: str) -> None:
        self.send({"X-Error-Code": code, "X-Error-Message": message}, json.dumps({"error": message}).encode(), status)

    def reply(self, data: object) -> None:
        self.send({"Content-Type": "application/json"}, json.dumps(data).encode())

    def file(self, name: str) -> None:
        if name not in FILES:
            self.refuse(404, "EntryNotFound", "Entry not found")
            return
        while name == SHARDS[-1] and os.path.exists(sys.argv[2] + ".hold"):
            time.sleep(0.05)
        self.send({"ETag": f'"{content_etag(FILES[name])}"', "X-Repo-Commit": REVISION}, FILES[name])

    def send(self, headers: dict[str, str], body: bytes, status: int = 200) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            for at in range(0, len(body), MIB):
                self.wfile.write(body[at : at + MIB])
                time.sleep(0.3 if len(body) > MIB else 0)  # long enough to be seen on its way

    def log_message(self, format: str, *args: object) -> None:
        return


def content_etag(body: bytes) -> str:
    return hashlib.sha1(body).hexdigest()


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), HubHandler).serve_forever()
