"""An engine that loads real files and then answers: what it takes, it takes at once, as memory on a GPU is taken.

It reads its shard again and again, as a loader does whose ranks and drafter each read all files. HOLD: MiB that stay;
GROW: MiB more, taken while it reads; TURNS: how often it reads.
"""

import glob
import json
import mmap
import os
import random
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer

HOLD, GROW, TURNS = (int(word) for word in Path("/tmp/engine").read_text().split())
MIB, BLOCK, THREADS = 1 << 20, 64 << 10, 8
held: list[mmap.mmap] = []


def take_memory(size: int) -> None:
    held.append(mmap.mmap(-1, size * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE))


def read(path: str, turn: int) -> None:
    """Every block once, in an order of its own."""
    places = list(range(0, os.path.getsize(path), BLOCK))
    random.Random(turn).shuffle(places)

    def work() -> None:
        buffer = [bytearray(BLOCK)]
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
        while places:
            try:
                os.preadv(fd, buffer, places.pop())
            except IndexError:
                break
        os.close(fd)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class EngineAnswers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        models = {"object": "list", "data": [{"id": "tiny", "object": "model", "max_model_len": 2048}]}
        self.reply(models if self.path == "/v1/models" else {"version": "0.21.0"})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = {"role": "assistant", "content": "Paris is a city."}
        usage = {"prompt_tokens": 8, "completion_tokens": 5, "total_tokens": 13}
        choice = {"index": 0, "message": text, "delta": text, "text": text["content"], "finish_reason": "stop"}
        answer = {"id": "1", "object": "chat.completion", "model": "tiny", "choices": [choice], "usage": usage}
        self.reply(answer, bool(asked.get("stream")))

    def reply(self, answer: Mapping[str, object], stream: bool = False) -> None:
        body = json.dumps(answer).encode()
        body = b"data: " + body + b"\n\ndata: [DONE]\n\n" if stream else body
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if stream else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


began = time.monotonic()
print("(Worker_TP0 pid=1) INFO 11-21 09:01:57 [gpu_model_runner.py:4857] Starting to load model m...", flush=True)
take_memory(HOLD)
(shard,) = glob.glob(os.path.expanduser("~/models/tiny/*.safetensors"))
for turn in range(TURNS):
    read(shard, turn)
    if GROW:
        take_memory(GROW // TURNS)
    print(f"INFO 11-21 09:02:07 [twin.py:1] turn {turn + 1} of {TURNS}: {time.monotonic() - began:.0f} s", flush=True)
print("INFO 11-21 09:02:27 [default_loader.py:397] Loading weights took 20.00 seconds", flush=True)
server = ThreadingTCPServer(("0.0.0.0", 8000), EngineAnswers)  # of http.server, it would first ask DNS for its name
print("INFO:     Application startup complete.", flush=True)
server.serve_forever()
