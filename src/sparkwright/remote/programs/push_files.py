"""The files of a model on the node that sends them."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path
from typing import NamedTuple

from sparkwright.remote.programs.wire import CHANGED, COPYING, PARTIAL, PIECE, stays

_SPLIT = re.compile(r"(.*)-00001-of-\d{5}\.gguf")
_SHA256 = re.compile(r"(?:.*/)?blobs/([0-9a-f]{64})")


class Failed(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class File(NamedTuple):
    path: str
    size: int
    mtime: int
    mode: int
    real: str


def listing(source: Path) -> tuple[list[File], list[tuple[str, str]]]:
    """Its files and its links. A link that leads out of the root travels as what it leads to."""
    if source.is_dir():
        files: list[File] = []
        links: list[tuple[str, str]] = []
        walk(source, "", (files, links))
        return files, links
    split = _SPLIT.fullmatch(source.name)
    parts = sorted(source.parent.glob(f"{split[1]}-[0-9]*-of-[0-9]*.gguf")) if split else [source]
    return [entry(part.name, part) for part in parts], []


def walk(folder: Path, prefix: str, found: tuple[list[File], list[tuple[str, str]]]) -> None:
    for one in sorted(folder.iterdir()):
        path = prefix + one.name
        if one.name in (PARTIAL, COPYING):
            continue
        if one.is_symlink() and stays(path, str(one.readlink())):
            found[1].append((path, str(one.readlink())))
        elif one.is_dir():
            walk(one, path + "/", found)
        elif one.is_file():
            found[0].append(entry(path, one))


def entry(path: str, at: Path) -> File:
    state = at.stat()
    return File(path, state.st_size, state.st_mtime_ns, stat.S_IMODE(state.st_mode) | 0o600, os.path.realpath(at))


def check(file: File, fd: int) -> None:
    state = os.fstat(fd)
    if (state.st_size, state.st_mtime_ns) != (file.size, file.mtime):
        raise Failed(CHANGED, f"{file.path} changed while it was copied")


def published(file: File) -> str:
    """SHA-256 of a file that is named by it, as the publisher gave it; '' of others."""
    named = _SHA256.fullmatch(file.path)
    return named[1] if named else ""


def digest(file: File) -> str:
    """SHA-256 of what this node has."""
    found = hashlib.sha256()
    with Path(file.real).open("rb", buffering=0) as opened:
        while block := opened.read(PIECE):
            found.update(block)
    return found.hexdigest()


def drop(file: File) -> None:
    """Takes it out of the page cache."""
    fd = os.open(file.real, os.O_RDONLY)
    os.fdatasync(fd)  # a dirty page would stay
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
