"""The guard of a load, proven on a machine that can freeze: one load without and with it, and one that grows too far.

Exit code 1: the load without the guard does not freeze the node, or with it the node freezes or the load does not end
in ready.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from vm.image import MIB, DiskImage, lacking
from vm.machine import Machine, MachineSample, peak_value

SHARD = 230 * MIB
HOLD, TURNS, GROW = 1640, 6, 240  # MiB, times, MiB
FLOOR = "60m"
LIMIT = 240.0
PROBE, PATIENCE, FROZEN = 3.0, 60.0, 5.0  # seconds
NOT_READY = 5


@dataclass
class MachineLoad:
    """The figures of one start. logins: seconds of each, PATIENCE if it took longer; idle: before the start."""

    name: str
    code: int | None
    seconds: float
    output: str
    idle: float
    logins: list[float]
    seen: list[MachineSample]

    def row(self) -> str:
        ended = {None: "stopped by hand", 0: "ready", 5: "stopped by the guard"}.get(self.code, f"exit {self.code}")
        figures = (peak_value(self.seen, "some"), peak_value(self.seen, "full"))
        psi = " | ".join(f"{value:.0f} %" for value in figures)
        longest = "over 60 s" if max(self.logins) >= PATIENCE else f"{max(self.logins):.1f} s"
        logins = f"{self.idle:.1f} s | {statistics.median(self.logins):.1f} s | {longest}"
        return f"| {self.name} | {psi} | {logins} | {ended} after {self.seconds:.0f} s |"

    def curve(self, every: int = 5) -> str:
        """PSI some, full and MemFree, each few seconds."""
        rows = (f"{one.some:.0f}/{one.full:.0f}/{one.free:.0f}" for one in self.seen[::every])
        return f"{self.name}, PSI some/full in % / MemFree in MiB, each {every} s: {' '.join(rows)}"


class RunProof:
    def __init__(self, folder: Path, image: DiskImage, swap: bool) -> None:
        self._folder, self._image, self._swap = folder, image, swap

    def load(self, name: str, guard: bool, grow: int = 0) -> MachineLoad:
        folder = self._folder / name.replace(" ", "-")
        machine = Machine(self._image, folder, self._swap)
        with machine.running():
            machine.ssh(f"echo {HOLD} {grow} {TURNS} >/tmp/engine")
            idle = statistics.median(machine.login(PATIENCE) or PATIENCE for _ in range(3))
            before = len(machine.seen())
            began = time.monotonic()
            with (folder / "out").open("wb") as out:
                up = subprocess.Popen(
                    self._argv(machine, guard), cwd=folder, env=self._env(folder), stdout=out, stderr=out
                )
            logins: list[float] = []
            while up.poll() is None and time.monotonic() - began < LIMIT:
                logins.append(machine.login(PATIENCE) or PATIENCE)
                time.sleep(PROBE)
            seconds, code = time.monotonic() - began, up.poll()
            if code is None:
                up.kill()
                up.wait()
            seen = machine.seen()[before:]
        found = MachineLoad(name, code, seconds, (folder / "out").read_text(), idle, logins, seen)
        print(found.row(), flush=True)
        return found

    def _argv(self, machine: Machine, guard: bool) -> list[str]:
        loading: dict[str, object] = {"floor": FLOOR} if guard else {"guard": False}
        program = (Path(__file__).parent / "engine.py").read_text()
        engine = {"name": "vllm", "version": "0.21.0", "runtime": "process", "entrypoint": ["python3", "-c", program]}
        recipe = {
            "name": "tiny",
            "title": "an engine that reads real files",
            "model": {"path": "tiny", "served_name": "tiny"},
            "engine": engine,
            "nodes": 1,
            "serving": {"context": 2048, "sequences": 4, "batched_tokens": 2048, "memory_fraction": 0.1},
            "loading": loading,
        }
        write(machine.folder / "tiny.yaml", recipe)
        write(machine.folder / "cluster.yaml", {"name": "vm", "nodes": ["spark-1"]})
        command = str(Path(sys.executable).with_name("sparkwright"))
        return [
            command,
            "up",
            "./tiny.yaml",
            "--ssh-config",
            str(machine.config),
            "--force",
            "a proof",
            "--no-supervise",
        ]

    def _env(self, folder: Path) -> dict[str, str]:
        return {**os.environ, "HOME": str(folder), "NO_COLOR": "1"}


def write(path: Path, content: Any) -> None:
    path.write_text(yaml.safe_dump(content, sort_keys=False))


def verdict(off: MachineLoad, on: MachineLoad, grows: MachineLoad) -> list[str]:
    """The claims that were not shown."""
    shown = {
        f"without the guard no login takes over {FROZEN:.0f} s": max(off.logins) > FROZEN,
        "without the guard PSI stays under 60 %": peak_value(off.seen, "some") > 60,
        "with the guard the load does not end in ready": on.code == 0,
        "with the guard logins are as slow as without": max(on.logins) < max(off.logins),
        "with the guard PSI is over 10 %": peak_value(on.seen, "full") < 10,
        "an engine that grows past the floor is not stopped": grows.code == NOT_READY,
        "the kernel has killed a task": not peak_value(on.seen, "killed") and not peak_value(grows.seen, "killed"),
    }
    return [text for text, true in shown.items() if not true]


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="vm", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--swap", action="store_true", help="with 1 GiB of swap on the slow disk")
    parser.add_argument("--folder", type=Path, default=Path("/var/cache/sparkwright-vm"), help="of disks and kernel")
    asked = parser.parse_args(words)
    if missing := lacking():
        print(f"vm: needs {', '.join(missing)}: apt-get install", file=sys.stderr)
        return 2
    image = DiskImage(asked.folder)
    image.build(1, SHARD)
    print(
        "| load | PSI some, most | full, most | login, idle | median | longest | end |\n|---|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as folder:
        proof = RunProof(Path(folder), image, asked.swap)
        found = [proof.load("guard off", guard=False), proof.load("guard on", guard=True)]
        found.append(proof.load("guard on, grows", guard=True, grow=GROW))
    for one in found:
        print("", one.curve(), *one.output.splitlines()[-12:], sep="\n")
    trouble = verdict(*found)
    print("", *(f"not shown: {text}" for text in trouble), sep="\n")
    return 1 if trouble else 0


sys.exit(main(sys.argv[1:]))
