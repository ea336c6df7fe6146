"""Acceptance of `sparkwright bench` with the real vLLM on one machine with a GPU.

    python tools/gpu/bench.py --url http://127.0.0.1:8000 --out /tmp/bench
    python tools/gpu/bench.py --model /models/tiny-qwen3 --out /tmp/bench -- --attention-backend TRITON_ATTN

--url measures a server that runs already; --model starts `vllm serve` of that folder with random weights. --simulator
rehearses it without a GPU, simulated. Needs src/ of this checkout on PYTHONPATH and sparkwright's dependencies. Runs
`quick` and `agentic-quick`, checks what must hold, and leaves everything in --out: page.md, reports as HTML and
Markdown, the runs as JSON, what the commands printed. Exit 1 when something was not as expected.
"""

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START = 600.0
LIMIT = 900.0
# Cold to cached, first token at the last turn, for a model whose prefill takes longer than the server's own work (8B on
# an H100). A tiny one answers both alike: --gap 1.0.
GAP = 1.5
NAME = "tiny"
PACE = {
    "SPARKWRIGHT_SIMULATOR_STEP_MS": "10",
    "SPARKWRIGHT_SIMULATOR_PREFILL_TPS": "4000",
    "SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "1",
}


class BenchAcceptance:
    """Runs commands, keeps what they print, and remembers what was not as expected."""

    def __init__(self, out: Path, url: str) -> None:
        self.out, self.url = out, url
        self.rows: list[tuple[str, str, str]] = []
        self.environ = {**os.environ, "HOME": str(out / "home"), "COLUMNS": "150"}
        (out / "home").mkdir(parents=True, exist_ok=True)

    def sparkwright(self, *words: str) -> tuple[int, str]:
        """Its exit code and stdout; both outputs are saved under the command."""
        began = time.monotonic()
        command = [sys.executable, "-m", "sparkwright", *words]
        done = subprocess.run(command, env=self.environ, capture_output=True, text=True, timeout=LIMIT, check=False)
        told = f"$ sparkwright {shlex.join(words)}\n{done.stderr}{done.stdout}(exit {done.returncode}, "
        with (self.out / "commands.txt").open("a") as kept:
            kept.write(f"{told}{time.monotonic() - began:.1f} s)\n\n")
        return done.returncode, done.stdout

    def expect(self, what: str, good: bool, seen: object) -> None:
        self.rows.append((what, "yes" if good else "NO", str(seen)))
        print(f"{'ok ' if good else 'NO '} {what}: {seen}", flush=True)

    def measure(self, profile: str) -> dict:
        """The run's summary; checks what holds for any."""
        began = time.monotonic()
        code, out = self.sparkwright("bench", self.url, "--profile", profile, "--tag", profile, "--json")
        took = time.monotonic() - began
        run = json.loads(out)["runs"][0]
        # A rehearsal may share its cores with others; only then is a late client no defect.
        doubts = [why for why in run["invalid"] if not (run["simulated"] and "the client" in why)]
        self.expect(f"{profile}: valid", not doubts and code == bool(run["invalid"]), doubts or f"exit {code}")
        self.expect(f"{profile}: time", profile != "quick" or took < 120, f"{took:.0f} s")
        whole = [level for level in run["levels"] if not level["part"]]
        self.expect(f"{profile}: no request failed", not any(one["errors"] for one in whole), counts(whole))
        for level in whole:
            self.counted(profile, level)
        self.save(profile)
        return run

    def counted(self, profile: str, level: dict) -> None:
        """Tokens by each answer's usage are those that the server counted over the level."""
        told = level["server"].get("generation_tokens_total")
        name = f"{profile}, {level['plan']['name']}: tokens as the server counted them"
        self.expect(name, told == level["tokens"], f"usage {level['tokens']}, counters {told}")

    def save(self, profile: str) -> None:
        for ending in ("html", "md"):
            self.sparkwright("report", profile, "-o", str(self.out / f"{profile}.{ending}"))
        self.sparkwright("runs", "export", profile, str(self.out / f"{profile}.json"))
        kept = [self.out / f"{profile}.{ending}" for ending in ("html", "md", "json")]
        self.expect(f"{profile}: reports", all(path.exists() for path in kept), [path.name for path in kept])

    def gap(self, run: dict, least: float) -> None:
        """Turn by turn, cold and with most of the prompt known."""
        first = {}
        for level in run["levels"]:
            if level["part"].startswith("turn "):
                cold = level["plan"]["shape"]["cold"]
                first[int(level["part"].split()[1]), cold] = level["metrics"]["ttft"]["median"]["value"]
        last = max(turn for turn, _ in first)
        ratio = first[last, True] / first[last, False]
        told = f"{first[last, True] * 1000:.1f} ms : {first[last, False] * 1000:.1f} ms = {ratio:.2f}"
        self.expect(f"turn {last}: first token, cold : cached, at least {least}", ratio >= least, told)
        shares = [
            one["metrics"]["cached_share"]["median"]["value"]
            for one in run["levels"]
            if one["part"] == f"turn {last}" and not one["plan"]["shape"]["cold"] and "cached_share" in one["metrics"]
        ]
        self.expect(f"turn {last}: cached by usage, about 80 %", any(0.7 <= share <= 0.9 for share in shares), shares)


def counts(levels: list[dict]) -> str:
    told = (f"{one['plan']['name']} {one['good']} of {one['sent']} {one['errors'] or ''}" for one in levels)
    return ", ".join(map(str.strip, told))


@contextmanager
def serving(args: argparse.Namespace) -> Iterator[str]:
    """The server's URL; one that was started here is ended."""
    if args.url:
        yield args.url
        return
    program = [sys.executable, "-m", "sparkwright.simulator"] if args.simulator else shlex.split(args.vllm)
    place = ["--host", "127.0.0.1", "--port", str(args.port), "--served-model-name", NAME, "--load-format", "dummy"]
    command = [*program, "serve", str(args.model), *place, "--enable-prompt-tokens-details", *args.flags]
    with (args.out / "server.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | (PACE if args.simulator else {}))
    try:
        wait_for_server(f"http://127.0.0.1:{args.port}", server)
        yield f"http://127.0.0.1:{args.port}"
    finally:
        server.terminate()
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def wait_for_server(url: str, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START
    while time.monotonic() < end and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2):
                return
        except OSError:
            time.sleep(1.0)
    sys.exit("the server did not become ready: see server.log")


def bench_page(acceptance: BenchAcceptance, run: dict) -> str:
    known = run["run"]["conditions"]
    mark = "SIMULATED: " if known["simulated"] else ""
    lines = [f"# {mark}`sparkwright bench` against {known['engine']} {known['engine_version']}", ""]
    lines += [f"Model {known['model']}, client {known['client']}, {platform.machine()}.", ""]
    lines += ["| what must hold | holds | seen |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {what} | {holds} | {seen} |" for what, holds, seen in acceptance.rows), ""])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--url", default="")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--vllm", default="vllm", help="the command, as in `/opt/vllm/bin/vllm`")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--gap", type=float, default=GAP)
    parser.add_argument("--simulator", action="store_true")
    parser.add_argument("flags", nargs="*", help="more for `vllm serve`, after --")
    args = parser.parse_args()
    if not args.url and not args.model:
        parser.error("--url or --model is wanted")
    args.out.mkdir(parents=True, exist_ok=True)
    return args


def main() -> int:
    args = arguments()
    with serving(args) as url:
        acceptance = BenchAcceptance(args.out.resolve(), url)
        acceptance.measure("quick")
        run = acceptance.measure("agentic-quick")
        acceptance.gap(run, args.gap)
    (args.out / "page.md").write_text(bench_page(acceptance, run))
    return int(any(holds == "NO" for _, holds, _ in acceptance.rows))


if __name__ == "__main__":
    sys.exit(main())
