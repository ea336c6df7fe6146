"""What both sides of a copy agree on."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import posixpath

# COPYING lies in a folder for as long as it is being copied: between two files nothing else would tell half a model
# from all of it. Its name makes it an unfinished download for whoever inspects it.
PARTIAL, COPYING = ".sparkwright-partial", "sparkwright-copy.incomplete"
PIECE = 8 << 20
UNNAMED = "-"  # no checksum of a file that nobody has published one of: each piece of it came with a code
NO_SPACE, CUT_OFF, FAILED, CHANGED = 11, 12, 23, 24


def name_of(path: str) -> str:
    """Of what has arrived of a file, until it is whole."""
    return hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def stays(path: str, to: str) -> bool:
    """Whether a link at this path below a root leads to a place below it, by its text."""
    end = posixpath.normpath(posixpath.join(posixpath.dirname(path), to))
    return not to.startswith("/") and end != ".." and not end.startswith("../")


def code_of(key: bytes, head: bytes, piece: bytes | memoryview) -> bytes:
    """32 bytes that nobody without the key can make. By SHA-256, which CPUs of today compute in hardware."""
    made = hmac.new(key, head, "sha256")
    made.update(piece)
    return made.digest()


def widen(fd: int) -> None:
    """A pipe of 1 MiB in place of 64 KiB: a sixteenth of the switches between its two ends."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, 1 << 20)
