"""The last measurement of each drill, in one file under version control: a single drill can be repeated."""

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

from drills.figures import FigureRow
from drills.outage import View

FILE, LOGS = "tools/drills/results.json", "build/drills"


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The circumstances. at: when it began (UTC). load: of the last minute then, in which other programs' load is not
    distinguished from our own.

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
class DrillResult:
    row: FigureRow
    when: Circumstances = Circumstances()
    footprint: Mapping[str, str] = field(default_factory=dict)
    log: str = ""
    """What the supervisor reported, for a reader who asks why."""
    view: View | None = None


def read_circumstances(repository: Path) -> Circumstances:
    stamp = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    found = Circumstances(stamp, round(os.getloadavg()[0], 1), commit=commit(repository), nice=os.nice(0))
    return replace(found, cpus=os.cpu_count() or 0, python=platform.python_version())


def commit(repository: Path) -> str:
    """The commit of the checkout; empty in a copy without git."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(repository), *words], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    ours = ("src", "tools/drills", "tools/testbed", f":!{FILE}")
    changed = "+" if git("status", "--porcelain", *ours) else ""
    return git("rev-parse", "--short", "HEAD") + changed


def save(file: Path, logs: Path, one: DrillResult) -> None:
    """logs: a folder for the supervisors' logs, which are not under version control."""
    tree = {**_tree(file), one.row.name: _json(one)}
    file.write_text(json.dumps(tree, indent=1, sort_keys=True) + "\n")
    logs.mkdir(parents=True, exist_ok=True)
    (logs / f"{file_name(one.row.name)}.log").write_text(one.log)


def load(file: Path, names: Sequence[str]) -> list[DrillResult]:
    """The results in this order; drills that were never measured are left out."""
    tree = _tree(file)
    return [_read(tree[name]) for name in names if name in tree]


def file_name(name: str) -> str:
    return re.sub(r"\W+", "-", name.lower())


def _tree(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return found


def _json(one: DrillResult) -> dict[str, Any]:
    """Figures to the millisecond."""
    tree = asdict(replace(one, log=""))
    row = {name: round(value, 3) if isinstance(value, float) else value for name, value in tree["row"].items()}
    return {name: value for name, value in {**tree, "row": row}.items() if value}


def _read(tree: dict[str, Any]) -> DrillResult:
    row, view = tree["row"], tree.get("view")
    lists = {name: tuple(row[name]) for name in ("missed", "notes")}
    seen = View(**{name: tuple(v) if isinstance(v, list) else v for name, v in view.items()}) if view else None
    return DrillResult(FigureRow(**(row | lists)), Circumstances(**tree["when"]), tree.get("footprint", {}), view=seen)
