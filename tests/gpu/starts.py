"""Makes the starts of tests/data/starts again, on one GPU with vLLM 0.21.0: what was recorded next to what it states
now.

    python tests/gpu/starts.py [--row N ...]          each row in a process of its own, one after the other

Wants VLLM_USE_FLASHINFER_SAMPLER=0, VLLM_USE_DEEP_GEMM=0 and HF_HUB_OFFLINE=1, as the recording had. Nothing else may
run on the GPU: vLLM measures with what the whole GPU has free. Exit 1 when a figure is more than 1 % off the recorded.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "data" / "starts"
FIGURES = {
    "weights_gib": r"Model loading took ([\d.]+) GiB",
    "available_gib": r"Available KV cache memory: ([\d.]+) GiB",
    "tokens": r"GPU KV cache size: ([\d,]+) tokens",
    "concurrency": r"per request: ([\d.]+)x",
    "needed_gib": r"\(([\d.]+) GiB KV cache is needed",
    "block": r"attention block size to (\d+) tokens",
}
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


def read(log: str) -> dict[str, float]:
    """The figures that the log has; of one that is printed again, the first."""
    found = {name: re.search(pattern, log) for name, pattern in FIGURES.items()}
    return {name: float(match[1].replace(",", "")) for name, match in found.items() if match}


def start(row: dict[str, Any]) -> str:
    """The log of one start."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(FOLDER / f"{row['config']}.config.json", Path(folder) / "config.json")
        script = Path(folder) / "one.py"
        script.write_text(ONE)
        given = json.dumps({"enforce_eager": True, **row["arguments"]})
        words = [sys.executable, str(script), folder, given]
        return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600).stdout


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / "vllm-0.21.0.jsonl").read_text().splitlines()]


def figures(row: dict[str, Any]) -> dict[str, float]:
    return {name: float(row[name]) for name in FIGURES if name in row}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--row", type=int, action="append", help="only this line of the file, counted from 0")
    asked = parser.parse_args()
    if not find_spec("vllm"):
        parser.error(f"no vLLM in {sys.executable}: run it with the Python that has vllm 0.21.0")
    chosen = [row for n, row in enumerate(rows()) if not asked.row or n in asked.row]
    worst = 0.0
    for row in chosen:
        now, then = read(start(row)), figures(row)
        off = max((abs(now.get(name, 0.0) - value) / value for name, value in then.items()), default=0.0)
        print(f"{row['config']} {row['arguments']}\n  recorded {then}\n  now      {now}", flush=True)
        worst = max(worst, off)
    return int(worst > 0.01)


if __name__ == "__main__":
    sys.exit(main())
