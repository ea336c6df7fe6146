"""llama.cpp over RPC between two namespaces, through `sparkwright up`: see docs/acceptance/llama.cpp-rpc.md.

    PYTHONPATH=tests:tools python tools/gpu/llama_rpc.py --programs FOLDER [--work FOLDER]

FOLDER holds llama-server and ggml-rpc-server (or rpc-server) of one llama.cpp built with GGML_RPC=ON. The model is the
tests' GGUF of random weights: its text is noise, everything else is real. Wants root (see two_nodes.py), and both
folders outside /tmp, of which each node has its own; --work must not hold an earlier run.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import yaml

from functional.tiny_gguf import write_tiny_gguf
from gpu.two_nodes import TwoNodes, lacking

ASK = (
    "curl -sN http://127.0.0.1:8080/v1/chat/completions -d '"
    '{"stream":true,"max_tokens":3,"messages":[{"role":"user","content":"hello"}]}\''
)
OURS = "ps -eo pid,args | grep -E 'llama-server|rpc-server' | grep -v grep"
LISTENING = "ss -Hltn 'sport = :25000 or sport = :8080'"


def recipe(programs: Path) -> dict:
    return {
        "name": "tiny-rpc",
        "title": "Random weights over two nodes",
        "state": "documented",
        "state_reason": "an acceptance run",
        "license": "none: random numbers",
        "model": {"path": "tiny.gguf", "served_name": "tiny"},
        "engine": {
            "name": "llama-cpp",
            "version": "2026.10.11549",
            "runtime": "process",
            "entrypoint": [str(programs / "llama-server")],
        },
        "nodes": 2,
        "parallelism": {"pp": 2},
        "serving": {"port": 8080, "context": 2048, "sequences": 2, "batched_tokens": 512, "coherence": False},
    }


def cluster(nodes: TwoNodes) -> dict:
    told = []
    for node in nodes.nodes:
        paths = {sub: str(node.folder / sub) for sub in ("models", "hub", "cache", "state")}
        fabric = {"address": node.fabric, "interface": "fab0", "hcas": []}
        told.append({"name": node.name, "fabric": fabric, "paths": paths})
    return {"name": "two-namespaces", "nodes": told}


class RpcRun:
    def __init__(self, nodes: TwoNodes, work: Path, programs: Path) -> None:
        self.nodes, self.work = nodes, work
        self.recipe = self.write("tiny-rpc.yaml", recipe(programs))
        self.environ = {**os.environ, **nodes.environ, "HOME": str(work), "COLUMNS": "150"}
        self.environ["SPARKWRIGHT_CLUSTER"] = str(self.write("cluster.yaml", cluster(nodes)))

    def write(self, name: str, content: dict) -> Path:
        (self.work / name).write_text(yaml.safe_dump(content, sort_keys=False))
        return self.work / name

    def sparkwright(self, *words: str) -> int:
        print(f"\n$ sparkwright {' '.join(words).replace(str(self.work) + '/', '')}", flush=True)
        began = time.monotonic()
        argv = [sys.executable, "-m", "sparkwright", *words]
        code = subprocess.run(argv, env=self.environ, stdin=subprocess.DEVNULL, timeout=120).returncode
        print(f"-> exit {code} after {time.monotonic() - began:.2f} s", flush=True)
        return code

    def node(self, name: str, script: str) -> str:
        said = self.nodes.call(name, script).stdout
        print(f"\n{name}$ {script}\n{said}", flush=True)
        return said

    def all(self) -> None:
        up = ("up", str(self.recipe), "--force", "a machine without a GB10")
        self.sparkwright("plan", str(self.recipe))
        assert self.sparkwright(*up) == 0
        assert self.sparkwright("status") == 0
        assert "data: [DONE]" in self.node("spark-1", ASK)
        for node in self.nodes.nodes:
            self.node(node.name, LISTENING)
        assert "tiny.gguf" not in self.node("spark-2", f"find {self.nodes.nodes[1].folder}/models -type f")
        self.node("spark-2", "pkill -KILL -x ggml-rpc-server || pkill -KILL -x rpc-server")
        assert self.sparkwright("status") == 1
        assert self.sparkwright("down", "tiny-rpc") == 0
        for node in self.nodes.nodes:
            assert self.node(node.name, f"{OURS}; {LISTENING}; ls {node.folder}/state/deployments 2>/dev/null") == ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("/var/tmp/sparkwright-rpc"))
    given = parser.parse_args()
    if missing := lacking():
        raise SystemExit("; ".join(missing))
    given.work.mkdir(parents=True, exist_ok=True)
    with TwoNodes(given.work / "nodes") as nodes:
        write_tiny_gguf(nodes.nodes[0].folder / "models" / "tiny.gguf")
        RpcRun(nodes, given.work, given.programs.resolve()).all()


if __name__ == "__main__":
    main()
