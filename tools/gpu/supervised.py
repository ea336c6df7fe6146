"""Acceptance of the supervisor with the real vLLM: TP 2 over two nodes of one Linux machine with two GPUs (root).

    python tools/gpu/supervised.py --venv /opt/vllm --model /models/tiny-qwen3 --out /tmp/supervised

The nodes are those of acceptance.py. Each case does one thing to the ranks while requests go on, and waits until the
supervisor has restored the endpoint; what it saw and when is read from its own files on the head. --simulator rehearses
it without a GPU, simulated. Exit 1 when something was not as expected.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from acceptance import NAME, PORT, Acceptance, plan, prepared, run, summary

AGAIN = 600.0
# Seconds of service: so long the supervisor allows stillness for kernels that compile, and a little.
FRESH = 310.0 * float(os.environ.get("SPARKWRIGHT_SUPERVISOR_SCALE", "1"))
_CLIENT = """
import json, sys, time, urllib.request
BODY = json.dumps({"model": "tiny", "max_tokens": 8, "messages": [{"role": "user", "content": "Hi"}]}).encode()
while True:
    began = time.time()
    request = urllib.request.Request(sys.argv[1] + "/v1/chat/completions", BODY, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as reply:
            answer = str(json.load(reply)["usage"]["completion_tokens"]) + " tokens"
    except urllib.error.HTTPError as error:
        answer = f"HTTP {error.code}"
    except OSError as error:
        answer = type(error).__name__
    print(json.dumps([began, time.time(), answer]), flush=True)
    time.sleep(0.2)
"""


class SupervisedRun:
    """The supervisor on the head and its own report."""

    def __init__(self, a: Acceptance) -> None:
        self.a = a
        self.home = a.nodes.nodes[0].folder / "state" / "supervision" / NAME

    def live(self) -> dict[str, Any]:
        return json.loads((self.home / "live.json").read_text())

    def wait(self, what: str, good: Callable[[dict[str, Any]], bool], limit: float) -> float:
        """Seconds until live.json is `good`; NaN when it does not become so."""
        began = time.monotonic()
        while time.monotonic() - began < limit:
            if good(self.live()):
                return time.monotonic() - began
            time.sleep(0.05)
        self.a.expect(False, f"not within {limit:.0f} s", what)
        return float("nan")

    def footprint(self) -> str:
        """RSS, and CPU time over ten seconds of service."""
        pid = self.live()["pid"]
        ticks = f"cut -d' ' -f14,15 /proc/{pid}/stat"
        return self.a.on_node("spark-1", f"grep VmRSS /proc/{pid}/status; {ticks}; sleep 10; {ticks}")


@contextmanager
def traffic(a: Acceptance) -> Any:
    """Short requests one after the other from the head itself; each one's fate, as (begun, ended, reported)."""
    (a.work / "traffic.py").write_text(_CLIENT)
    fates: list[list[Any]] = []
    python = sys.executable
    words = f"{python} {a.work}/traffic.py http://127.0.0.1:{PORT}"
    process = a.nodes.popen("spark-1", words)

    def read() -> None:
        fates.extend(json.loads(line) for line in process.stdout)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield fates
    finally:
        process.terminate()
        reader.join(10)


def serve(a: Acceptance) -> None:
    """`up` leaves a supervisor on the head; nothing is wrong for half a minute of short requests."""
    a.sparkwright("up", str(a.recipe), limit=900)
    s = SupervisedRun(a)
    s.wait("supervised and ready", lambda live: live["phase"] == "ready", 60)
    a.talk()
    with traffic(a) as fates:
        time.sleep(30)
    a.expect(
        all("tokens" in answer for *_, answer in fates), f"{[f[2] for f in fates]}", f"{len(fates)} requests answered"
    )
    a.expect(s.live()["incidents"] == 0, "an incident", "no false alarm")
    a.note(s.footprint())
    a.sparkwright("status")


def learned(a: Acceptance) -> None:
    """The next plan counts with what the engine reported at this start."""
    found = a.sparkwright("plan", str(a.recipe), "--why", expect=(0, 1))
    a.expect(
        a.args.simulator or "measured at an earlier start" in found, "not in it", "what was measured is in the plan"
    )


def bench(a: Acceptance) -> None:
    """The deployment measured by its name, with its own provenance; pages and rows are kept next to the logs."""
    for profile in ("quick", "agentic"):
        a.sparkwright("bench", NAME, "--profile", profile, "--repeats", "2", "--tag", profile, limit=300)
        for form in ("html", "md", "json"):
            a.sparkwright("report", profile, "-o", str(a.out / f"{profile}.{form}"))


def hurt_rank(a: Acceptance, what: str, number: int, script: str) -> None:
    """Does it to a rank under traffic, and follows the supervisor back to service."""
    s, before = SupervisedRun(a), SupervisedRun(a).live()["relaunches"]
    with traffic(a) as fates:
        time.sleep(5)
        a.rank(number, script)
        at = time.time()
        seen = s.wait(f"{what}: seen", lambda live: live["phase"] not in ("ready", "degraded"), 120)
        a.expect(seen == seen, "never", f"{what}: seen", seen)
        back = s.wait(f"{what}: ready", lambda live: live["phase"] == "ready" and live["relaunches"] > before, AGAIN)
        a.expect(back == back, "never", f"{what}: serving again", seen + back)
        time.sleep(5)
    after = [f for f in fates if f[0] > at]
    answer = sorted({f[2] for f in after})
    a.note(f"requests after it: {len(after)}, answers: {answer}; longest {max(f[1] - f[0] for f in after):.1f} s")
    a.sparkwright("incidents", "list", expect=(0, 1))
    incident = s.live()["last_incident"]
    a.sparkwright("incidents", "show", str(incident), expect=(0, 1))
    a.sparkwright("diagnose", NAME, expect=(0, 1))
    a.sparkwright("status", expect=(0, 1))


def killed(a: Acceptance) -> None:
    """All of the worker's processes die at once."""
    hurt_rank(a, "worker killed", a.last, "kill -KILL $session")


def head_killed(a: Acceptance) -> None:
    """All of the head's processes die at once."""
    hurt_rank(a, "head killed", 0, "kill -KILL $session")


def frozen(a: Acceptance) -> None:
    """The worker stalls: every process is there and /health reports 200. Before FRESH it could be compiling."""
    time.sleep(max(0.0, SupervisedRun(a).live()["since"] + FRESH - time.time()))
    hurt_rank(a, "worker frozen", a.last, "kill -STOP $session")


def taken_down(a: Acceptance) -> None:
    """`down` takes the supervisor along."""
    a.sparkwright("down", NAME)
    a.nothing_left()
    a.expect(not SupervisedRun(a).home.exists(), "its folder is there", "no supervisor left")


CASES = (plan, serve, learned, bench, killed, head_killed, frozen, taken_down)


def main() -> int:
    with prepared(__doc__ or "", [case.__name__ for case in CASES]) as (a, only):
        a.supervised = True
        run(a, only, CASES)
        return summary(a)


if __name__ == "__main__":
    sys.exit(main())
