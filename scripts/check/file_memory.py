"""Findings in files, remembered until the file changes: 10 MB of Python are parsed once, not at each check."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "check"


class FileMemory:
    """One JSON file in build/check. program: whose findings they are; another text of it remembers nothing.

    A file is the same if its size and its time of change are.
    """

    def __init__(self, program: Path, folder: Path = FOLDER) -> None:
        self._path = folder / f"{program.stem}.json"
        self._version = hashlib.sha256(program.read_bytes()).hexdigest()
        self._known = self._load()
        self._fresh = False

    def _load(self) -> dict[str, Any]:
        try:
            version, known = json.loads(self._path.read_text())
        except (OSError, ValueError):
            return {}
        return known if version == self._version and isinstance(known, dict) else {}

    def found_in(self, path: Path, find: Callable[[str], Any]) -> Any:
        """The findings, of JSON's types. find: makes them of the file's text."""
        seen = path.stat()
        mark = [seen.st_mtime_ns, seen.st_size]
        known = self._known.get(str(path))
        if known is None or known[0] != mark:
            known = self._known[str(path)] = [mark, find(path.read_text(encoding="utf-8"))]
            self._fresh = True
        return known[1]

    def save(self) -> None:
        """A folder that cannot be written costs time only."""
        if not self._fresh:
            return
        part = self._path.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(json.dumps([self._version, self._known]))
            part.replace(self._path)
        self._fresh = False
