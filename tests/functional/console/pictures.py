"""Pictures of the console that the demo does not show (demo_pictures makes the others), and what pages cost.

As root: cd tests && export PYTHONPATH=../tools
         unshare -n sh -c 'ip link set lo up; ../.venv/bin/python -m functional.console.pictures'
"""

from __future__ import annotations

import base64
import json
import os
import signal
import ssl
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from functional.console.desk import ConsoleCluster, made_desk
from functional.report.browser import DESK, BrowserPage, browser
from functional.test_runs import add_runs, run_of_ten
from patience import wait_until

OUT = Path(__file__).parents[3] / "docs/guides/console"
_PACE = {
    "SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "1",
    "SPARKWRIGHT_SIMULATOR_STEP_MS": "20",
    "SPARKWRIGHT_SIMULATOR_WEIGHTS_GIB": "60",
}


def main() -> None:
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, made_desk(Path(folder)) as desk:
        desk.up(**_PACE)
        profile = Path(folder) / "browser"
        profile.mkdir()
        with browser(profile, "--ignore-certificate-errors") as page:
            pictures(desk, page)


def pictures(desk: ConsoleCluster, page: BrowserPage) -> None:
    save_screenshot(page.open(desk.url("login")), "sign-in")
    sign_in(page, desk.key("me", "operator"))
    over = threading.Event()
    clients = [
        threading.Thread(target=client, args=(desk, desk.key(f"agent-{n}", "client"), over), daemon=True)
        for n in range(5)
    ]
    for one in clients:
        one.start()
    viewers(desk)
    states(desk, page)
    add_runs(desk.shell, *(run_of_ten(0.1 + 0.02 * n, f"r-20261122-{n}a") for n in range(3)))
    desk.run("report", "r-20261122-2a", "--console")
    for path in ("usage", "switch/twin?to=spare"):
        page.open(desk.url(path))
        time.sleep(2.5)
        save_screenshot(page, path.partition("/")[0])
    page.script("location = arguments[0]", desk.url("runs/r-20261122-2a"))
    time.sleep(2)
    save_screenshot(page, "report")
    over.set()
    for one in clients:
        one.join()
    revoked(desk)


def states(desk: ConsoleCluster, page: BrowserPage) -> None:
    """The pictures of faults, and of two deployments."""
    page.open(desk.url())
    desk.faults().write_text("slow_load=40")
    desk.kill(1)
    desk.wait_until(lambda live: any(rank.done for rank in live.ranks))
    save_screenshot(page, "loading")
    desk.faults().write_text("")
    desk.wait_until(lambda live: live.phase == "ready" and live.relaunches == 1)
    os.kill(desk.service("supervisor"), signal.SIGSTOP)
    time.sleep(18)
    save_screenshot(page, "unknown")
    os.kill(desk.service("supervisor"), signal.SIGCONT)
    desk.up("spare", behind="twin", served="spare-tiny")
    page.open(desk.url("stop/spare"))
    page.script("document.querySelector('main form button').click()")
    desk.wait_until(lambda live: live.phase == "halted", "spare")
    save_screenshot(page.open(desk.url(), DESK, "dark"), "two-dark")


def revoked(desk: ConsoleCluster) -> None:
    """Prints how long the page of a revoked key is still there, on the command's own clock."""
    times = []
    for number in range(5):
        cookie = desk.signed_in(desk.key(f"guest-{number}", "viewer"))
        with desk.client(cookie) as client, client.stream("GET", "live") as answer:
            lines = answer.iter_lines()
            next(lines)
            desk.run("keys", "revoke", f"guest-{number}")
            keys = Path(desk.state / "door/keys.json").stat().st_mtime
            next(line for line in lines if "gone" in line)
            times.append(time.time() - keys)
    print(f"revoked: its page is emptied after {max(times):.2f} s at most (5 tries, since the keys were written)")


VIEWERS, SECONDS = 50, 30


def viewers(desk: ConsoleCluster) -> None:
    """Prints what fifty open pages cost the console's process, and how late an update comes."""
    cookie, pid = desk.signed_in(desk.key("wall", "viewer")), desk.service("console")
    file, delays, began = desk.state / "supervision/twin/live.json", list[float](), time.monotonic()

    def view() -> None:
        with desk.client(cookie) as client, client.stream("GET", "live") as answer:
            for line in answer.iter_lines():
                if line.startswith("data:") and time.monotonic() - began > 3:
                    delays.append(time.time() - file.stat().st_mtime)
                if time.monotonic() - began > SECONDS:
                    return

    threads = [threading.Thread(target=view) for _ in range(VIEWERS)]
    idle = cpu_seconds(pid)
    time.sleep(10)
    idle, began = (cpu_seconds(pid) - idle) / 10, time.monotonic()
    for one in threads:
        one.start()
    time.sleep(3)
    before, at = cpu_seconds(pid), time.monotonic()
    for one in threads:
        one.join()
    share = (cpu_seconds(pid) - before) / (time.monotonic() - at)
    ordered = sorted(delays)
    memory = next(line.split()[1] for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "VmRSS" in line)
    print(f"{VIEWERS} viewers: {len(delays)} updates, delay median {ordered[len(ordered) // 2]:.3f} s,")
    print(
        f"95 % within {ordered[len(ordered) * 95 // 100]:.3f} s; {share:.2%} of a core, {idle:.2%} with none;",
        memory,
        "kB",
    )


def cpu_seconds(pid: int) -> float:
    """Seconds of CPU time."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def sign_in(page: BrowserPage, key: str) -> None:
    page.script("document.getElementById('key').value = arguments[0]; document.querySelector('form').submit()", key)
    wait_until(lambda: page.script("return !!document.getElementById('live')"), "signed in")


def client(desk: ConsoleCluster, key: str, over: threading.Event) -> None:
    """Asks for one answer after the other."""
    context = ssl._create_unverified_context()
    turn = 0
    while not over.is_set():
        turn += 1
        words = f"system prompt of an agent {' '.join(map(str, range(900)))} turn {turn}"
        body = json.dumps({"model": "twin-tiny", "prompt": words, "max_tokens": 200 + 60 * (turn % 5)}).encode()
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        asked = urllib.request.Request(f"{desk.url()[:-9]}/v1/completions", body, headers)
        try:
            urllib.request.urlopen(asked, context=context, timeout=60).read()
        except OSError:
            over.wait(1)


def save_screenshot(page: BrowserPage, name: str, folder: Path = OUT, height: int = 1900) -> None:
    """Keep the page from its top, at most `height` pixels of it."""
    time.sleep(0.7)
    size = page.script("return [innerWidth, document.documentElement.scrollHeight]")
    clip = {"x": 0, "y": 0, "width": size[0], "height": min(size[1], height), "scale": 1}
    given = {"format": "webp", "quality": 82, "clip": clip, "captureBeyondViewport": True}
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.webp").write_bytes(base64.b64decode(page.call("Page.captureScreenshot", **given)["data"]))
    print(name, page.complaints)


if __name__ == "__main__":
    main()
