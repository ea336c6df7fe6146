"""Starts the real SGLang with each row of a file of predictions and compares the KV tokens, one start at a time.

    python tools/gpu/kv_tokens.py predict --rows ROWS --gpu "NVIDIA H200" --gpu-mib 143771 --out predicted.json
    python tools/gpu/kv_sglang.py --rows ROWS --predicted predicted.json --python /opt/sglang/bin/python --out OUT

The figures are older than the starts: a row without a prediction is refused. A start imports for 25 s and has the GPU
for 5 s, so --ahead of them are kept stopped (SIGSTOP) where they would first look at its memory, and go on one after
the other, each when the GPU is empty. OUT gets one log a start and results.jsonl, as of kv_tokens.py.
"""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from kv_tokens import config_of, line_of, result, rows_of

PARKED, LAST = "Init parallel begin", "max_total_num_tokens="
LONGEST, EMPTY_MIB = 60.0, 64
# Graphs are captured after the pool has its size, and take longer than all else.
WORDS = "-m sglang.launch_server --load-format dummy --skip-tokenizer-init --sampling-backend pytorch "
WORDS += "--cuda-graph-backend-prefill disabled --cuda-graph-backend-decode disabled --skip-server-warmup"


def options_of(row: dict[str, Any]) -> list[str]:
    """SGLang's own words for the row's keys of `serving` and its flags."""
    given, names = row["arguments"], {"memory_fraction": "mem-fraction-static", "context": "context-length"}
    names |= {"sequences": "max-running-requests", "batched_tokens": "chunked-prefill-size"}
    names |= {"kv_dtype": "kv-cache-dtype"}
    told = {names[key]: value for key, value in given.items()} | row.get("flags", {})
    return [word for name, value in told.items() for word in (f"--{name}", *([] if value is True else [str(value)]))]


class ParkedStart:
    """One start in a session of its own, stopped before it looks at the GPU until it may go on."""

    def __init__(self, args: argparse.Namespace, row: dict[str, Any]) -> None:
        self.row, self.lines = row, list[str]()
        self.folder = tempfile.TemporaryDirectory()
        (Path(self.folder.name) / "config.json").write_text(config_of(row))
        self.words = [*WORDS.split(), "--port", str(31000 + 10 * row["number"]), *options_of(row)]
        self.words += ["--model-path", self.folder.name]
        self.allowed = self.stopped = False
        self.lock, self.ended = threading.Lock(), threading.Event()
        self.process = subprocess.Popen(
            [*shlex.split(args.python), *self.words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line.decode(errors="replace"))
            if PARKED in self.lines[-1]:
                self._park()
            if LAST in self.lines[-1]:
                break
        self.ended.set()

    def _park(self) -> None:
        with self.lock, suppress(ProcessLookupError):
            if not self.allowed:
                os.killpg(self.process.pid, signal.SIGSTOP)
                self.stopped = True

    def log(self) -> str:
        """Lets it go on; its log up to the last figure. All of its processes are gone then."""
        with self.lock, suppress(ProcessLookupError):
            self.allowed = True
            os.killpg(self.process.pid, signal.SIGCONT)
        self.ended.wait(LONGEST)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        text = "".join(self.lines).replace(self.folder.name, "/models/row")
        self.folder.cleanup()
        return "$ python3 " + shlex.join(self.words).replace(self.folder.name, "/models/row") + "\n" + text


def used_mib() -> int:
    query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    return int(subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0])


def wait_until_empty(before: int) -> int:
    """The driver frees a process's memory after the process has gone; MiB in use then."""
    for _ in range(60):
        if (used := used_mib()) <= before + EMPTY_MIB:
            break
        time.sleep(0.25)
    return used


def parked_starts(args: argparse.Namespace, rows: list[dict[str, Any]]) -> Iterator[ParkedStart]:
    """Starts in order, with the next ones on their way."""
    coming, left = list[ParkedStart](), iter(rows)
    while True:
        while len(coming) <= args.ahead and (row := next(left, None)):
            coming.append(ParkedStart(args, row))
        if not coming:
            return
        yield coming.pop(0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--predicted", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--python", default=sys.executable, help="the Python that has the engine")
    parser.add_argument("--row", type=int, action="append")
    parser.add_argument("--ahead", type=int, default=4)
    args = parser.parse_args()
    predicted = json.loads(args.predicted.read_text())["rows"]
    chosen = [row for row in rows_of(args.rows) if not args.row or row["number"] in args.row]
    if missing := [row["number"] for row in chosen if str(row["number"]) not in predicted]:
        sys.exit(f"error: no prediction for rows {missing}")
    args.out.mkdir(parents=True, exist_ok=True)
    before = used_mib()
    for one in parked_starts(args, chosen):
        used, began = wait_until_empty(before), time.monotonic()
        log, row = one.log(), one.row
        found = result(row, predicted[str(row["number"])], log, time.monotonic() - began, "sglang")
        found |= {"used_mib": used, "waited": one.stopped}
        (args.out / f"{row['number']:02d}-{row['config']}.log").write_text(log)
        with (args.out / "results.jsonl").open("a") as file:
            file.write(json.dumps(found) + "\n")
        print(line_of(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
