"""An OpenAI-compatible server that no engine of ours is, with a fault on request: `odd_server.py --port N [--fault F]`.

Faults: silent (prints nothing), background (leaves its terminal and ends), html (its health page is for people), open
(listens on all addresses), broken (ends at once).
"""

import argparse
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class OddHandler(BaseHTTPRequestHandler):
    fault = ""
    protocol_version = "HTTP/1.1"

    def answer(self, body: bytes, kind: str = "application/json") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            self.answer(json.dumps({"object": "list", "data": [{"id": "odd", "object": "model"}]}).encode())
        elif self.fault == "html":
            self.answer(b"<!DOCTYPE html><html><body>hello</body></html>", "text/html")
        else:
            self.answer(b'{"status": "ok"}')

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
        head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "odd"}
        if not asked.get("stream"):
            choice = {"index": 0, "message": {"role": "assistant", "content": "odd four"}, "finish_reason": "stop"}
            self.answer(json.dumps({**head, "choices": [choice], "usage": usage}).encode())
            return
        parts = [{"role": "assistant", "content": "odd"}, {"content": " four"}]
        events = [{**head, "choices": [{"index": 0, "delta": part, "finish_reason": None}]} for part in parts]
        events.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        events.append({**head, "choices": [], "usage": usage})
        text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
        self.answer(text.encode(), "text/event-stream")

    def log_message(self, *words: object) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--fault", default="")
    given = parser.parse_args()
    if given.fault == "broken":
        sys.exit("error: the odd model file is corrupt")
    if given.fault != "silent":
        print("odd: loading", flush=True)
    if given.rank:
        time.sleep(3600)
    if given.fault == "background" and os.fork():
        os._exit(0)
    if given.fault == "background":
        os.setsid()
    OddHandler.fault = given.fault
    server = ThreadingHTTPServer(("0.0.0.0" if given.fault == "open" else given.host, given.port), OddHandler)
    if given.fault != "silent":
        print(f"odd: listening on port {given.port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
