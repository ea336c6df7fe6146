"""One scenario: started in namespaces of its own, its output recorded with paths that belong to no machine."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from record_failures.scenario import HERE, Scenario

OWN = ["unshare", "-m", "-n", "-u", "-i", "-p", "--fork", "--mount-proc", "--kill-child"]
HEAD, TAIL, AROUND, MOST = 90, 160, 40, 45_000


@dataclass(frozen=True, slots=True)
class RecordedFailure:
    """logs: text by file name. provoked: the explaining line is in one of them."""

    scenario: Scenario
    version: str
    logs: dict[str, str]

    @property
    def provoked(self) -> bool:
        lines = (line for text in self.logs.values() for line in cut_log(text, self.scenario).split("\n"))
        return any(self.scenario.line in line and not line.startswith("$ ") for line in lines)


def record(scenario: Scenario, work: Path, seconds: float = 0) -> RecordedFailure:
    """The output until it ended or its limit was over."""
    place = work / scenario.id
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    text = started(scenario.run, place, seconds or scenario.limit)
    logs = {name: _read(place / name) for name in scenario.logs} or {f"{scenario.id}.log": text}
    if scenario.logs:
        logs = {f"{scenario.id}.{name}": text for name, text in logs.items()}
    known = started(scenario.version, place, 60).strip().splitlines()[-1:] if scenario.version else []
    shutil.rmtree(place, ignore_errors=True)
    return RecordedFailure(scenario, "".join(known), {name: rewritten(text) for name, text in logs.items()})


def started(script: str, place: Path, limit: float) -> str:
    output = place.with_suffix(".output")
    environment = os.environ | {"WORK": str(place), "TOOLS": str(HERE), "TERM": "dumb"}
    with output.open("wb") as target:
        process = subprocess.Popen(
            [*OWN, "bash", "-c", f'source "{HERE}/enter.sh"\n{script}'],
            env=environment, stdin=subprocess.DEVNULL, stdout=target, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    text = _read(output)
    output.unlink()
    return text


def _read(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace") if path.exists() else ""


def rewritten(text: str) -> str:
    """The text without paths of the machine that recorded it."""
    sites = [path for path in os.environ.get("PYTHONPATH", "").split(":") if path]
    roots = [*((site, "/opt/engine") for site in sites), (sys.prefix, "/opt/venv"), (str(HERE), "/opt/tools")]
    roots += [(sys.base_prefix, "/usr")] if sys.base_prefix not in ("/usr", sys.prefix) else []
    for tools in os.environ.get("RECORD_TOOLS", "").split(":"):
        roots += [(tools, "/opt/venv")] if tools else []
    for path, name in roots:
        text = text.replace(path, name)
    text = re.sub(r"(?m)^environment: line \d+: +\d+ (\w[\w ]*?)  +.*$", r"\1", text)
    text = re.sub(r"/opt/tools/enter.sh: line \d+: ", "bash: ", text)
    return re.sub(r"/tmp/record-failures/[\w.-]+", "/srv", text)


def cut_log(text: str, scenario: Scenario) -> str:
    """Only the tail where the scenario asks for it; of a long log the start, the lines at the cause, and the end."""
    lines = text.split("\n")
    if scenario.tail:
        return "\n".join(lines[-scenario.tail :])
    if len(text) <= MOST or len(lines) <= HEAD + TAIL:
        return text
    chosen = {*range(HEAD), *range(len(lines) - TAIL, len(lines))}
    for number in [n for n, line in enumerate(lines) if scenario.line in line][:3]:
        chosen |= {*range(max(0, number - AROUND), min(len(lines), number + AROUND))}
    return "\n".join(lines[number] for number in sorted(chosen))
