"""A real browser on a page of a file: headless Chromium, spoken to in its own protocol, as on a desk or on a phone."""

import contextlib
import gzip
import itertools
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from patience import PATIENCE

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DESK, PHONE = (1280, 900), (360, 740)
_AXE = Path(__file__).parents[2] / "data/console/axe-core-4.14.1.min.js.gz"
# Without a sandbox, since tests run as root; without what a browser asks of the network by itself.
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
_ALONE = ("--disable-background-networking", "--disable-component-update", "--remote-debugging-port=0")
_ANSWER = "(async () => { const given = %s; return await (function () { %s }).apply(null, given); })()"


class PageLeft(AssertionError):
    """The page became another one while something was asked of it."""


class BrowserPage:
    """One page. `script` runs JavaScript in it (`arguments` holds what is given) and returns what it returns."""

    def __init__(self, line: ClientConnection) -> None:
        self._line = line
        self._numbers = itertools.count(1)
        self._session = ""
        self._heard: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **given: object) -> Any:
        """One command of the protocol; what the page reports meanwhile is kept."""
        number = next(self._numbers)
        about = {"sessionId": self._session} if self._session else {}
        self._line.send(json.dumps({"id": number, "method": method, "params": given, **about}))
        while True:
            told = self._next()
            if told.get("id") == number:
                if "navigated" in str(told.get("error")):
                    raise PageLeft(method, told["error"])
                assert "error" not in told, (method, told["error"])
                return told["result"]

    def _next(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self._line.recv(timeout=PATIENCE))
        if "method" in told:
            self._heard.append(told)
        return told

    def show(self, path: Path, size: tuple[int, int] = DESK, theme: str = "light") -> "BrowserPage":
        return self.open(path.as_uri(), size, theme)

    def open(self, address: str, size: tuple[int, int] = DESK, theme: str = "light") -> "BrowserPage":
        """Loaded to its end."""
        phone = size == PHONE
        self.call("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.call(
            "Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=phone
        )
        self.call("Emulation.setTouchEmulationEnabled", enabled=phone)
        self._heard.clear()
        self.call("Page.navigate", url=address)
        while not self._told("Page.loadEventFired"):
            self._next()
        return self

    def script(self, text: str, *given: object) -> Any:
        expression = _ANSWER % (json.dumps(given), text)
        told = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def violations(self) -> Any:
        """Rules of axe-core that the page breaks: (rule, elements)."""
        self.call("Runtime.evaluate", expression=gzip.decompress(_AXE.read_bytes()).decode())
        return self.script("return axe.run().then(r => r.violations.map(v => [v.id, v.nodes.map(n => n.html)]))")

    def overflow(self) -> Any:
        """Pixels by which the page is wider than the window."""
        return self.script("return document.documentElement.scrollWidth - innerWidth")

    def plot(self, name: str, what: str) -> Any:
        """`values` or `drawn` of one plot."""
        return self.script(f"return window.sparkwright.plots.get(arguments[0]).{what}", name)

    def mouse(self, kind: str, x: float, y: float) -> None:
        """A pointer in the window, in pixels, as the system would send it."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def finger(self, kind: str, *at: float, when: float | None = None) -> None:
        """Touches or lets go. when: the time of the event for the page, in seconds since the epoch; None: now."""
        points = [{"x": at[0], "y": at[1]}] if at else []
        timestamp = {} if when is None else {"timestamp": when}
        self.call("Input.dispatchTouchEvent", type=kind, touchPoints=points, **timestamp)

    def press(self, key: str) -> None:
        """A key, for what has the focus."""
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def over(self, name: str) -> dict[str, float]:
        """The place of a plot's drawing area, moved into sight."""
        return dict(
            self.script(
                "const over = window.sparkwright.plots.get(arguments[0]).chart.over;"
                "over.scrollIntoView({block: 'center', behavior: 'instant'});"
                "const box = over.getBoundingClientRect();"
                "return {left: box.left, top: box.top, width: box.width, height: box.height}",
                name,
            )
        )

    def _told(self, method: str) -> list[dict[str, Any]]:
        return [told["params"] for told in self._heard if told["method"] == method]

    @property
    def requests(self) -> list[str]:
        """Every address that the page asked for, from the browser's own log."""
        return [params["request"]["url"] for params in self._told("Network.requestWillBeSent")]

    @property
    def complaints(self) -> list[str]:
        """Errors of scripts and of the page's policy."""
        thrown = [str(params["exceptionDetails"]) for params in self._told("Runtime.exceptionThrown")]
        return thrown + [params["entry"]["text"] for params in self._told("Log.entryAdded")]


@contextmanager
def browser(folder: Path, *flags: str) -> Iterator[BrowserPage]:
    """folder: for its profile, empty."""
    command = [BROWSER or "", *_FLAGS, *_ALONE, *flags, f"--user-data-dir={folder}", "about:blank"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    try:
        # No pings: while a test waits for something else nobody reads what the page reports, nor behind it the answer.
        with connect(_address(folder, process), max_size=None, compression=None, ping_interval=None) as line:
            yield BrowserPage(line)
    finally:
        _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ends it with all its helpers: they outlive it by a moment."""
    process.terminate()
    process.wait(timeout=PATIENCE)
    until = time.monotonic() + 5
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < until:
            os.killpg(process.pid, 0)
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)


def _address(folder: Path, process: "subprocess.Popen[bytes]") -> str:
    """Chromium writes port and path into its profile when it listens."""
    until = time.monotonic() + PATIENCE
    port = folder / "DevToolsActivePort"
    while time.monotonic() < until and process.poll() is None:
        lines = port.read_text().splitlines() if port.exists() else []
        if len(lines) > 1:
            return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
        time.sleep(0.05)
    raise AssertionError(f"no browser: {(folder / 'log').read_text(errors='replace')[-2000:]}")
