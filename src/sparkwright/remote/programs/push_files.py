"""The files of a model on the node that sends them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import time
from pathlib import Path
from typing import NamedTuple

from sparkwright.remote.programs.wire import (
    CHANGED,
    CUT_OFF,
    PARTIAL,
    PIECE,
    SMALL,
    checksum_of,
    file_crc,
    name_of,
    noted_pieces,
    stays_below,
)

_SPLIT = re.compile(r"(.*)-00001-of-\d{5}\.gguf")
_SHA256 = re.compile(r"(?:.*/)?blobs/([0-9a-f]{64})")
_PATIENCE = 60.0


class Failed(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class File(NamedTuple):
    """path: below the root. real: where it is. part: where it is while it arrives here itself, '' when it does not."""

    path: str
    size: int
    mtime: int
    mode: int
    real: str
    part: str = ""


class Listing(NamedTuple):
    """single: files next to others of the same folder, not a folder."""

    files: list[File]
    links: list[tuple[str, str]]
    single: bool


def listing(source: Path) -> Listing:
    """Its files and its links. A link that leads out of the root travels as what it leads to."""
    found = Listing([], [], not source.is_dir())
    if not found.single:
        list_folder(str(source), "", found, ())
        return found
    split = _SPLIT.fullmatch(source.name)
    parts = sorted(source.parent.glob(f"{split[1]}-[0-9]*-of-[0-9]*.gguf")) if split else [source]
    found.files.extend(file_entry(part.name, str(part), part.stat()) for part in parts)
    return found


def list_folder(folder: str, prefix: str, found: Listing, above: tuple[str, ...]) -> None:
    """Lists a folder; above: the real paths of the folders that it is in. A link to one of them is left out."""
    above = (*above, os.path.realpath(folder))
    for one in sorted(os.scandir(folder), key=lambda one: one.name):
        path, linked = prefix + one.name, one.is_symlink()
        if one.name == PARTIAL or one.name.endswith(".incomplete"):
            continue
        if linked and stays_below(path, to := str(Path(one.path).readlink())):
            found.links.append((path, to))
        elif linked and (not Path(one.path).exists() or os.path.realpath(one.path) in above):
            continue
        elif one.is_dir():
            list_folder(one.path, path + "/", found, above)
        elif one.is_file():
            found.files.append(file_entry(path, one.path, one.stat(), linked))


def file_entry(path: str, at: str, state: os.stat_result, linked: bool = True) -> File:
    real = os.path.realpath(at) if linked else at
    return File(path, state.st_size, state.st_mtime_ns, stat.S_IMODE(state.st_mode) | 0o600, real)


def arriving(source: Path, chain: str) -> Listing:
    """The files that another node is sending here, as take.py has noted them. Raises Failed if nothing comes."""
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        for root in (source, source.parent):
            note = root / PARTIAL / f"{name_of(chain)}.plan"
            with contextlib.suppress(OSError):
                found = json.loads(note.read_text("utf-8"))
                note.unlink()
                files = [
                    File(path, size, mtime, mode, str(root / path), str(root / PARTIAL / name_of(path)))
                    for path, size, mtime, mode in found["files"]
                ]
                return Listing(files, [(path, to) for path, to in found["links"]], found["single"])
        time.sleep(0.1)
    raise Failed(CUT_OFF, f"nothing arrives in {source} from the node before")


def is_whole(file: File) -> bool:
    with contextlib.suppress(OSError):
        state = Path(file.real).stat()
        return (state.st_size, state.st_mtime_ns) == (file.size, file.mtime)
    return False


def ranges_of(file: File) -> list[tuple[int, int]]:
    """The present ranges of a file that arrives."""
    if is_whole(file):
        return [(0, file.size)]
    return [(at, at + many) for at, many, _ in noted_pieces(Path(file.part + ".journal"), file.size, file.mtime)]


def open_file(file: File) -> int:
    if file.part:
        with contextlib.suppress(FileNotFoundError):
            return os.open(file.part, os.O_RDONLY)
    return os.open(file.real, os.O_RDONLY)


def check(file: File, fd: int) -> None:
    state = os.fstat(fd)
    if state.st_size != file.size or (state.st_mtime_ns != file.mtime and not file.part):
        raise Failed(CHANGED, f"{file.path} changed while it was copied")


def published(file: File) -> str:
    """SHA-256 of a file that is named by it, as the publisher gave it; '' of others."""
    named = _SHA256.fullmatch(file.path)
    return named[1] if named else ""


def summed(file: File, known: dict[int, int]) -> str:
    """The checksum of a file that nobody has published one of; known: CRC-32 of pieces by their offset."""
    if len(known) == -(-file.size // PIECE):
        return checksum_of(known[at] for at in sorted(known))
    fd = os.open(file.real, os.O_RDONLY)
    try:
        every = range(0, file.size, PIECE)
        return checksum_of(known[n] if n in known else file_crc(fd, n, min(PIECE, file.size - n)) for n in every)
    finally:
        os.close(fd)


def drop_cache(file: File) -> None:
    """Takes a large file out of the page cache; small ones left it when they were read."""
    if file.size <= SMALL:
        return
    with contextlib.suppress(FileNotFoundError):
        fd = os.open(file.real, os.O_RDONLY)
        os.fdatasync(fd)  # a dirty page would stay
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
