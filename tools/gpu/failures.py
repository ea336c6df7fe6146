"""Makes the real vLLM 0.21.0 fail as it fails for users, one log a case, for `sparkwright diagnose` to read.

    python tools/gpu/failures.py --models MODELS --out /tmp/failures [--only CASE ...]

MODELS holds tiny/ (config.json, tokenizer.json and tokenizer_config.json with a chat template: a small Qwen3) and
8b/config.json (that of Qwen3-8B). One GPU; root for the cases with a file system or a user of their own. Nothing comes
from the internet. Wants VLLM_USE_FLASHINFER_SAMPLER=0 and VLLM_USE_DEEP_GEMM=0. The first line of each log is the
command; paths are rewritten. Cases that end before the KV cache is sized run side by side, the others one by one.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from failure_cases import ALONE, HELD, HELLO, PLAIN, REQUESTS, SERVER, SIDE_BY_SIDE, FailureCase

WORK = Path("/tmp/vllm-failures")
WHOLE = "--whole" in sys.argv
READY = "Application startup complete"
VLLM = "import sys\nfrom vllm.entrypoints.cli.main import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
HOLD = """
import time, torch
held = torch.empty(int(torch.cuda.mem_get_info()[0] * 0.8), dtype=torch.uint8, device="cuda")
print(1, flush=True)
time.sleep(300)
"""
SAVE = """
import sys, torch, transformers
config = transformers.AutoConfig.from_pretrained(sys.argv[1])
model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
model.save_pretrained(sys.argv[2], max_shard_size="12MB")
"""
# Side by side several starts share the GPU; a pool of the usual size would leave nothing for the others.
SMALL = ["--gpu-memory-utilization", "0.05"]
_SHARING = {case.name for case in SIDE_BY_SIDE}
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22e\nsize 41582912\n"


def rewritten(text: str) -> str:
    """Paths as they are on no machine in particular."""
    roots = [(str(WORK / "models"), "/models"), (f"{WORK}/bin/vllm", "/opt/venv/bin/vllm"), (str(WORK), "")]
    roots += [(path, "/opt/vllm") for path in os.environ.get("PYTHONPATH", "").split(":") if path]
    for path, name in [*roots, (sys.prefix, "/opt/venv")]:
        text = text.replace(path, name)
    return text


def placed(text: str) -> str:
    """A path of the table, where it really lies."""
    return re.sub(r"(?<![\w./:])/(?=models|root-owned|home-1234|cache$|triton|empty)", f"{WORK}/", text)


class Start:
    """One `vllm serve`; its lines as they come."""

    def __init__(self, case: FailureCase, port: int = 8000) -> None:
        words = case.words.split(" ") if case.words else []
        flags = ["--load-format", "dummy"] if case.dummy else []
        flags += [] if WHOLE or "--attention-backend" in words else ["--attention-backend", "TRITON_ATTN"]
        flags += SMALL if case.name in _SHARING and "--gpu-memory-utilization" not in words else []
        flags += [] if "--port" in words else ["--port", str(port)]
        flags += [] if {"--host", "--headless"} & {*words} else ["--host", "127.0.0.1"]
        said = [
            *(f"{name}={value}" for name, value in case.environ.items()),
            "vllm",
            "serve",
            case.model,
            *words,
            *flags,
        ]
        self.text = "$ " + " ".join(f"'{word}'" if set(word) & set('{"') else word for word in said) + "\n"
        argv = [*case.prefix, sys.executable, str(WORK / "bin" / "vllm"), "serve", case.model, *words, *flags]
        hidden = {name: placed(value) for name, value in case.hidden.items()}
        self.case, self.process = case, subprocess.Popen(
            [word if word.startswith("{") else placed(word) for word in argv],
            env={"HF_HUB_OFFLINE": "1", **os.environ, **hidden, **case.environ},
            cwd="/", text=True, start_new_session=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.text += line
            if self.case.kill_at and self.case.kill_at in line:
                self.kill_core()

    def kill_core(self) -> None:
        listed = subprocess.run(["ps", "-s", str(self.process.pid), "-o", "pid=,args="], capture_output=True, text=True)
        for line in listed.stdout.splitlines():
            if "EngineCore" in line:
                os.kill(int(line.split()[0]), signal.SIGKILL)

    def waited(self, text: str, limit: float) -> bool:
        end = time.monotonic() + limit
        while text not in self.text and self.reader.is_alive() and time.monotonic() < end:
            time.sleep(0.2)
        return text in self.text

    def end(self, limit: float = 0.0) -> str:
        """The whole log, once it has ended automatically or was stopped."""
        self.reader.join(limit)
        for number in (signal.SIGINT, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                break
            self.reader.join(8)
        self.process.wait()
        return rewritten(self.text)


def ask_server(port: int, path: str, key: str, body: dict[str, Any]) -> str:
    """One request as curl shows it."""
    content = json.dumps(body)
    shown = content if len(content) < 2000 else content[:400] + " ..."
    told = ["curl -is", f"http://127.0.0.1:{port}{path}"]
    told += [f"-H 'Authorization: Bearer {key}'"] if key else []
    told += [f"-H 'Content-Type: application/json' -d '{shown}'"] if body else []
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", content.encode() if body else None, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            status, answer = f"{reply.status} {reply.reason}", reply.read().decode()
    except urllib.error.HTTPError as error:
        status, answer = f"{error.code} {error.reason}", error.read().decode()
    except OSError as error:
        return f"$ {' '.join(told)}\n{error}\n"
    return f"$ {' '.join(told)}\nHTTP/1.1 {status}\n{answer}\n"


def requests(out: Path) -> None:
    """One server, one log a request: the start, the server's lines of that request, and what the client saw."""
    server = Start(SERVER)
    server.waited(READY, 150)
    begun = server.text
    for name, (path, key, body) in REQUESTS.items():
        before = len(server.text)
        answer = ask_server(8000, path, key, body)
        time.sleep(0.5)
        write(out, name, begun + server.text[before:] + answer)
    before = len(server.text)
    server.kill_core()
    time.sleep(1)
    answer = ask_server(8000, "/v1/chat/completions", "sk-abc", HELLO)
    server.reader.join(20)
    server.end()
    write(out, "killed-serving", begun + server.text[before:] + answer)


def without_template(out: Path) -> None:
    server = Start(PLAIN)
    server.waited(READY, 150)
    answer = ask_server(8000, "/v1/chat/completions", "", HELLO)
    time.sleep(0.5)
    write(out, PLAIN.name, server.text + answer)
    server.end()


def memory_taken(out: Path) -> None:
    """Another process holds 80 % of the GPU."""
    holder = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE)
    assert holder.stdout
    holder.stdout.readline()
    record_case(out, HELD)
    holder.kill()
    holder.wait()


def write(out: Path, name: str, text: str) -> None:
    (out / f"{name}.log").write_text(rewritten(text))
    print(f"{time.strftime('%T')} {name} {len(text)}", flush=True)


def record_case(out: Path, case: FailureCase, port: int = 8000) -> None:
    write(out, case.name, Start(case, port).end(case.limit))


def fitted(case: FailureCase) -> FailureCase:
    """The case with the values that depend on the GPU's size: 8B weighs 15.3 GiB."""
    query = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    gib = float(subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]) / 1024
    values = {"{tight}": f"{15.0 / gib:.2f}", "{most}": f"{int((gib - 17.8) * 2**30)}"}
    words = case.words
    for name, value in values.items():
        words = words.replace(name, value)
    return replace(case, words=words, limit=150)


def models(given: Path) -> None:
    """The healthy ones and the broken ones, under WORK."""
    folder = WORK / "models"
    shutil.rmtree(WORK, ignore_errors=True)
    for name in ("empty", "root-owned", "home-1234", "cache", "triton", "bin"):
        (WORK / name).mkdir(parents=True)
    (WORK / "home-1234").chmod(0o777)
    (WORK / "bin" / "vllm").write_text(VLLM)
    shutil.copytree(given / "tiny", folder / "tiny")
    tiny = folder / "tiny"
    config = json.loads((tiny / "config.json").read_text())
    large = json.loads((given / "8b" / "config.json").read_text())

    def copy(name: str, **changed: Any) -> Path:
        shutil.copytree(tiny, folder / name)
        (folder / name / "config.json").write_text(json.dumps({**config, **changed}))
        return folder / name

    (folder / "empty").mkdir()
    copy("8b", **large)
    copy("large", **large | {"num_hidden_layers": 600})
    copy("architecture", architectures=["Qwen9MoeForCausalLM"])
    copy("model-type", architectures=["Qwen9ForCausalLM"], model_type="qwen9")
    copy("custom", model_type="qwen9", auto_map={"AutoConfig": "configuration_qwen9.Qwen9Config"})
    copy("fp8", quantization_config={"quant_method": "fp8", "activation_scheme": "dynamic"})
    (copy("config-broken") / "config.json").write_text(json.dumps(config)[:300])
    (copy("tokenizer-missing") / "tokenizer.json").unlink()
    told = copy("template-missing") / "tokenizer_config.json"
    told.write_text(json.dumps({k: v for k, v in json.loads(told.read_text()).items() if k != "chat_template"}))
    shards(tiny, copy)


def shards(tiny: Path, copy: Callable[..., Path]) -> None:
    """A real checkpoint of random weights, then what is done to it."""
    saved = WORK / "saved"
    subprocess.run([sys.executable, "-c", SAVE, str(tiny), str(saved)], check=True)
    for name in ("shard-missing", "shard-cut", "shard-pointer", "shape"):
        folder = copy(name, **({"intermediate_size": 1024} if name == "shape" else {}))
        for path in saved.glob("model*"):
            shutil.copy(path, folder)
        last = sorted(folder.glob("*.safetensors"))[-1]
        if name == "shard-missing":
            last.unlink()
        if name == "shard-cut":
            os.truncate(last, last.stat().st_size * 2 // 3)
        if name == "shard-pointer":
            last.write_text(POINTER)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", action="append", help="a case, or `side`, `alone`, `requests`")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--whole", action="store_true", help="vLLM has all of its kernels: no flags around them")
    parser.add_argument("--limit", type=int, help="seconds for a start that does not end by itself")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    models(given.models)

    def chosen(group: str, name: str) -> bool:
        return not given.only or group in given.only or name in given.only

    listen = [sys.executable, "-m", "http.server", "8099", "--bind", "127.0.0.1"]
    blocker = subprocess.Popen(listen, stderr=subprocess.DEVNULL)
    with ThreadPoolExecutor(given.jobs) as pool:
        limits = {"limit": given.limit} if given.limit else {}
        cases = [replace(case, **limits) for case in SIDE_BY_SIDE if chosen("side", case.name)]
        list(pool.map(lambda pair: record_case(given.out, pair[1], 8100 + pair[0]), enumerate(cases)))
    blocker.kill()
    for case in ALONE:
        if chosen("alone", case.name):
            record_case(given.out, fitted(case))
    for name, work in (("requests", requests), (PLAIN.name, without_template), (HELD.name, memory_taken)):
        if chosen("requests", name):
            work(given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
