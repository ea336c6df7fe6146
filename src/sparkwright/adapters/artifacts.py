"""Evidence on this machine: logs of ranks that failed, plans, answers. One folder per run."""

import errno
import os
import re
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

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
        _sync_folder(path.parent)


def _fill(handle: int, content: bytes, sync: bool) -> None:
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        if sync:
            os.fsync(handle)


def _sync_folder(folder: Path) -> None:
    """The new name, too."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_KEPT = 20
_RUN = re.compile(r"\d{8}T\d{6}Z(-\d+)?")


class FolderArtifacts:
    """Implements ports.Artifacts under root/<deployment>/<UTC time of the first save>/<name>, for the user's eyes only.

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
