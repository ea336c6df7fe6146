"""Makes the starts of tests/data/starts on one GPU: what was recorded next to what the engine states now.

    python tools/gpu/starts.py [--row N ...]                                     vLLM 0.21.0
    python tools/gpu/starts.py --engine sglang --version 0.5.12 --python /opt/sglang/bin/python
    python tools/gpu/starts.py --rows new.jsonl --record out.jsonl ...           rows without figures get them

Each row in a process of its own; one after the other, as an engine measures with what the whole GPU has free. Rows with
a pinned pool start --together. --logs: a folder for the logs. vLLM wants VLLM_USE_FLASHINFER_SAMPLER=0,
VLLM_USE_DEEP_GEMM=0 and HF_HUB_OFFLINE=1, as the recording had. Exit 1 when a figure is more than 1 % off the recorded.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Timer
from typing import Any

DATA = Path(__file__).parents[2] / "tests/data"
FOLDERS = (DATA / "starts", DATA / "models")
LONGEST = 400.0
USED_MIB = 1024
FIGURES = {
    "vllm": {
        "weights_gib": r"Model loading took ([\d.]+) GiB",
        "available_gib": r"Available KV cache memory: ([\d.]+) GiB",
        "tokens": r"GPU KV cache size: ([\d,]+) tokens",
        "concurrency": r"per request: ([\d.]+)x",
        "needed_gib": r"\(([\d.]+) GiB KV cache is needed",
        "block": r"attention block size to (\d+) tokens",
        "batched_tokens": r"max_num_batched_tokens=(\d+)",
    },
    "sglang": {
        "weights_gib": r"Load weight end\..* mem usage=([\d.]+) GB",
        "k_gib": r"K size: ([\d.]+) GB",
        "v_gib": r"V size: ([\d.]+) GB",
        "kv_gib": r"KV size: ([\d.]+) GB",
        "conv_gib": r"conv_state size: ([\d.]+) ?GB",
        "ssm_gib": r"ssm_state size: ([\d.]+) ?GB",
        "tokens": r"max_total_num_tokens=(\d+)",
    },
}
# Nothing more is read after it.
LAST = {"vllm": r"per request: [\d.]+x|KV cache is needed", "sglang": r"max_total_num_tokens=\d"}
ONE = """
import json, os, sys
if __name__ == "__main__":
    from vllm import LLM
    try:
        LLM(model=sys.argv[1], load_format="dummy", skip_tokenizer_init=True, **json.loads(sys.argv[2]))
    except Exception as error:
        print(error, flush=True)
    os._exit(0)
"""
SGLANG = "-m sglang.launch_server --load-format dummy --skip-tokenizer-init --attention-backend triton "
SGLANG += "--sampling-backend pytorch --disable-cuda-graph --disable-piecewise-cuda-graph --skip-server-warmup "


def read(log: str, engine: str) -> dict[str, float]:
    """The figures that the log has; of one that is printed again, the first."""
    found = {name: re.search(pattern, log) for name, pattern in FIGURES[engine].items()}
    return {name: float(match[1].replace(",", "")) for name, match in found.items() if match}


def command(args: argparse.Namespace, row: dict[str, Any], folder: str) -> list[str]:
    python = shlex.split(args.python)
    if args.engine == "vllm":
        script = Path(folder) / "one.py"
        script.write_text(ONE)
        return [*python, str(script), folder, json.dumps({"enforce_eager": True, **row["arguments"]})]
    words = f"{SGLANG} --mem-fraction-static {row['fraction']} --context-length {row['context']} "
    words += f"--max-running-requests {row['sequences']} --port {30000 + row['number']} --model-path {folder}"
    kv = f" --kv-cache-dtype {row['kv_dtype']}" if row.get("kv_dtype") else ""
    return [*python, *(words + kv).split(), *row.get("more", "").split()]


def start(args: argparse.Namespace, row: dict[str, Any]) -> str:
    """The log of one start up to its last figure; all of its processes are gone then."""
    with tempfile.TemporaryDirectory() as folder:
        config = next(path for at in FOLDERS if (path := at / f"{row['config']}.config.json").exists())
        shutil.copy(config, Path(folder) / "config.json")
        words, lines = command(args, row, folder), list[str]()
        out = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
        late = Timer(LONGEST, os.killpg, (out.pid, signal.SIGKILL))
        late.start()
        assert out.stdout
        for line in out.stdout:
            lines.append(line.decode(errors="replace"))
            if re.search(LAST[args.engine], lines[-1]):
                break
        if out.poll() is None:
            os.killpg(out.pid, signal.SIGKILL)
        out.wait()
        late.cancel()
        given_back()
    log = "".join(lines)
    if args.logs:
        (args.logs / f"{row['number']:02d}-{row['config']}.log").write_text(shlex.join(words) + "\n" + log)
    return log


def given_back() -> None:
    """Waits until the GPU has its memory back: the driver frees it after the process has gone."""
    query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    for _ in range(40):
        if int(subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]) < USED_MIB:
            return
        time.sleep(0.5)


def start_rows(args: argparse.Namespace) -> list[dict[str, Any]]:
    path = args.rows or DATA / "starts" / f"{args.engine}-{args.version}.jsonl"
    found = [json.loads(line) | {"number": n} for n, line in enumerate(path.read_text().splitlines())]
    return [row for row in found if not args.row or row["number"] in args.row]


def compared(args: argparse.Namespace, row: dict[str, Any], log: str) -> float:
    """Prints a row's figures; the largest relative difference to what was recorded."""
    now = read(log, args.engine)
    then = {name: float(row[name]) for name in FIGURES[args.engine] if name in row}
    what = {name: value for name, value in row.items() if name not in then}
    print(f"{json.dumps(what)}\n  recorded {then}\n  now      {now}", flush=True)
    if args.record:
        with args.record.open("a") as out:
            out.write(json.dumps({name: value for name, value in (what | now).items() if name != "number"}) + "\n")
    return max((abs(now.get(name, 0.0) - value) / value for name, value in then.items()), default=0.0)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=sorted(FIGURES), default="vllm")
    parser.add_argument("--version", default="0.21.0")
    parser.add_argument("--python", default=sys.executable, help="the Python that has the engine")
    parser.add_argument("--row", type=int, action="append", help="only this line of the file, counted from 0")
    parser.add_argument("--rows", type=Path, help="another file of rows")
    parser.add_argument("--record", type=Path, help="append the rows with the figures of now")
    parser.add_argument("--logs", type=Path, help="folder for the logs")
    parser.add_argument("--together", type=int, default=1, help="starts with a pinned pool at the same time")
    args = parser.parse_args()
    if args.logs:
        args.logs.mkdir(parents=True, exist_ok=True)
    return args


def main() -> int:
    args = arguments()
    chosen = start_rows(args)
    pinned = [row for row in chosen if "kv_cache_memory_bytes" in row.get("arguments", {})]
    with ThreadPoolExecutor(args.together) as pool:
        logs = list(pool.map(lambda row: start(args, row), pinned))
    off = [compared(args, row, log) for row, log in zip(pinned, logs, strict=True)]
    off += [compared(args, row, start(args, row)) for row in chosen if row not in pinned]
    return int(max(off, default=0.0) > 0.01)


if __name__ == "__main__":
    sys.exit(main())
