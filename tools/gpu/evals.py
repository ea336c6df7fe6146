"""`eval` against one real engine in several settings, on one machine with a GPU.

    python tools/gpu/evals.py --engine vllm --python /opt/vllm/bin/python --model MODEL --out OUT
    python tools/gpu/evals.py --engine sglang --python /opt/sglang/bin/python --model MODEL --out OUT --only base,fp8

MODEL: a folder with config.json and tokenizer; without weights it gets random ones (with torch and transformers of
--python), wide enough for answers that differ. Each setting is served alone, one after the other, and asked for
`eval probes` and `eval same` against the first, which is asked again at the end: that is the noise of a restart. In
OUT: table.md, commands.txt, the logs, the runs. Exit 1 when a server did not start or a command gave no run; what a
probe finds is not judged here. --simulator rehearses it without a GPU, simulated. Needs src/ of this checkout on
PYTHONPATH and sparkwright's dependencies; about two minutes a setting.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents import COMPACT, ENVIRONMENT, OFFLINE
from bench import wait_for_server

URL, PORT = "http://127.0.0.1:8177", "8177"
LIMIT = 900.0
NGRAM = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "prompt_lookup_min": 2}
COMMON = {
    "vllm": "-m vllm.entrypoints.openai.api_server --attention-backend TRITON_ATTN --enable-prompt-tokens-details "
    "--enable-auto-tool-choice --tool-call-parser hermes --gpu-memory-utilization 0.4 --max-num-seqs 32 "
    f"--max-model-len 32768 --structured-outputs-config {COMPACT} --model",
    "sglang": "-m sglang.launch_server --attention-backend triton --sampling-backend pytorch --enable-cache-report "
    "--disable-piecewise-cuda-graph --constrained-json-disable-any-whitespace --tool-call-parser qwen25 "
    "--cuda-graph-max-bs 32 --max-running-requests 32 --mem-fraction-static 0.4 --max-total-tokens 262144 "
    "--context-length 32768 --model-path",
    "simulator": "-m sparkwright.simulator serve --enable-auto-tool-choice --tool-call-parser hermes",
}
WEIGHTS = """
import sys, torch
from transformers import AutoConfig, AutoModelForCausalLM
torch.manual_seed(7)
model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(sys.argv[1]), dtype=torch.bfloat16)
with torch.no_grad():
    for weights in model.parameters():
        if weights.dim() == 2:
            weights.normal_(0, 0.05)
    model.lm_head.weight.normal_(0, 0.08)
model.save_pretrained(sys.argv[1], safe_serialization=True)
"""


@dataclass(frozen=True)
class EvalSetting:
    flags: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


SETTINGS = {
    "vllm": {
        "base": EvalSetting(),
        "fp8": EvalSetting(("--kv-cache-dtype", "fp8")),
        "ngram": EvalSetting(("--speculative-config", json.dumps(NGRAM))),
        "steady": EvalSetting(env={"VLLM_BATCH_INVARIANT": "1"}),
        "again": EvalSetting(),
    },
    "sglang": {
        "base": EvalSetting(),
        "fp8": EvalSetting(("--kv-cache-dtype", "fp8_e4m3")),
        "ngram": EvalSetting(("--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "4")),
        "steady": EvalSetting(("--enable-deterministic-inference",)),
        "again": EvalSetting(),
    },
    "simulator": {
        "base": EvalSetting(),
        "unsteady": EvalSetting(env={"SPARKWRIGHT_SIMULATOR_FAULT": "wrong@unsteady"}),
        "again": EvalSetting(),
    },
}


def weighted(args: argparse.Namespace) -> Path:
    """--model, or a copy of it with random weights."""
    if args.engine == "simulator" or any(args.model.glob("*.safetensors")):
        return args.model
    folder = args.out / "model"
    shutil.copytree(args.model, folder, dirs_exist_ok=True)
    subprocess.run([*shlex.split(args.python), "-c", WEIGHTS, str(folder)], check=True, env={**os.environ, **OFFLINE})
    return folder


@contextmanager
def served(args: argparse.Namespace, name: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server in a session of its own; all of its processes end with the block."""
    setting = SETTINGS[args.engine][name]
    words = [*shlex.split(args.python), *shlex.split(COMMON[args.engine].replace(COMPACT, "COMPACT")), str(folder)]
    words = [COMPACT if word == "COMPACT" else word for word in words]
    words += ["--served-model-name", "m", "--host", "127.0.0.1", "--port", PORT, *setting.flags, *args.flags]
    environ = {**os.environ, **OFFLINE, **ENVIRONMENT.get(args.engine, {}), **setting.env}
    with (args.out / f"{name}.log").open("wb") as log:
        log.write((shlex.join(words) + "\n").encode())
        log.flush()
        server = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environ, start_new_session=True, cwd=args.out
        )
    try:
        yield server
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def evaluated(args: argparse.Namespace, *words: str) -> dict[str, Any]:
    """The run of an `eval` command, {} when it gave none; what it printed goes to commands.txt."""
    command = [sys.executable, "-m", "sparkwright", "eval", *words, "--json"]
    environ = {**os.environ, "HOME": str(args.out), "COLUMNS": "150"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=LIMIT, check=False)
    with (args.out / "commands.txt").open("a") as log:
        log.write(f"$ {shlex.join(command[3:])}\n{done.stderr}{done.stdout}(exit {done.returncode})\n\n")
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return {}
    return dict(found.get("run") or {})


def verdict_table(found: Mapping[str, tuple[dict[str, Any], dict[str, Any]]]) -> str:
    """Probes and verdicts, a column a setting."""
    states = {
        name: {o["name"]: o["state"] for o in probes["evaluation"]["outcomes"]} for name, (probes, _) in found.items()
    }
    lines = [f"| probe | {' | '.join(found)} |", f"|---|{'---|' * len(found)}"]
    for probe in next(iter(states.values()), {}):
        lines.append(f"| {probe} | {' | '.join(states[name].get(probe, '') for name in found)} |")
    details = {
        name: [same["evaluation"]["verdict"], *(o["detail"] for o in same["evaluation"]["outcomes"])]
        for name, (_, same) in found.items()
        if same.get("evaluation", {}).get("verdict")
    }
    lines += ["", "| `eval same` with the first | verdict | texts | log-probabilities |", "|---|---|---|---|"]
    lines += [f"| {name} | {' | '.join(cells[:3])} |" for name, cells in details.items()]
    return "\n".join(lines) + "\n"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("vllm", "sglang"), default="vllm")
    parser.add_argument("--python", default=sys.executable, help="Python that has the engine")
    parser.add_argument("--model", type=Path, required=True, help="folder with config.json and tokenizer.json")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--only", default="", metavar="SETTING,...", help="of base, fp8, ngram, steady, again; base first"
    )
    parser.add_argument("--simulator", action="store_const", const="simulator", dest="engine")
    parser.add_argument("flags", nargs="*", help="more for every server, after --")
    args = parser.parse_args()
    args.out, args.model = args.out.resolve(), args.model.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    return args


def main() -> int:
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server ends too
    folder, found, bad = weighted(args), {}, 0
    for name in args.only.split(",") if args.only else SETTINGS[args.engine]:
        with served(args, name, folder) as server:
            try:
                wait_for_server(URL, server)
            except SystemExit as error:
                print(f"{name}: not started: {error}; see {name}.log", flush=True)
                bad = 1
                continue
            first = ("same", URL, "--tag", "first") if not found else ("same", "first", URL)
            found[name] = evaluated(args, "probes", URL), evaluated(args, *first)
        bad = bad or int(not all(found[name]))
        print(f"{name}: {'asked' if all(found[name]) else 'no run, see commands.txt'}", flush=True)
    (args.out / "table.md").write_text(verdict_table({name: one for name, one in found.items() if one[0]}))
    return bad


if __name__ == "__main__":
    sys.exit(main())
