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
    """at: when it began (UTC). load: of the last minute then, without what else ran to be told from our own.

    start: seconds of the engine's own start, by a plain `up` before it. commit: with `+` when something had changed.
    """

    at: str = ""
    load: float = 0.0
    start: float = 0.0
    commit: str = ""
    cpus: int = 0
    python: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    row: Row
    when: Circumstances = Circumstances()
    footprint: Mapping[str, str] = field(default_factory=dict)


def now(repository: Path) -> Circumstances:
    stamp = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    found = Circumstances(stamp, round(os.getloadavg()[0], 1), cpus=os.cpu_count() or 0, commit=commit(repository))
    return replace(found, python=platform.python_version())


def commit(repository: Path) -> str:
    """Of the checkout; empty in a copy without git."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(repository), *words], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = "+" if git("status", "--porcelain", "src", "tests/drills", "tests/testbed") else ""
    return git("rev-parse", "--short", "HEAD") + changed


def save(folder: Path, kept: Kept) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{slug(kept.row.name)}.json").write_text(json.dumps(asdict(kept), indent=2) + "\n")


def load(folder: Path, names: Sequence[str]) -> list[Kept]:
    """In this order; what was never measured is left out."""
    paths = (folder / f"{slug(name)}.json" for name in names)
    return [_read(json.loads(path.read_text())) for path in paths if path.exists()]


def slug(name: str) -> str:
    return re.sub(r"\W+", "-", name.lower())


def _read(tree: dict[str, Any]) -> Kept:
    lists = {name: tuple(tree["row"][name]) for name in ("missed", "notes")}
    return Kept(Row(**(tree["row"] | lists)), Circumstances(**tree["when"]), tree["footprint"])
