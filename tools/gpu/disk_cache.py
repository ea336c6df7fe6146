"""`serving.disk_cache` with a real engine by `up`: the same long prompt before and after `kill -9`, on one local node.

    python tools/gpu/disk_cache.py --engine vllm --engine-version 0.33.0 --venv VENV --model MODEL --work W --out OUT

MODEL: the tokenizer of a small model; its config.json gets Qwen3-32B's dimensions with --layers layers, weights are
random. The first answer is without anything cached; then the files of the disk have come to rest, every process of the
engine is killed, `down`, `up`, and the same prompt. OUT gets the logs, what `up` printed and results.jsonl. Root, with
a network and /run/lock of its own (see today.sh).
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import yaml

NAME, PORT = "tiered", 8000
LARGE = {
    "hidden_size": 5120, "intermediate_size": 25600, "num_attention_heads": 64, "num_key_value_heads": 8,
    "head_dim": 128,
}  # fmt: skip
GIB = 1 << 30
FLAGS: dict[str, dict[str, Any]] = {
    "vllm": {"enforce-eager": True},
    "sglang": {"sampling-backend": "pytorch", "cuda-graph-backend-prefill": "disabled"},
}


class DiskRun:
    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.state = args, args.work / "state"
        self.folder = args.work / "kv"
        for path in (args.work / "models", self.folder, args.out):
            path.mkdir(parents=True, exist_ok=True)
        model = args.work / "models" / "large"
        shutil.copytree(args.model, model, ignore=shutil.ignore_patterns("*.safetensors"), dirs_exist_ok=True)
        config = json.loads((model / "config.json").read_text()) | LARGE | {"num_hidden_layers": args.layers}
        (model / "config.json").write_text(json.dumps(config))
        (args.out / "recipe.yaml").write_text(yaml.safe_dump(self.recipe(), sort_keys=False))
        paths = {"models": str(args.work / "models"), "state": str(self.state), "cache": str(args.work / "cache")}
        nodes = {"nodes": [{"name": "here", "ssh": "local", "paths": paths}]}
        (args.out / "cluster.yaml").write_text(yaml.safe_dump(nodes))

    def recipe(self) -> dict[str, Any]:
        args, context = self.args, self.args.tokens + 4096
        pool = {"memory_fraction": 0.4, "kv_cache_bytes": f"{args.pool_gib}GiB"}
        flags = {"load-format": "dummy", **FLAGS[args.engine]}
        if args.engine == "sglang":
            pool, flags = {"memory_fraction": 0.8}, flags | {"max-total-tokens": context}
        flags |= dict(pair.split("=", 1) for pair in args.flag)
        cache = {"host_cache": f"{args.host_gib}GiB", "disk_cache": str(self.folder), "disk_cache_size": "40GiB"}
        return {
            "name": NAME, "title": "A long context on a disk", "nodes": 1, "flags": flags,
            "model": {"path": "large", "served_name": "m"},
            "engine": {
                "name": args.engine, "version": args.engine_version, "runtime": "process", "venv": str(args.venv)
            },
            "serving": {"port": PORT, "context": context, "sequences": 4, "coherence": False, **pool, **cache},
            "env": dict(pair.split("=", 1) for pair in args.env),
        }  # fmt: skip

    def note(self, what: str, **values: Any) -> None:
        told = json.dumps({"what": what, **values})
        print(told, flush=True)
        with (self.args.out / "results.jsonl").open("a") as file:
            file.write(told + "\n")

    def sparkwright(self, *words: str) -> float:
        """Seconds that the command took; what it printed goes to commands.txt."""
        environ = {
            **os.environ,
            "HOME": str(self.args.work),
            "SPARKWRIGHT_CLUSTER": str(self.args.out / "cluster.yaml"),
        }
        began = time.monotonic()
        with (self.args.out / "commands.txt").open("a") as log:
            log.write(f"$ sparkwright {' '.join(words)}\n")
            log.flush()
            argv = [sys.executable, "-m", "sparkwright", *words]
            code = subprocess.run(argv, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log).returncode
            log.write(f"-> exit {code}\n")
        took = time.monotonic() - began
        self.note(" ".join(words[:1]), exit=code, seconds=round(took, 1))
        return took

    def up(self) -> bool:
        self.sparkwright("up", str(self.args.out / "recipe.yaml"), "--no-supervise", "--force", "the GPU is shared")
        return any((self.state / "deployments" / NAME).glob("rank0/pid"))

    def ask(self, what: str) -> None:
        """The long prompt by token numbers: seconds to the first token, and the text."""
        numbers = random.Random(42)
        words = [numbers.randrange(10, 7900) for _ in range(self.args.tokens)]
        usage = {"stream": True, "stream_options": {"include_usage": True}}
        body = {"model": "m", "prompt": words, "max_tokens": 16, "temperature": 0, "ignore_eos": True, **usage}
        request = urllib.request.Request(
            f"http://127.0.0.1:{PORT}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        began, first, text, told = time.monotonic(), 0.0, "", None
        with urllib.request.urlopen(request, timeout=200) as reply:
            for line in reply:
                if not line.startswith(b"data: {"):
                    continue
                event = json.loads(line[6:])
                told = event.get("usage") or told
                if event.get("choices"):
                    first = first or time.monotonic() - began
                    text += event["choices"][0]["text"]
        self.note(what, first_token_s=round(first, 2), all_s=round(time.monotonic() - began, 2), text=text, usage=told)

    def rest(self) -> None:
        """Waits until the files of the disk tier do not grow any more."""
        began, last = time.monotonic(), (-1, 0)
        while time.monotonic() - began < 60:
            time.sleep(2)
            sizes = [path.stat().st_size for path in self.folder.rglob("*") if path.is_file()]
            now = (len(sizes), sum(sizes))
            if now == last and now[0]:
                break
            last = now
        self.note("at rest", files=last[0], gb=round(last[1] / 1e9, 2), seconds=round(time.monotonic() - began, 1))

    def forget(self) -> None:
        """Empties the page cache (root), so that what was written is read from the disk."""
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("1\n")
        self.note("page cache emptied")

    def keep_log(self, name: str) -> None:
        shutil.copy(self.state / "deployments" / NAME / "rank0" / "log", self.args.out / f"{name}.log")

    def kill(self) -> None:
        leader = (self.state / "deployments" / NAME / "rank0" / "pid").read_text().split()[0]
        session = subprocess.run(["ps", "-s", leader, "-o", "pid="], capture_output=True, text=True).stdout.split()
        subprocess.run(["kill", "-KILL", *session], check=False)
        self.note("kill -9", processes=len(session))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=sorted(FLAGS), required=True)
    parser.add_argument("--engine-version", required=True)
    parser.add_argument("--venv", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--layers", type=int, default=36)
    parser.add_argument("--tokens", type=int, default=80_000)
    parser.add_argument("--pool-gib", type=int, default=13)
    parser.add_argument("--host-gib", type=int, default=16)
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--flag", action="append", default=[], metavar="NAME=VALUE", help="of the engine")
    parser.add_argument("--forget", action="store_true", help="empty the page cache before the prompt comes again")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    run = DiskRun(parser.parse_args())
    try:
        for name in ("first", "relaunch"):
            if not run.up():
                return 1
            run.ask(f"{name}: prompt")
            run.sparkwright("status", "--json")
            run.ask(f"{name}: prompt again, from the GPU")
            run.keep_log(name)
            if name == "first":
                run.rest()
                run.sparkwright("status")
                run.kill()
            run.sparkwright("status")
            run.sparkwright("down", NAME)
            if run.args.forget:
                run.forget()
    finally:
        log = run.state / "deployments" / NAME / "rank0" / "log"
        if log.exists():
            run.keep_log("last")
            run.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
