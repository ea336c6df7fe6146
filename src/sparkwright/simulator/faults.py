"""Faults on demand, from SPARKWRIGHT_TWIN_FAULT or, while running, from the file SPARKWRIGHT_TWIN_CONTROL names.

A comma list; `rank=N:` before one restricts it to that rank; options follow a colon:

    die@PHASE[:exit=N]     end at a phase (join, load, compile, kv, graphs, serve) with that exit code (default 1)
    freeze@PHASE           stop silently at a phase, for ever
    oom@load, oom@kv       torch.OutOfMemoryError, exit code 1
    die_after=N[:exit=N]   end when N requests have been answered
    freeze_after=N         stop computing after N requests: requests hang, /health stays 200
    spin_after=N           the same as a deadlock between ranks: the device is busy and moves no memory (activity.py)
    leak=MB                allocate so much, really, with every answered request
    grow=MB                allocate so much, really, at once
    accept=SHARE           drafted tokens are accepted that often from now on
    hits=SHARE             so much of what the prefix cache holds is found from now on
    slow_load=F            loading takes F times as long
    ignore_sigterm         only SIGKILL ends the process
    garbage                answers are `!!!!!!`
    freeze_api             the web server takes connections and says nothing; the engine goes on
    no_comm                joins, but its NCCL never connects: wrong interface (captures m4)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PHASES = ("join", "load", "compile", "kv", "graphs", "serve")
AT = ("die", "freeze", "oom")
COUNTED = ("die_after", "freeze_after", "spin_after")
VALUED = (*COUNTED, "leak", "grow", "accept", "hits", "slow_load")
PLAIN = ("ignore_sigterm", "garbage", "freeze_api", "no_comm")


@dataclass(frozen=True, slots=True)
class Fault:
    name: str
    phase: str = ""
    value: float = 0.0
    exit_code: int = 1
    rank: int | None = None


def parse(text: str) -> tuple[Fault, ...]:
    """Raises ValueError with the word that is not a fault."""
    return tuple(_one(word.strip()) for word in text.replace("\n", ",").split(",") if word.strip())


def _one(word: str) -> Fault:
    rank: int | None = None
    if word.startswith("rank="):
        number, _, word = word.removeprefix("rank=").partition(":")
        rank = int(number)
    head, _, option = word.partition(":")
    exit_code = int(option.removeprefix("exit=")) if option.startswith("exit=") else 1
    name, at, phase = head.partition("@")
    key, eq, value = head.partition("=")
    if at and name in AT and phase in PHASES:
        return Fault(name, phase=phase, exit_code=exit_code, rank=rank)
    if eq and key in VALUED:
        return Fault(key, value=float(value), exit_code=exit_code, rank=rank)
    if head in PLAIN:
        return Fault(head, rank=rank)
    raise ValueError(
        f"unknown fault {word!r}; known: {'@PHASE '.join(AT)}@PHASE {'=N '.join(VALUED)}=N {' '.join(PLAIN)}"
    )


class Faults:
    """What is wrong with this rank now. `refresh` reads the control file again when it has changed."""

    def __init__(self, text: str, control: str, rank: int) -> None:
        self.rank = rank
        self.control = Path(control) if control else None
        self._seen = -1.0
        self._given = parse(text)
        self.all = self._mine(self._given)
        self.refresh()

    def _mine(self, faults: tuple[Fault, ...]) -> tuple[Fault, ...]:
        return tuple(f for f in faults if f.rank in (None, self.rank))

    def refresh(self) -> None:
        """A missing file leaves what the environment gave; an unreadable word is ignored until the file changes."""
        if self.control is None or not self.control.is_file():
            return
        changed = self.control.stat().st_mtime
        if changed == self._seen:
            return
        self._seen = changed
        try:
            self.all = self._mine(parse(self.control.read_text(encoding="utf-8")))
        except ValueError:
            self.all = self._mine(self._given)

    def at(self, phase: str) -> Fault | None:
        return next((f for f in self.all if f.phase == phase), None)

    def value(self, name: str) -> float | None:
        return next((f.value for f in self.all if f.name == name), None)

    def has(self, name: str) -> bool:
        return any(f.name == name for f in self.all)

    def due(self, name: str, requests: int) -> Fault | None:
        """A fault of COUNTED, once so many requests have been answered."""
        return next((f for f in self.all if f.name == name and requests >= f.value), None)
