"""The pictures in docs/guides/console that `sparkwright demo --keep` shows, after a day that a fast clock has made.

As root: cd tests && export PYTHONPATH=../tools
         unshare -n sh -c 'ip link set lo up; ../.venv/bin/python -m functional.console.demo_pictures'
"""

from __future__ import annotations

import json
import math
import random
import re
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from functional.command import UserShell
from functional.console.pictures import OUT, cpu_seconds, save_screenshot
from functional.report.browser import DESK, PHONE, BrowserPage, browser
from patience import wait_until
from sparkwright.adapters.sqlite.database import opened
from sparkwright.adapters.sqlite.samples import keep_minute
from sparkwright.adapters.sqlite.usage import UsageStore
from sparkwright.domain.history import RequestRecord
from sparkwright.domain.live import DeploymentState, Live, LiveEngine, LiveNode
from sparkwright.supervisor.core.minutes import Minutes

DAY, STEP, GIB = 24 * 3600, 10, 1024**3
WATCHED = 30  # seconds
NARROW, SHORT = (880, 900), 1000


@dataclass(frozen=True)
class Demo:
    """console: its address. state: the head's folder."""

    shell: UserShell
    env: dict[str, str]
    console: str
    key: str
    state: Path

    def pid(self, program: str) -> int:
        (path,) = self.state.glob(f"supervision/*/services/{program}/child")
        return int(path.read_text())


@contextmanager
def kept_demo(folder: Path) -> Iterator[Demo]:
    """Starts it as its own output tells a user to reach it."""
    shell = UserShell(folder)
    code, out, err = shell.run("demo", "--keep")
    assert code == 0, err
    print(out)
    cluster = Path(re.findall(r"SPARKWRIGHT_CLUSTER=(\S+)", out)[0])
    (console, key), *_ = re.findall(r"console +(http\S+) +key (\S+)", out)
    env = {"SPARKWRIGHT_CLUSTER": str(cluster)}
    try:
        yield Demo(shell, env, console, key, cluster.parent / "spark-1/home/.local/state/sparkwright")
    finally:
        shell.run("down", "simulator", **env)
        shell.clean()


def write_day(state: Path, deployment: str = "simulator") -> None:
    """The last day, through the code that a supervisor and a gateway run, with a clock of our own."""
    connection, made, now, tokens = opened(state / "store.sqlite"), Minutes(), time.time(), 0.0
    began = now - DAY
    connection.execute("BEGIN")
    for at in range(int(began), int(now) - 120, STEP):
        hour = (at - began) / 3600
        if 14.2 < hour < 15.1:
            continue  # nobody watched
        phase = DeploymentState.FAILED if 6.1 < hour < 6.4 else DeploymentState.READY
        phase = DeploymentState.LOADING if 19.0 < hour < 19.04 else phase
        busy = max(0.0, math.sin(hour / 3.2)) if phase is DeploymentState.READY else 0.0
        tokens += STEP * 60 * busy
        nodes = tuple(live_node(name, at, busy, hour) for name in ("spark-1", "spark-2"))
        engine = LiveEngine(at, running=4 * busy, kv_usage=busy / 2, generation_tokens=tokens)
        if minute := made.add(Live(at, deployment, phase, began, nodes=nodes, engine=engine)):
            keep_minute(connection, minute)
    connection.execute("COMMIT")
    connection.close()
    requests(state, began, now)


def live_node(name: str, at: float, busy: float, hour: float) -> LiveNode:
    free = (34 - 0.3 * (hour % 6)) * GIB
    total = 121.6 * GIB
    return LiveNode(name, at, True, int(total), int(free), gpu_temperature=44 + 26 * busy, gpu_power=12 + 55 * busy)


def requests(state: Path, began: float, now: float) -> None:
    store, chance = UsageStore(state / "door"), random.Random(3)
    for at in range(int(began), int(now) - 300, 150):
        if 14.2 < (at - began) / 3600 < 15.1:
            continue
        key, counts = chance.choice(("agent-1", "agent-2", "laptop")), (chance.randrange(300, 9000), 0)
        first, answer = 0.1 + chance.random() / 2, chance.randrange(40, 700)
        done = RequestRecord(at, key, "twin-tiny", "/v1/chat/completions", 200, "finished", first + answer / 55, first)
        store.record(RequestRecord(**{**fields(done), "prompt": counts[0], "cached": counts[1], "completion": answer}))
        if chance.random() < 0.03:
            store.record(RequestRecord(at, "agent-2", "twin-tiny", "", 429, "refused", 0.0))


def fields(one: RequestRecord) -> dict[str, object]:
    return {name: getattr(one, name) for name in RequestRecord.__dataclass_fields__}


def client(demo: Demo, over: threading.Event) -> None:
    """One streamed answer after the other."""
    turn = 0
    while not over.is_set():
        turn += 1
        words = " ".join(f"agent {number}" for number in range(40 * (turn % 9 + 1)))
        chat = {"model": "twin-tiny", "messages": [{"role": "user", "content": words}], "stream": True}
        body = json.dumps(chat | {"max_tokens": 120 + 40 * (turn % 5)}).encode()
        headers = {"Authorization": f"Bearer {demo.key}", "Content-Type": "application/json"}
        address = demo.console.replace("/console/", "/v1/chat/completions")
        try:
            urllib.request.urlopen(urllib.request.Request(address, body, headers), timeout=60).read()
        except OSError:
            over.wait(1)


def main() -> None:
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, kept_demo(Path(folder)) as demo:
        write_day(demo.state)
        over = threading.Event()
        clients = [threading.Thread(target=client, args=(demo, over), daemon=True) for _ in range(3)]
        for one in clients:
            one.start()
        (profile := Path(folder) / "browser").mkdir()
        with browser(profile) as page:
            pictures(demo, page)
            print_costs(demo)
        over.set()
        for one in clients:
            one.join()


def pictures(demo: Demo, page: BrowserPage) -> None:
    page.open(f"{demo.console}login")
    page.script(
        "document.getElementById('key').value = arguments[0]; document.querySelector('form').submit()", demo.key
    )
    wait_until(lambda: bool(page.script("return !!document.getElementById('live')")), "signed in")
    for _ in range(1 if "quick" in sys.argv else 12):
        time.sleep(5)
        page.script("return 0")  # else the browser counts as gone
    save_screenshot(page.open(demo.console), "ready")
    save_screenshot(page.open(demo.console, DESK, "dark"), "ready-dark")
    save_screenshot(page.open(demo.console, PHONE), "phone", height=SHORT)
    # The README begins with the incident: narrow, so that it can be read there, and without the table of facts.
    page.open(f"{demo.console}incidents/1", NARROW)
    facts = "return [...document.querySelectorAll('h2')].find(one => one.innerText === 'Facts')"
    save_screenshot(page, "incidents", height=int(page.script(f"{facts}.getBoundingClientRect().top")) - 10)
    for name in ("requests", "connect", "keys"):
        save_screenshot(page.open(f"{demo.console}{name}"), name, height=SHORT)
    save_screenshot(page.open(f"{demo.console}requests", PHONE), "requests-phone", height=SHORT)
    page.open(f"{demo.console}logs/simulator")
    time.sleep(2.5)
    save_screenshot(page, "logs")
    page.open(f"{demo.console}chat/simulator")
    page.script("document.getElementById('prompt').value = 'What is a KV cache?'")
    page.script("document.getElementById('chat').requestSubmit()")
    wait_until(lambda: "answer tokens" in page.script("return document.body.innerText"), "an answer")
    save_screenshot(page, "chat")


def print_costs(demo: Demo) -> None:
    """Prints what the last day and the requests cost the two processes that keep and show them."""
    for program in ("console", "door", "supervisor"):
        pid = demo.pid(program)
        before = cpu_seconds(pid)
        time.sleep(WATCHED / 3)
        print(f"{program}: {(cpu_seconds(pid) - before) / (WATCHED / 3):.2%} of a core, three clients and one page")
    sizes = {path.name: path.stat().st_size for path in (demo.state / "store.sqlite", demo.state / "door/usage.sqlite")}
    print("bytes of a day:", sizes)


if __name__ == "__main__":
    main()
