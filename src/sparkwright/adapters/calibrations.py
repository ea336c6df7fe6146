"""What engines logged at earlier starts: one small JSON file for each rank and conditions, for the user's eyes only."""

import hashlib
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from sparkwright.adapters.artifacts import private_folder, write
from sparkwright.domain.calibration import Calibration, Conditions

_KEPT = 500
_MOST_BYTES = 100_000
_FAR = 2e11  # the year 8307
_FIGURES = ("weights", "kv", "kv_tokens", "graphs", "activations", "other")


class FolderCalibrations:
    """Implements ports.Calibrations as root/<family>-<place>.json; the `kept` that were written last stay."""

    def __init__(self, root: Path, kept: int = _KEPT) -> None:
        self._root = root
        self._kept = kept

    def save(self, calibration: Calibration) -> str:
        under = calibration.conditions
        path = self._root / f"{_digest(under.family)}-{_digest(under.place)}.json"
        try:
            private_folder(self._root)
            write(path, json.dumps(asdict(calibration), indent=1, sort_keys=True).encode(), sync=False)
            # Removes the oldest; a file that another process took away meanwhile is no trouble.
            found = sorted(self._root.glob("*.json"), key=_age, reverse=True)
            for old in found[self._kept :]:
                old.unlink(missing_ok=True)
        except OSError as error:
            return f"{path}: {error.strerror or error}"
        return ""

    def like(self, conditions: Conditions) -> tuple[Calibration, ...]:
        found = (_read(path) for path in sorted(self._root.glob(f"{_digest(conditions.family)}-*.json")))
        return tuple(one for one in found if one and one.conditions.family == conditions.family)


def _digest(words: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _read(path: Path) -> Calibration | None:
    """None for a file of another version of this program, one cut short, or no file of ours."""
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        with path.open("rb") as file:
            data = json.loads(file.read(_MOST_BYTES))
        under = data["conditions"]
        types = {"rank": int, "simulated": bool}
        strict = {f.name: _as(types.get(f.name, str))(under[f.name]) for f in fields(Conditions)}
        phases = tuple((_as(str)(name), float(seconds)) for name, seconds in data["phases"])
        figures: dict[str, Any] = {name: _figure(data[name]) for name in _FIGURES}
        more = {"pool": _as(int)(data["pool"]), "source": _as(str)(data["source"]), "at": _time(data["at"])}
        return Calibration(Conditions(**strict), **figures, **more, phases=phases)
    return None


def _figure(value: Any) -> int | None:
    return None if value is None else int(_as(int)(value))


def _time(value: Any) -> float:
    """Seconds since the epoch that are a date. Raises ValueError, TypeError."""
    seconds = float(value)
    if not 0 <= seconds < _FAR:
        raise ValueError(value)
    return seconds


def _as(kind: type) -> Callable[[Any], Any]:
    """The value if it is just that; True is no number here. Raises TypeError."""

    def same(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(value)
        return value

    return same
