"""Predicts the KV cache of many models, then starts each with the real vLLM and compares.

    python tools/gpu/kv_tokens.py predict --gpu-mib 81559 --out predicted.json
    python tools/gpu/kv_tokens.py start --predicted predicted.json --gpus 0,1 --out OUT

`predict` needs no GPU. `start` needs the real vLLM (--python) and refuses a row without a prediction, so that the
figures are older than the start. Rows with a pinned pool start several at a time; the others one at a time on each GPU,
because the engine measures what the whole GPU has free. OUT gets one log a start and results.jsonl, a line as each
start ends; `python tools/gpu/kv_tokens.py table OUT/results.jsonl` prints both figures.
"""

import argparse
import json
import os
import queue
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from starts import LAST, ONE, read

DATA = Path(__file__).parents[2] / "tests/data" / "starts"
FOLDERS = (DATA, DATA.parent / "models")
CLASSES = DATA.parent / "models/classes.jsonl"
ENGINE = "vllm"
LONGEST = 200.0
EMPTY_MIB = 1024
# The import takes as long as the start: it may happen while the start before it has the GPU.
WAIT = "import sys\nif __name__ == '__main__':\n    from vllm import LLM\n    sys.stdin.read()\n"
_ERROR = re.compile(r"\b\w*(?:Error|Exception)\b: .{0,300}")


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Rows: config, arguments of `LLM(...)`, engine version; keyed by line number."""
    return [json.loads(line) | {"number": n} for n, line in enumerate(path.read_text().splitlines())]


def config_of(row: dict[str, Any]) -> str:
    """Text of the config: among the starts' own, else the models'; `class:NAME` is an architecture with its defaults.

    `changes` of the row replace keys of an architecture, so that several fit on one GPU.
    """
    _, colon, name = row["config"].partition("class:")
    if colon:
        with CLASSES.open() as file:
            found = next(one for line in file if (one := json.loads(line))["model_type"] == name)
        return json.dumps(found["config"] | row.get("changes", {}))
    return next(path for at in FOLDERS if (path := at / f"{row['config']}.config.json").exists()).read_text()


def pinned(row: dict[str, Any]) -> bool:
    return "kv_cache_memory_bytes" in row["arguments"]


def predict(args: argparse.Namespace) -> int:
    """Write what the planner expects of each row; a file that exists is not replaced."""
    if args.out.exists():
        sys.exit(f"error: {args.out} exists; predictions are written once")
    found = {str(row["number"]): prediction(args, row) for row in rows_of(args.rows)}
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    machine = {"gpu_mib": args.gpu_mib, "reserved_mib": args.reserved_mib}
    args.out.write_text(json.dumps({"made": made, **machine, "rows": found}, indent=1) + "\n")
    for number, one in found.items():
        print(number, json.dumps(one))
    return 0


def prediction(args: argparse.Namespace, row: dict[str, Any]) -> dict[str, Any]:
    """Tokens, weights and, where the engine sizes the pool, its GiB with their range."""
    from sparkwright.domain.facts import Gpu, Memory, NodeFacts, Unknown
    from sparkwright.domain.ledger import KV_POOL, WEIGHTS
    from sparkwright.domain.model import ModelShape
    from sparkwright.domain.recipe import EngineChoice, Model, Parallelism, Recipe, Serving
    from sparkwright.domain.units import GIB
    from sparkwright.facts.model_config import parse
    from sparkwright.planner.kv_cache import capacity
    from sparkwright.planner.ledger import ledger

    shape = parse(config_of(row))
    if not isinstance(shape, ModelShape):
        return {"config": row["config"], "unknown": str(shape)}
    keys, flags = row_settings(row)
    serving = Serving(**keys)
    choice = EngineChoice(row.get("engine", ENGINE), row["version"])
    made = Recipe(
        "row", "", Model("org/row", shape=shape), choice, parallelism=Parallelism(1), serving=serving, flags=flags
    )
    host = Memory(256 * GIB, 256 * GIB, 250 * GIB, 0, 0, 0, 0)
    reserved = Unknown("", "not given") if args.reserved_mib is None else args.reserved_mib << 20
    gpu = Gpu(args.gpu, "580", "9.0", args.gpu_mib << 20, memory_reserved=reserved)
    counted = ledger(made, NodeFacts("node", 0.0, memory=host, gpus=(gpu,), gpu_processes=()), None, 1)
    pool, weights = counted.line(KV_POOL), counted.line(WEIGHTS)
    assert pool and weights
    ends = {"low": pool.low, "middle": pool.bytes, "high": pool.high}
    sizes = {name: size for name, size in ends.items() if size is not None}
    tokens = {name: capacity(made, shape, size) for name, size in sizes.items()}
    return {
        "config": row["config"],
        "weights_gib": round(weights.bytes / GIB, 2),
        "weights_range_gib": [round((end or weights.bytes) / GIB, 2) for end in (weights.low, weights.high)],
        "weights_known": weights.known,
        "pool_gib": {name: round(size / GIB, 2) for name, size in sizes.items()},
        "tokens": {name: found.reported for name, found in tokens.items()},
        "block": tokens["middle"].block,
        "doubts": list(tokens["middle"].doubts) + [one for one in [tokens["middle"].unknown] if one],
    }


def row_settings(row: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Keys of `serving` and the engine's own flags. Rows of SGLang have the keys as they are."""
    given = row["arguments"]
    if row.get("engine", ENGINE) != ENGINE:
        return given, row.get("flags", {})
    keys = {
        "context": given["max_model_len"],
        "batched_tokens": given["max_num_batched_tokens"],
        "sequences": given["max_num_seqs"],
        "kv_dtype": given.get("kv_cache_dtype", ""),
        "memory_fraction": given.get("gpu_memory_utilization", 0.0),
        "kv_cache_bytes": given.get("kv_cache_memory_bytes", 0),
    }
    flags: dict[str, Any] = {"enforce-eager": given["enforce_eager"]}
    return keys, flags | ({"language-model-only": True} if given.get("language_model_only") else {})


class Prepared:
    """A start that has imported the engine, and waits until it may take the GPU."""

    def __init__(self, args: argparse.Namespace, row: dict[str, Any], gpu: str) -> None:
        self.row, self.folder = row, tempfile.TemporaryDirectory()
        (Path(self.folder.name) / "config.json").write_text(config_of(row))
        script = Path(self.folder.name) / "one.py"
        script.write_text(WAIT + ONE)
        words = [*shlex.split(args.python), str(script), self.folder.name, json.dumps(row["arguments"])]
        environ = {**os.environ, "CUDA_VISIBLE_DEVICES": gpu}
        self.out = subprocess.Popen(
            words, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip

    def log(self) -> str:
        """Log of the start up to its last figure; all of its processes are gone then."""
        assert self.out.stdin and self.out.stdout
        with suppress(OSError):
            self.out.stdin.close()
        late = threading.Timer(LONGEST, os.killpg, (self.out.pid, signal.SIGKILL))
        late.start()
        lines = list[str]()
        for line in self.out.stdout:
            lines.append(line.decode(errors="replace"))
            if re.search(LAST[ENGINE], lines[-1]):
                break
        if self.out.poll() is None:
            os.killpg(self.out.pid, signal.SIGKILL)
        self.out.wait()
        late.cancel()
        row, text = self.row, "".join(lines).replace(self.folder.name, "/models/row")
        self.folder.cleanup()
        return f"$ LLM({row['config']}, {json.dumps(row['arguments'])})\n" + text


def wait_until_empty(gpu: str) -> None:
    """The driver frees a process's memory after the process has gone."""
    query = ["nvidia-smi", "-i", gpu, "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    for _ in range(60):
        if int(subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]) < EMPTY_MIB:
            return
        time.sleep(0.5)


def start(args: argparse.Namespace) -> int:
    predicted = json.loads(args.predicted.read_text())["rows"]
    chosen = [row for row in rows_of(args.rows) if not args.row or row["number"] in args.row]
    if missing := [row["number"] for row in chosen if str(row["number"]) not in predicted]:
        sys.exit(f"error: no prediction for rows {missing}")
    args.out.mkdir(parents=True, exist_ok=True)
    for alone, kind in ((False, "pinned"), (True, "free")):
        if args.only in (None, kind):
            start_rows(args, [row for row in chosen if pinned(row) != alone], predicted, alone)
    return 0


def start_rows(
    args: argparse.Namespace, rows: Sequence[dict[str, Any]], predicted: dict[str, Any], alone: bool
) -> None:
    """Rows spread over the GPUs; each result is written as its start ends."""
    waiting: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    for row in rows:
        waiting.put(row)
    lock = threading.Lock()

    def prepare_next(gpu: str) -> Prepared | None:
        with suppress(queue.Empty):
            return Prepared(args, waiting.get_nowait(), gpu)
        return None

    def run_rows(gpu: str) -> None:
        following = prepare_next(gpu)
        while current := following:
            following = prepare_next(gpu)
            if alone:
                wait_until_empty(gpu)
            began = time.monotonic()
            log, row = current.log(), current.row
            found = result(row, predicted[str(row["number"])], log, time.monotonic() - began)
            with lock:
                write_result(args.out, found, log)

    gpus = args.gpus.split(",")
    threads = [threading.Thread(target=run_rows, args=(gpu,)) for gpu in gpus * (1 if alone else args.together)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def write_result(out: Path, found: dict[str, Any], log: str) -> None:
    (out / f"{found['number']:02d}-{found['config'].replace(':', '-')}.log").write_text(log)
    with (out / "results.jsonl").open("a") as file:
        file.write(json.dumps(found) + "\n")
    print(line_of(found), flush=True)


def result(
    row: dict[str, Any], expected: dict[str, Any], log: str, seconds: float, engine: str = ENGINE
) -> dict[str, Any]:
    found = read(log, engine)
    errors = _ERROR.findall(log) if "tokens" not in found else []
    kept = {name: value for name, value in row.items() if name != "number"}
    return {**kept, "number": row["number"], "predicted": expected, "seconds": round(seconds, 1), **found} | (
        {"error": errors[0][:300]} if errors else {}
    )


def line_of(row: dict[str, Any]) -> str:
    """One start as a line: predicted against printed."""
    expected, what = row["predicted"], "pinned" if pinned(row) else "free"
    kv = row["arguments"].get("kv_cache_dtype") or row["arguments"].get("kv_dtype", "")
    head = f"{row['number']:>3} {row['config']:<34} {kv or 'auto':<5} {what:<7}"
    if "tokens" not in row or "tokens" not in expected:
        return f"{head} NO FIGURE {row.get('needed_gib', '')} {row.get('error', '')[:160]}"
    tokens, planned = row["tokens"], expected["tokens"]
    off = planned["middle"] / tokens - 1
    within = planned.get("low", planned["middle"]) <= tokens <= planned.get("high", planned["middle"])
    verdict = "exact" if not off else "in range" if within else "MISS"
    pool = "" if what == "pinned" else f" pool {expected['pool_gib']} got {row.get('available_gib')}"
    weights = f" weights {expected['weights_gib']} got {row.get('weights_gib')}"
    return f"{head} planned {planned['middle']:>9} printed {tokens:>9.0f} {off:+.3%} {verdict}{pool}{weights}"


def print_table(paths: Iterable[Path]) -> int:
    for path in paths:
        for line in path.read_text().splitlines():
            print(line_of(json.loads(line)))
    return 0


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("predict", "start", "table"))
    parser.add_argument("results", nargs="*", type=Path)
    parser.add_argument("--rows", type=Path, default=DATA / "vllm-0.33.0-rows.jsonl")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--predicted", type=Path)
    parser.add_argument("--gpu", default="NVIDIA H100 80GB HBM3", help="name, as nvidia-smi prints it")
    parser.add_argument("--gpu-mib", type=int, default=81559, help="memory.total, as nvidia-smi prints it")
    parser.add_argument("--reserved-mib", type=int, help="memory.reserved; without it a range is assumed")
    parser.add_argument("--gpus", default="0", help="GPUs to start on, as in 0,1")
    parser.add_argument("--together", type=int, default=1, help="starts with a pinned pool at a time on each GPU")
    parser.add_argument("--only", choices=("pinned", "free"))
    parser.add_argument("--row", type=int, action="append")
    parser.add_argument("--python", default=sys.executable, help="the Python that has the engine")
    return parser.parse_args(words)


def main() -> int:
    args = arguments()
    if args.what == "table":
        return print_table(args.results)
    return predict(args) if args.what == "predict" else start(args)


if __name__ == "__main__":
    sys.exit(main())
