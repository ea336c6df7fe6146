"""The operator's side: `status` again and again, as somebody would type it, and afterwards what was recorded."""

import re
import threading
import time
from typing import Any

from cluster.drive import NAME, CommandDriver
from drills.outage import OutageSample

PAUSE = 1.0
"""Seconds between two calls."""


class Operator:
    """A context: samples `status` while it is open. name: of the deployment, which a drill may replace."""

    def __init__(self, drive: CommandDriver) -> None:
        self.name = NAME
        self.samples: list[OutageSample] = []
        self._drive = drive
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> "Operator":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._over.wait(PAUSE):
            self.samples.append(self._status())

    def _status(self) -> OutageSample:
        at = time.time()
        done = self._drive.run("status", self.name)
        found = re.search(rf"{self.name}: (.+?)(?: for |  |$)", done.out, re.MULTILINE)
        text = f"{done.out}\n{done.err}"
        return OutageSample(at, time.time() - at, done.code, found[1] if found else "no state", text)

    def incidents(self) -> list[dict[str, Any]]:
        """The incidents of the drilled deployment; oldest first."""
        done = self._drive.run("incidents list", NAME, "--json")
        return list(reversed(done.json["incidents"])) if done.out else []

    def record(self) -> str:
        """The record for reading afterwards: `status`, and the incidents in full."""
        numbers = [str(tree["number"]) for tree in self.incidents()]
        shown = [self._drive.run("incidents show", number).out for number in numbers]
        return "\n".join([self._status().text, *shown])
