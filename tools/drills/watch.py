"""live.json on the head node, as it changes: one long-lived reader in the node, begun again when the node reboots."""

import json
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

READER = """
import json, os, select, sys, time
path, seen = sys.argv[1], None
while True:
    try:
        stat = os.stat(path)
        now = (stat.st_ino, stat.st_mtime_ns)
        if now != seen:
            with open(path) as file:
                tree = json.load(file)
            seen = now
            print(json.dumps([time.time(), tree]), flush=True)
    except FileNotFoundError:
        if seen != "":
            seen = ""
            print(json.dumps([time.time(), None]), flush=True)
    except ValueError:
        pass
    if select.select([sys.stdin], [], [], 0.02)[0]:
        break
"""


@dataclass(frozen=True, slots=True)
class Sight:
    """One version of live.json, and when it was first seen (the node's clock, which is this machine's)."""

    at: float
    phase: str
    refusing: bool = False
    incident: int = 0
    incidents: int = 0
    relaunches: int = 0
    troubles: tuple[str, ...] = ()
    reason: str = ""
    pid: int = 0

    @property
    def serving(self) -> bool:
        return self.phase in ("ready", "degraded") and not self.refusing


def sight_from_file(at: float, tree: dict[str, Any] | None) -> Sight:
    """`absent` without a file."""
    if tree is None:
        return Sight(at, "absent")
    troubles = tuple(sorted(str(kind) for kind, _ in tree.get("troubles", ())))
    known = {name: tree[name] for name in ("refusing", "incident", "incidents", "relaunches", "pid") if name in tree}
    return Sight(at, str(tree["phase"]), troubles=troubles, reason=str(tree.get("reason", "")), **known)


def changed(before: Sight | None, now: Sight) -> bool:
    """True if anything but the time differs."""
    return before is None or any(getattr(before, n) != getattr(now, n) for n in Sight.__slots__ if n != "at")


@dataclass
class Watcher:
    """argv: runs `python3 -u -c READER path` on the node, with its stdin open."""

    argv: Sequence[str]
    sights: list[Sight] = field(default_factory=list)
    last: dict[str, Any] | None = None
    said: dict[str, str] = field(default_factory=dict)
    """The sentence of each kind of trouble, as it was last."""
    memory: list[tuple[float, float]] = field(default_factory=list)
    """(when, bytes available) of the node that has least."""
    _stopped: bool = False
    _process: "subprocess.Popen[str] | None" = None

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    @property
    def now(self) -> Sight:
        return self.sights[-1] if self.sights else Sight(0.0, "unknown")

    def since(self, at: float) -> list[Sight]:
        return [one for one in list(self.sights) if one.at >= at]

    def _follow(self) -> None:
        while not self._stopped:
            self._process = subprocess.Popen(
                self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            with self._process as process:
                for line in process.stdout or ():
                    self._take(line)
            time.sleep(0.1)

    def _take(self, line: str) -> None:
        try:
            at, tree = json.loads(line)
        except ValueError:  # the node went off in the middle of a line
            return
        self.last = tree
        self.said.update({str(kind): str(text) for kind, text in (tree or {}).get("troubles", ())})
        known = [n["available"] for n in (tree or {}).get("nodes", ()) if n.get("available")]
        if known:
            self.memory.append((at, min(known)))
        now = sight_from_file(at, tree)
        if changed(self.sights[-1] if self.sights else None, now):
            self.sights.append(now)

    def close(self) -> None:
        self._stopped = True
        if self._process is not None and self._process.stdin:
            self._process.stdin.close()  # the reader on the node ends by it; killed here, it would stay there
        self._thread.join(5)
