"""Servers that answer with errors: `hub.py hub KIND PORT`, `hub.py registry STATUS PORT`, `hub.py status STATUS PORT`.

hub is a model hub with one repository, org/tiny (config.json and model.safetensors), that fails as KIND names.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONFIG = b'{"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}\n'
WEIGHTS = bytes(range(256)) * 4096
ETAG = hashlib.sha256(WEIGHTS).hexdigest()
REASONS = {
    "401": (401, {"X-Error-Message": "Invalid credentials in Authorization header"}),
    "gated": (403, {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access to model org/tiny is restricted and you are not in the authorized list. Visit https://hub.example/org/tiny to ask for access."}),  # noqa: E501
    "gated-401": (401, {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access to model org/tiny is restricted. You must have access to it and be authenticated to access it. Please log in."}),  # noqa: E501
    "404": (404, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}),
    "revision": (404, {"X-Error-Code": "RevisionNotFound", "X-Error-Message": "Invalid rev id: v9"}),
    "entry": (404, {"X-Error-Code": "EntryNotFound", "X-Error-Message": "Entry not found"}),
    "disabled": (403, {"X-Error-Code": "DisabledRepo", "X-Error-Message": "Access to this resource is disabled."}),
    "429": (429, {"Retry-After": "1", "X-Error-Message": "We had to rate limit you, you hit the quota of 1000 api requests per 5 minutes period."}),  # noqa: E501
    "500": (500, {"X-Error-Message": "Internal Error - We're working hard to fix this as soon as possible!"}),
    "502": (502, {}), "503": (503, {}), "504": (504, {}),
}  # fmt: skip
REGISTRY = {
    "401": ("UNAUTHORIZED", "authentication required"),
    "404": ("MANIFEST_UNKNOWN", "manifest unknown"),
    "429": ("TOOMANYREQUESTS", "You have reached your unauthenticated pull rate limit. https://www.docker.com/increase-rate-limit"),
    "503": ("UNAVAILABLE", "service unavailable"),
}  # fmt: skip


class OddHub(BaseHTTPRequestHandler):
    kind = ""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        if self.kind in REASONS:
            status, headers = REASONS[self.kind]
            return self.answer(status, headers, b"" if status < 500 else b"<html><h1>Bad gateway</h1></html>")
        if self.kind == "html":
            page = b"<!DOCTYPE html><html><head><title>Sign in to Guest WiFi</title></head></html>"
            return self.answer(200, {"Content-Type": "text/html"}, page)
        if self.kind == "stall" and "resolve" in self.path and self.command == "GET":
            time.sleep(60)
        if "/tree/" in self.path:
            sizes = {"config.json": len(CONFIG), "model.safetensors": len(WEIGHTS)}
            tree = [{"type": "file", "path": name, "size": size, "oid": "0" * 40} for name, size in sizes.items()]
            return self.answer(200, {}, json.dumps(tree).encode())
        if self.path.startswith("/api/models/org/tiny"):
            files = [{"rfilename": "config.json"}, {"rfilename": "model.safetensors"}]
            return self.answer(200, {}, json.dumps({"id": "org/tiny", "sha": COMMIT, "siblings": files}).encode())
        return self.file()

    def file(self) -> None:
        content = CONFIG if self.path.endswith("config.json") else WEIGHTS
        etag = ETAG if content is WEIGHTS else hashlib.sha1(content).hexdigest()
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        if self.kind == "no-commit":
            del headers["X-Repo-Commit"]
        length = len(content)
        if content is WEIGHTS and self.command == "GET":
            content = {"cut": content[: length // 2], "longer": content + content}.get(self.kind, content)
        length = len(content) if self.kind == "longer" else length
        self.answer(200, headers, content, length)

    def answer(self, status: int, headers: dict[str, str], body: bytes, length: int | None = None) -> None:
        self.send_response(status)
        for name, value in ({"Content-Type": "application/json"} | headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)
        if length is not None and length != len(body):
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None: ...


class Registry(OddHub):
    def do_GET(self) -> None:
        if self.path == "/v2/" and self.kind != "401":
            return self.answer(200, {}, b"{}")
        code, message = REGISTRY[self.kind]
        headers = {"WWW-Authenticate": 'Basic realm="spark"'} if self.kind == "401" else {}
        body = json.dumps({"errors": [{"code": code, "message": message, "detail": None}]}).encode()
        return self.answer(int(self.kind), headers, body)


class Status(OddHub):
    def do_GET(self) -> None:
        self.answer(int(self.kind), {"Server": "squid/5.7"}, b"<html><h1>ERROR: Access Denied</h1></html>")


def main(words: list[str]) -> int:
    handler = {"hub": OddHub, "registry": Registry, "status": Status}[words[0]]
    handler.kind = words[1]
    ThreadingHTTPServer(("0.0.0.0", int(words[2])), handler).serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
