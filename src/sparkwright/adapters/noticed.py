"""Events that earlier checks have shown, kept on the machine of the person who called."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from sparkwright.adapters.artifacts import private_folder, write

_MOST = 200
_LONGEST = 1_000_000


def read_events(path: Path) -> dict[str, float]:
    """{} without a file, or for one that is damaged."""
    with suppress(OSError, ValueError, RecursionError):
        with path.open("rb") as file:
            found = json.loads(file.read(_LONGEST))
        if isinstance(found, dict):
            return {key: float(value) for key, value in found.items() if isinstance(value, int | float)}
    return {}


def write_events(path: Path, events: Mapping[str, float]) -> None:
    """The newest of them; a file that cannot be written costs no more than that they are shown again."""
    newest = dict(sorted(events.items(), key=lambda item: item[1])[-_MOST:])
    with suppress(OSError):
        private_folder(path.parent)
        write(path, json.dumps(newest).encode(), sync=False)
