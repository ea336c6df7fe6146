"""The pictures of the console in docs/guides/console: a simulated deployment, seen in headless Chromium.

unshare -n sh -c 'ip link set lo up; .venv/bin/python scripts/console_pictures.py'
"""

from __future__ import annotations

import base64
import json
import ssl
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from functional.console.desk import Desk, made_desk, until
from functional.report.browser import DESK, PHONE, Page, browser

OUT = Path(__file__).parents[3] / "docs/guides/console"
_PACE = {"SPARKWRIGHT_TWIN_TOKEN_SCALE": "1", "SPARKWRIGHT_TWIN_STEP_MS": "20"}


def main() -> None:
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, made_desk(Path(folder)) as desk:
        desk.up(**_PACE)
        profile = Path(folder) / "browser"
        profile.mkdir()
        with browser(profile, "--ignore-certificate-errors") as page:
            pictures(desk, page)


def pictures(desk: Desk, page: Page) -> None:
    shot(page.open(desk.url("login")), "sign-in")
    sign_in(page, desk.key("me", "operator"))
    over = threading.Event()
    clients = [threading.Thread(target=client, args=(desk, desk.key(f"agent-{n}", "client"), over)) for n in range(5)]
    for one in clients:
        one.start()
    time.sleep(25 if "quick" in sys.argv else 120)
    shot(page.open(desk.url()), "ready")
    shot(page.open(desk.url(), DESK, "dark"), "ready-dark")
    shot(page.open(desk.url(), PHONE), "phone")
    desk.kill(1)
    desk.until(lambda live: live.phase == "loading")
    shot(page.open(desk.url()), "loading")
    desk.until(lambda live: live.phase == "ready" and live.relaunches == 1)
    for path in ("incidents/1", "logs", "runs", "keys", "chat"):
        page.open(desk.url(path))
        time.sleep(2.5)
        shot(page, path.partition("/")[0])
    over.set()
    for one in clients:
        one.join()


def sign_in(page: Page, key: str) -> None:
    page.script("document.getElementById('key').value = arguments[0]; document.querySelector('form').submit()", key)
    until(lambda: page.script("return !!document.getElementById('live')"), "signed in")


def client(desk: Desk, key: str, over: threading.Event) -> None:
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


def shot(page: Page, name: str) -> None:
    time.sleep(0.7)
    size = page.script("return [innerWidth, document.documentElement.scrollHeight]")
    clip = {"x": 0, "y": 0, "width": size[0], "height": min(size[1], 1600), "scale": 1}
    given = {"format": "webp", "quality": 82, "clip": clip, "captureBeyondViewport": True}
    (OUT / f"{name}.webp").write_bytes(base64.b64decode(page.call("Page.captureScreenshot", **given)["data"]))
    print(name, page.complaints)


if __name__ == "__main__":
    main()
