"""Finds what lets an unpacked SGLang start on this machine: `smoke.py --python PYTHON --model MODEL --out OUT`.

Starts it with the engine's own choices first, then with fewer kernels, until one start answers. Prints the options of
that start, one line, and writes the logs to OUT. Exit 1 when none answers.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

PORT = 30100
ATTEMPTS = (
    "",
    "--cuda-graph-backend-prefill disabled",
    "--cuda-graph-backend-prefill disabled --attention-backend triton",
    "--cuda-graph-backend-prefill disabled --cuda-graph-backend-decode disabled --attention-backend triton",
)


def answers(url: str) -> bool:
    body = json.dumps({"model": "m", "prompt": "Hello", "max_tokens": 8}).encode()
    request = urllib.request.Request(f"{url}/v1/completions", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return bool(json.load(reply)["choices"])
    except (OSError, ValueError, KeyError):
        return False


def attempt(args: argparse.Namespace, number: int, options: str) -> bool:
    """True if the server answers within the limit."""
    words = [args.python, "-m", "sglang.launch_server", "--model-path", str(args.model), "--served-model-name", "m"]
    words += ["--load-format", "dummy", "--sampling-backend", "pytorch", "--mem-fraction-static", "0.3"]
    words += [
        "--max-total-tokens",
        "65536",
        "--context-length",
        "32768",
        "--port",
        str(PORT + number),
        *options.split(),
    ]
    began = time.monotonic()
    with (args.out / f"smoke-{number}.log").open("w") as log:
        server = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        good = False
        while not good and server.poll() is None and time.monotonic() - began < args.limit:
            good = answers(f"http://127.0.0.1:{PORT + number}")
            time.sleep(0.5)
    print(f"attempt {number} [{options}]: {good} after {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGKILL)
    server.wait()
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--limit", type=float, default=150.0, help="seconds for an attempt")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for number, options in enumerate(ATTEMPTS):
        if attempt(args, number, options):
            print(options)
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
