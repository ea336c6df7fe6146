"""Logs that wrap each line in JSON: `journalctl -o json`, and the files of Docker's json-file driver."""

import json
from datetime import UTC, datetime
from typing import Any

_SNIFFED = 64 * 1024
_MARKS = (b'"MESSAGE"', b'"__REALTIME_TIMESTAMP"', b'"log":"', b'"log": "')


class Unwrap:
    """Turns the bytes of a log into the bytes of plain lines, one for one; other logs pass as they are."""

    def __init__(self) -> None:
        self._wrapped: bool | None = None
        self._rest = b""

    def feed(self, chunk: bytes) -> bytes:
        self._rest += chunk
        if self._wrapped is None:
            self._wrapped = _sniffed(self._rest)
        if not self._wrapped:
            ready, self._rest = (b"", self._rest) if self._wrapped is None else (self._rest, b"")
            return ready
        whole, newline, self._rest = self._rest.rpartition(b"\n")
        return b"".join(unwrapped(line) + b"\n" for line in whole.split(b"\n")) if newline else b""

    def close(self) -> bytes:
        rest, self._rest = self._rest, b""
        return unwrapped(rest) if rest and (self._wrapped or _sniffed(rest + b"\n")) else rest


def _sniffed(data: bytes) -> bool | None:
    """Whether the first line that is not empty is such JSON; None while it is not all there."""
    first, ended, _ = data.lstrip()[:_SNIFFED].partition(b"\n")
    if not first.startswith(b"{"):
        return False if first else None
    return any(mark in first for mark in _MARKS) if ended or len(first) == _SNIFFED else None


def unwrapped(line: bytes) -> bytes:
    """The message behind its time; the line itself when it is no such JSON."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not isinstance(record, dict):
        return line
    message = record.get("MESSAGE", record.get("log"))
    return b" ".join(part for part in (_time(record), _source(record), _bytes(message)) if part)


def _bytes(message: Any) -> bytes:
    """journald gives a list of numbers where a message is no plain text (colours, progress bars)."""
    if isinstance(message, list):
        message = bytes(n for n in message if isinstance(n, int) and 0 <= n < 256).decode("utf-8", "replace")
    text = message if isinstance(message, str) else ""
    return text.rstrip("\n").replace("\n", "\r").encode("utf-8", "replace")


def _time(record: dict[str, Any]) -> bytes:
    stamp = record.get("__REALTIME_TIMESTAMP")
    if isinstance(stamp, str) and stamp.isdigit() and len(stamp) < 18:
        return datetime.fromtimestamp(int(stamp) / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").encode()
    time = record.get("time")
    return time.encode("utf-8", "replace")[:40] if isinstance(time, str) else b""


def _source(record: dict[str, Any]) -> bytes:
    """`kernel:` or the unit's name: some signs are only the kernel's."""
    name = record.get("SYSLOG_IDENTIFIER")
    return f"{name}:".encode("utf-8", "replace")[:80] if isinstance(name, str) else b""
