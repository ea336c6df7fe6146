"""The history of predictions: one JSON object a line in a file of this machine, the newest last."""

import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from sparkwright.adapters.artifacts import private_folder, write
from sparkwright.domain.codec import from_tree
from sparkwright.domain.plan_history import PredictionError

_KEPT = 2000  # rows; older ones make room
_MOST_BYTES = 4 << 20


class FilePlanHistory:
    """Implements ports.PlanHistory."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, rows: tuple[PredictionError, ...]) -> str:
        """Adds rows. Returns why they could not be stored; '' if they were."""
        every = (*self.all(), *rows)[-_KEPT:]
        text = "".join(f"{json.dumps(asdict(row), separators=(',', ':'))}\n" for row in every)
        try:
            private_folder(self._path.parent)
            write(self._path, text.encode(), sync=False)
        except OSError as error:
            return f"{self._path}: {error.strerror or error}"
        return ""

    def all(self) -> tuple[PredictionError, ...]:
        """All rows; unreadable ones are skipped."""
        try:
            with self._path.open("rb") as file:
                lines = file.read(_MOST_BYTES).decode("utf-8", "replace").splitlines()
        except OSError:
            return ()
        found = []
        for line in lines:
            with suppress(ValueError, RecursionError, TypeError):
                found.append(from_tree(PredictionError, json.loads(line)))
        return tuple(found)
