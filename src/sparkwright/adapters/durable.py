"""Small files that are whole at every moment, also when the power goes; and written on, also when the disk is full."""

import errno
import os
from contextlib import suppress
from pathlib import Path

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
        _over(path, content, sync)


def _replace(path: Path, content: bytes, sync: bool) -> None:
    part = path.with_name(f".{path.name}.part")
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


def _over(path: Path, content: bytes, sync: bool) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    _fill(handle, content.ljust(path.stat().st_size), sync)


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
