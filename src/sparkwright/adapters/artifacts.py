"""Private files of the user on this machine: evidence, seen events, gateway keys, calibrations."""

import errno
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sparkwright.domain.calibration import Calibration, Conditions
from sparkwright.domain.codec import from_tree
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import UsageError
from sparkwright.domain.foreign_json import read_json
from sparkwright.gateway.keys import BYTES, FIRST

if TYPE_CHECKING:
    from sparkwright.ports import Clock

_FULL = (errno.ENOSPC, errno.EDQUOT)


def write(path: Path, content: bytes, sync: bool = True, room: int = 0) -> None:
    """All of it or what was there before; sync: on the disk before it returns. Makes no folder. Raises OSError.

    room: bytes that the file is to hold, filled with blanks: where there is no room for a new file, the old one's is
    written over. That is not whole at every moment, but the best that a full disk allows.
    """
    content = content.ljust(room)
    try:
        _replace(path, content, sync)
    except OSError as error:
        if error.errno not in _FULL or not path.exists() or path.stat().st_size < len(content):
            raise
        handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        _fill(handle, content.ljust(path.stat().st_size), sync)


def _replace(path: Path, content: bytes, sync: bool) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        _fill(handle, content, sync)
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise
    if sync:
        # The new name, too
        handle = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _fill(handle: int, content: bytes, sync: bool) -> None:
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        if sync:
            os.fsync(handle)


_KEPT = 20
_RUN = re.compile(r"\d{8}T\d{6}Z(-\d+)?")


class FolderArtifacts:
    """Evidence under root/<deployment>/<UTC time of the first save>/<name>, for the user's eyes only.

    Keeps the last `kept` runs of a deployment. One object is one run.
    """

    def __init__(self, root: Path, clock: "Clock", kept: int = _KEPT) -> None:
        self._root = root
        self._clock = clock
        self._kept = kept
        self._folders: dict[str, Path] = {}

    def save(self, deployment: str, name: str, text: str) -> str:
        if deployment not in self._folders:
            runs = self._root / _plain(deployment)
            private_folder(runs)
            self._folders[deployment] = self._begin(runs)
            # Removes the oldest; only what looks like a run of ours.
            found = [entry for entry in runs.iterdir() if _RUN.fullmatch(entry.name)]
            for old in sorted(found, key=_age)[: -self._kept]:
                shutil.rmtree(old, ignore_errors=True)
        path = self._folders[deployment] / _plain(name)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        return str(path)

    def _begin(self, runs: Path) -> Path:
        """A new folder; another process may have begun one in the same second."""
        stamp = datetime.fromtimestamp(self._clock.now(), UTC).strftime("%Y%m%dT%H%M%SZ")
        for number in range(1, 1000):
            folder = runs / (stamp if number == 1 else f"{stamp}-{number}")
            try:
                folder.mkdir(mode=0o700)
            except FileExistsError:
                continue
            return folder
        raise FileExistsError(folder)


def newest_run(root: Path, deployment: str) -> Path | None:
    """The folder of the last run that left evidence, None without one."""
    folder = root / _plain(deployment)
    found = [entry for entry in folder.iterdir() if _RUN.fullmatch(entry.name)] if folder.is_dir() else []
    return max(found, key=_age, default=None)


def _age(run: Path) -> tuple[str, int]:
    stamp, _, number = run.name.partition("-")
    return stamp, int(number or 1)


def private_folder(folder: Path) -> None:
    """Makes missing parents private, too: mkdir(parents=True) would leave them to the umask."""
    if not folder.exists():
        private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _plain(name: str) -> str:
    """A name that stays inside its folder."""
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", name)
    return safe if safe.strip(".") else f"_{safe}"


_MOST = 200
_LONGEST = 1_000_000


def read_events(path: Path) -> dict[str, float]:
    """The events of a file; {} if it is missing or damaged."""
    with suppress(OSError, ValueError):
        with path.open("rb") as file:
            found = read_json(file.read(_LONGEST))
        if isinstance(found, dict):
            return {key: float(value) for key, value in found.items() if isinstance(value, int | float)}
    return {}


def write_events(path: Path, events: Mapping[str, float]) -> None:
    """The newest of them; a file that cannot be written costs no more than that they are shown again."""
    newest = dict(sorted(events.items(), key=lambda item: item[1])[-_MOST:])
    with suppress(OSError):
        private_folder(path.parent)
        write(path, json.dumps(newest).encode(), sync=False)


class FolderKeyring:
    """`root/CLUSTER/NAME`, files 0600 in folders 0700."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def fresh(self) -> bytes:
        return secrets.token_bytes(BYTES)

    def save(self, cluster: str, name: str, content: str) -> str:
        """Raises UsageError when it cannot be written."""
        path = self._root / cluster / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.unlink(missing_ok=True)  # one that others may read already stays open to them
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(content)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}") from error
        return str(path)

    def text(self, cluster: str, name: str) -> str:
        return _text(self._root / cluster / name)

    def saved(self, cluster: str) -> tuple[tuple[str, Secret], ...]:
        """(path, key) of those made from this machine, `default` first; one that cannot be read is passed over."""
        found = sorted((self._root / cluster).glob("*.key"), key=lambda path: (path.stem != FIRST, path.stem))
        return tuple((str(path), Secret(text)) for path in found if (text := _text(path)))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


_KEPT_CALIBRATIONS = 500
_MOST_BYTES = 100_000
_FAR = 2e11  # the year 8307


class FolderCalibrations:
    """Implements ports.Calibrations as root/<family>-<place>.json; the `kept` that were written last stay."""

    def __init__(self, root: Path, kept: int = _KEPT_CALIBRATIONS) -> None:
        self._root = root
        self._kept = kept

    def save(self, calibration: Calibration) -> str:
        under = calibration.conditions
        path = self._root / f"{_digest(under.family)}-{_digest(under.place)}.json"
        try:
            private_folder(self._root)
            write(path, json.dumps(asdict(calibration), indent=1, sort_keys=True).encode(), sync=False)
            # Removes the oldest; a file that another process took away meanwhile is no trouble.
            found = sorted(self._root.glob("*.json"), key=_modified, reverse=True)
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


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _read(path: Path) -> Calibration | None:
    """None for a file of another version of this program, one cut short, or no file of ours."""
    with suppress(OSError, ValueError):
        with path.open("rb") as file:
            tree = read_json(file.read(_MOST_BYTES))
        found = replace(from_tree(Calibration, tree), differs=())
        missing = {*asdict(found), *asdict(found.conditions)} - {*tree, *tree["conditions"], "differs"}
        return found if not missing and 0 <= found.at < _FAR else None
    return None
