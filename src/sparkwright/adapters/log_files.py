"""Logs on this machine: files, folders of an incident, standard input; plain or gzip, and growing ones."""

import codecs
import io
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import cast

from sparkwright.domain.errors import UsageError

CHUNK = 1 << 20
_LOOKED_AT = 1 << 16
_BLANK = b" \t\r\n\0"
_CONTROLS = "\t\n\r\f\b\x1b"
_MOST_ODD = 0.2  # share of letters that no text has
_MAGIC = b"\x1f\x8b"
# What other packed files begin with, and the command that unpacks them.
_PACKED = {b"\xfd7zXZ": "xzcat", b"\x28\xb5\x2f\xfd": "zstdcat", b"BZh": "bzcat", b"PK\x03\x04": "unzip -p"}
_MOST_FILES, _MOST_FOLDERS = 1_000, 10_000  # of a folder that is named; an incident has some ten files
# What files begin with that hold no log, by what they are.
_NO_TEXT = {
    b"\x89PNG\r\n": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
    b"RIFF": "a picture or a recording",
    b"%PDF-": "a PDF",
    b"\x7fELF": "a program",
    b"SQLite format 3": "a database",
    b"GGUF": "a model",
}
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_GZIP = 31  # zlib: a gzip header, any window
# What an incident's folder may hold beside logs.
_NO_LOGS = {".json", ".py", ".yaml", ".md", ".safetensors", ".gguf", ".bin", ".pt", ".pth", ".so", ".png", ".html"}


_TEXT_HINT = "give the text itself: copy it from the terminal, or docker logs CONTAINER 2>&1 | sparkwright diagnose -"


def log_files(path: Path) -> tuple[Path, ...]:
    """The file itself, or the logs in a folder, sorted. Raises UsageError."""
    if not path.exists():
        raise UsageError(f"{path}: there is no such file", "name a log, a folder of logs, or `-` for standard input")
    if not path.is_dir():
        return (path,)
    found = sorted(islice(_logs_below(path), _MOST_FILES + 1))
    if not found:
        raise UsageError(f"{path}: no logs in this folder", "name the files")
    if len(found) > _MOST_FILES:
        raise UsageError(
            f"{path}: more than {_MOST_FILES:,} files in this folder", "name the folder of the logs, or files"
        )
    return tuple(found)


def _logs_below(folder: Path) -> Iterator[Path]:
    """Files that may be logs; what may not be read or has gone is left out. Raises UsageError for a folder like `/`."""
    for looked, (place, _, names) in enumerate(os.walk(folder)):
        if looked > _MOST_FOLDERS:
            raise UsageError(
                f"{folder}: more than {_MOST_FOLDERS:,} folders in it", "name the folder of the logs, or files"
            )
        for path in (Path(place, name) for name in names):
            with suppress(OSError):
                if path.suffix not in _NO_LOGS and path.is_file():
                    yield path


def chunks(path: Path | None) -> Iterator[bytes]:
    """The bytes of a log, unpacked where it is gzip; None: standard input. Raises UsageError.

    A gzip file that was cut off gives what could be unpacked.
    """
    with _told(path), _opened(path) as raw:
        read, first = iter(lambda: raw.read(CHUNK), b""), raw.peek(8)[:8]
        if program := next((program for magic, program in _PACKED.items() if first.startswith(magic)), ""):
            raise UsageError("this log is packed", f"{program} FILE | sparkwright diagnose -")
        if kind := next((kind for magic, kind in _NO_TEXT.items() if first.startswith(magic[:8])), ""):
            raise UsageError(f"{path or 'standard input'} is {kind}, not a log", _TEXT_HINT)
        yield from _as_utf8(_gunzipped(read) if first[:2] == _MAGIC else read)


class Look:
    """Finds out whether a log that is read is text, from its first 64 KiB."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._head = b""
        self._empty = True

    def pass_on(self, content: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in content:
            self._head += chunk[: _LOOKED_AT - len(self._head)]
            self._empty = self._empty and not chunk.strip(_BLANK)
            yield chunk

    @property
    def trouble(self) -> str:
        """`is empty`, `is not text`; '' for a log. A power cut leaves zeros in a log: they do not count."""
        if self._empty:
            return "is empty"
        text = self._head.strip(_BLANK).replace(b"\0", b"").decode("utf-8", "replace")
        odd = sum(letter == "\ufffd" or (letter < " " and letter not in _CONTROLS) for letter in text)
        return "is not text" if text and odd > _MOST_ODD * len(text) else ""


@contextmanager
def _told(path: Path | None) -> Iterator[None]:
    """OSError as UsageError."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path or 'standard input'}: {error.strerror or error}") from error


@contextmanager
def _opened(path: Path | None) -> Iterator[io.BufferedReader]:
    if path is None:
        yield _stdin()
        return
    with path.open("rb", buffering=CHUNK) as file:
        yield cast(io.BufferedReader, file)


def _stdin() -> io.BufferedReader:
    return cast(io.BufferedReader, sys.stdin.buffer)


def _as_utf8(read: Iterator[bytes]) -> Iterator[bytes]:
    """UTF-16, which PowerShell's `>` writes, as UTF-8; everything else as it is."""
    first = next(read, b"")
    if not first.startswith(_UTF16):
        yield first
        yield from read
        return
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    for chunk in chain([first], read):
        yield decoder.decode(chunk).encode("utf-8", "replace")


def _gunzipped(packed: Iterator[bytes]) -> Iterator[bytes]:
    """All members, one after the other. gzip.GzipFile gives nothing of the last part of a file that was cut off."""
    engine = zlib.decompressobj(_GZIP)
    for data in packed:
        while data:
            try:
                chunk = engine.decompress(data, CHUNK)
            except zlib.error:
                return
            if chunk:
                yield chunk
            data = engine.unused_data if engine.eof else engine.unconsumed_tail
            engine = zlib.decompressobj(_GZIP) if engine.eof else engine


class Growing:
    """A log that grows. One that becomes shorter, or is replaced, is read from its beginning again."""

    def __init__(self, path: Path) -> None:
        """Raises UsageError."""
        self._path = path
        with _told(path):
            self._open()
            if self._file.peek(2)[:2] == _MAGIC:
                raise UsageError(f"{path}: a packed log does not grow", "leave --watch out")

    def _open(self) -> None:
        self._file = self._path.open("rb")
        self._inode = os.fstat(self._file.fileno()).st_ino

    def new(self) -> bytes:
        """The new bytes since the last call, b'' for none; at most CHUNK. Raises UsageError."""
        with _told(self._path):
            if chunk := self._file.read(CHUNK):
                return chunk
            with suppress(FileNotFoundError):
                now = self._path.stat()
                if now.st_ino != self._inode or now.st_size < self._file.tell():
                    self._file.close()
                    self._open()
            return self._file.read(CHUNK)

    def close(self) -> None:
        self._file.close()


def arriving() -> Iterator[bytes]:
    """Standard input as it comes."""
    while chunk := _stdin().read1(CHUNK):
        yield chunk
