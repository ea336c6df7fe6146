"""What each drill measured last, in a file of its own: one can be repeated, and a run that was cut off goes on."""

import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from drills.figures import Row

FOLDER = "build/drills"


@dataclass(frozen=True, slots=True)
class Circumstances:
    """at: when it began (UTC). load: of the last minute then, in which what else ran is not told from our own.

    start: seconds of the engine's own start, by a plain `up` before it. commit: with `+` when something had changed.
    nice: of the drills; below 0 they and their nodes were put before what else ran.
    """

    at: str = ""
    load: float = 0.0
    start: float = 0.0
    commit: str = ""
    cpus: int = 0
    python: str = ""
    nice: int = 0


@dataclass(frozen=True, slots=True)
class Kept:
    row: Row
    when: Circumstances = Circumstances()
    footprint: Mapping[str, str] = field(default_factory=dict)
    log: str = ""
    """What the supervisor told, for whoever looks why."""


def now(repository: Path) -> Circumstances:
    stamp = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    found = Circumstances(stamp, round(os.getloadavg()[0], 1), commit=commit(repository), nice=os.nice(0))
    return replace(found, cpus=os.cpu_count() or 0, python=platform.python_version())


def commit(repository: Path) -> str:
    """Of the checkout; empty in a copy without git."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(repository), *words], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = "+" if git("status", "--porcelain", "src", "tests/drills", "tests/testbed") else ""
    return git("rev-parse", "--short", "HEAD") + changed


def save(folder: Path, kept: Kept) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{slug(kept.row.name)}.json"
    path.write_text(json.dumps(asdict(replace(kept, log="")), indent=2) + "\n")
    path.with_suffix(".log").write_text(kept.log)


def load(folder: Path, names: Sequence[str]) -> list[Kept]:
    """In this order; what was never measured is left out."""
    paths = (folder / f"{slug(name)}.json" for name in names)
    return [_read(json.loads(path.read_text())) for path in paths if path.exists()]


def slug(name: str) -> str:
    return re.sub(r"\W+", "-", name.lower())


def _read(tree: dict[str, Any]) -> Kept:
    lists = {name: tuple(tree["row"][name]) for name in ("missed", "notes")}
    return Kept(Row(**(tree["row"] | lists)), Circumstances(**tree["when"]), tree["footprint"])
