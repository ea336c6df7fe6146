"""What both sides of a copy agree on."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import hmac
import os
import posixpath
import zlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

# COPYING lies in a folder for as long as it is being copied: between two files nothing else would tell half a model
# from all of it. Its name makes it an unfinished download for whoever inspects it.
PARTIAL, COPYING = ".sparkwright-partial", "sparkwright-copy.incomplete"
PIECE, BLOCK = 8 << 20, 1 << 20
SMALL, PACK, PACKED = 1 << 20, PIECE, 250  # files up to SMALL travel together: so many bytes, so many files at most
HEAD = 80  # bytes before each piece: NAME OFFSET LENGTH KIND
# What becomes of a piece once it is on the disk: its pages are kept for the verification of the file, are summed and
# dropped, or are dropped.
KEEP, SUM, DROP = "keep", "sum", "drop"
UNNAMED, SUMMED = "-", "crc32:"  # no checksum: each piece came with a code; a checksum by `sum_of`
SALT, _GET_TAG = 16, 0x10
NO_SPACE, CUT_OFF, FAILED, CHANGED = 11, 12, 23, 24

Block = bytes | memoryview


def name_of(path: str) -> str:
    """Of what has arrived of a file, until it is whole."""
    return hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def head_of(name: str, offset: int, length: int, kind: str) -> bytes:
    return f"{name} {offset} {length} {kind}".encode().ljust(HEAD - 1) + b"\n"


def stays(path: str, to: str) -> bool:
    """Whether a link at this path below a root leads to a place below it, by its text."""
    end = posixpath.normpath(posixpath.join(posixpath.dirname(path), to))
    return not to.startswith("/") and end != ".." and not end.startswith("../")


def code_of(key: bytes, head: bytes, blocks: Iterable[Block], gmac: bool = False) -> bytes:
    """Bytes that nobody without the key can make: HMAC-SHA-256, or GMAC with a key and a nonce of this head only.

    head: never the same for two contents. blocks: best of a size that stays in the CPU's cache.
    """
    made = hmac.new(key, head, "sha256")
    if gmac:
        return gmac_of(made.digest()[:28], blocks)
    for block in blocks:
        made.update(block)
    return made.digest()


@cache
def crypto() -> ctypes.CDLL | None:
    """The OpenSSL that this Python has loaded, where GMAC of it gives what NIST's test case 1 gives; else None."""
    try:
        found = ctypes.CDLL(import_module("_hashlib").__file__)
        found.EVP_CIPHER_CTX_new.restype = found.EVP_aes_128_gcm.restype = ctypes.c_void_p
        found.EVP_EncryptInit_ex.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_char_p] * 2
        found.EVP_EncryptUpdate.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_int]
        found.EVP_EncryptFinal_ex.argtypes = [ctypes.c_void_p] * 3
        found.EVP_CIPHER_CTX_ctrl.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
        found.EVP_CIPHER_CTX_free.argtypes = [ctypes.c_void_p]
        return found if gmac_of(bytes(28), (), found).hex() == "58e2fccefa7e3061367f1d57a4e7455a" else None
    except (ImportError, AttributeError, OSError, ValueError):
        return None


def gmac_of(key: bytes, blocks: Iterable[Block], openssl: ctypes.CDLL | None = None) -> bytes:
    """key: 16 bytes for AES-128 and a nonce of 12, both for this content only. Four times as fast as SHA-256."""
    used, many, tag = openssl or crypto(), ctypes.c_int(), ctypes.create_string_buffer(16)
    if not used:
        raise ValueError("no OpenSSL for GMAC")
    context = used.EVP_CIPHER_CTX_new()
    try:
        good = used.EVP_EncryptInit_ex(context, used.EVP_aes_128_gcm(), None, key[:16], key[16:])
        for block in blocks:
            data = block if isinstance(block, bytes) else (ctypes.c_char * len(block)).from_buffer(block)
            good &= used.EVP_EncryptUpdate(context, None, ctypes.byref(many), data, len(block))
        good &= used.EVP_EncryptFinal_ex(context, tag, ctypes.byref(many))
        if good & used.EVP_CIPHER_CTX_ctrl(context, _GET_TAG, len(tag), tag) != 1:
            raise ValueError("OpenSSL refuses GMAC")
    finally:
        used.EVP_CIPHER_CTX_free(context)
    return tag.raw


def sum_of(pieces: Iterable[int]) -> str:
    """The checksum of a file that nobody has published one of, from the CRC-32 of each piece.

    Two to three times as fast as SHA-256; finds every damage of up to 32 bits in a row.
    """
    return SUMMED + hashlib.sha256(b"".join(one.to_bytes(4, "big") for one in pieces)).hexdigest()


def blocks_of(fd: int, offset: int, length: int) -> Iterator[memoryview]:
    """A part of a file, in blocks that stay in the CPU's cache; each is gone with the next."""
    block = memoryview(bytearray(min(BLOCK, length)))
    for at in range(offset, offset + length, BLOCK):
        yield block[: os.preadv(fd, [block[: offset + length - at]], at)]


def crc_of(fd: int, offset: int, length: int) -> int:
    found = 0
    for block in blocks_of(fd, offset, length):
        found = zlib.crc32(block, found)
    return found


def noted(journal: Path, size: int, mtime: int) -> list[tuple[int, int, int]]:
    """Pieces that a journal names: offset, length, CRC-32 or -1; none where it is of another content."""
    with contextlib.suppress(OSError, ValueError):
        first, *lines = journal.read_text("ascii").split("\n")
        if first == f"of {size} {mtime}":
            words = (line.split() for line in lines[:-1])  # the last may be half written
            return [(int(a), int(b), int(c)) for a, b, c in (w for w in words if len(w) == 3)]
    return []


def missing(have: Iterable[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    """What is between ranges (from, to) of a file, in order."""
    found, at = [], 0
    for begin, to in sorted(have):
        if begin > at:
            found.append((at, begin))
        at = max(at, to)
    return [*found, (at, size)] if at < size else found


def give_way(yields: bool) -> None:
    """Behind other programs; where an engine serves, only with what CPUs and disk have left (SCHED_IDLE is for both).

    Priorities count inside a session only where the kernel groups processes by session: the group gives way, too.
    """
    os.nice(5)
    if not yields:
        return
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text("19", "ascii")


def widen(fd: int) -> None:
    """A pipe of 1 MiB in place of 64 KiB: a sixteenth of the switches between its two ends."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, 1 << 20)


def put_line(out: BinaryIO, line: str) -> None:
    """Also of a path whose bytes are no UTF-8."""
    out.write(line.encode("utf-8", "backslashreplace") + b"\n")
    out.flush()
