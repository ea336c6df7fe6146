"""Logs that wrap each line in JSON, or that a terminal wrapped.

JSON is what `journalctl -o json` and Docker's json-file driver write, and vLLM with `--logging-config
'{"formatter": "json"}'` since 0.33.0, between lines of other programs that stay as they are.
"""

import json
import re
from datetime import UTC, datetime
from typing import Any

_SNIFFED = 64 * 1024
_NARROW, _WIDE = 60, 132  # columns that terminals and mails wrap at
_LONGEST_RECORD, _LONGEST_MESSAGE = 4000, 1 << 20  # bytes
_STREAMS = 64  # whose messages may be split at the same time
_TYPED = (b"$ ", b"+ ")
_SAME = 6  # bytes: lines that begin alike are records of their own
_CHUNK = re.compile(rb"[^\s-]*(?:-(?=\w))?")  # what is not broken: a word, or up to its hyphen
_SENTENCE_END = re.compile(rb"[.:!?][)\]\"'`]?$")
_RULER = re.compile(rb"([-=^@*_~])\1\1$")
_RECORD = re.compile(
    rb"""\s|$|[-+*#$>|=~^@<]|\[\.\.\.|\d{4}[-/]\d\d|\d\d[:-]\d\d\b|\[(?:rank)?\d|\((?:APIServer|Engine|\w*Worker)|[IWEF]\d{4}\s
    |(?:INFO|WARN|WARNING|ERROR|DEBUG|CRITICAL|FATAL)\b|Traceback\b|Exception\signored\b|File\s"|[\w.]*(?:Error|Exception|Warning)\b:
    |\d{1,4}\.\d\d\.\d{3}\.\d{3}\s[A-Z]\s|(?=[/\w])\S{1,200}:\d{1,6}:\s|[a-z][\w.-]{1,40}(?:\[\d+\])?:\s\S|\w+:\s(?:\s|error)|[\w.-]+:\d+:\d+\s\[|\S{1,60}\s{3}|/dev/\w+\s\s|CONTAINER\sID\s|Filesystem\s|State\s\s""",
    re.VERBOSE,
)
_MARKS = (b'"MESSAGE"', b'"__REALTIME_TIMESTAMP"', b'"log":"', b'"log": "')
# Python's logging as JSON (vllm/logging_utils/formatter.py of 0.33.0).
_LOGGING = re.compile(rb'\{[^\n]{0,200}"(?:levelname|asctime)": ?"')
_LONGEST_LINE = 1 << 20  # bytes that are held back until their line ends


def is_json(line: str) -> bool:
    """True if a line is a record of Python's logging, written as JSON."""
    return line.startswith("{") and '"levelname"' in line and line.rstrip().endswith("}")


def plain_text(line: str) -> str:
    """The line in the form that vLLM's own formatter gives it, or as it is if it is no such record."""
    record = _record(line[: 2 * _LONGEST_MESSAGE].encode("utf-8", "replace"))
    if record is None or not isinstance(record.get("message"), str):
        return line
    level, name = str(record.get("levelname", "INFO"))[:10], str(record.get("name", ""))[:80]
    who, pid = str(record.get("processName", ""))[:40], record.get("process")
    head = f"({who} pid={pid}) " if isinstance(pid, int) and re.fullmatch(r"[\w-]+", who) else ""
    time = re.match(r"(?:\d{4}-)?(\d\d-\d\d)[ T](\d\d:\d\d:\d\d)", str(record.get("asctime", ""))[:40])
    stamp = f" {time[1]} {time[2]}" if time else ""
    prefix = f"{head}{level}{stamp} [{name}] " if stamp else f"{head}{level}: "
    body = "\n".join(text for key in ("message", "exc_info") if isinstance(text := record.get(key), str))
    return "\r".join(prefix + part for part in body.split("\n"))


class Unwrap:
    """Turns the bytes of a log into the bytes of plain lines, one for one; other logs pass as they are."""

    def __init__(self) -> None:
        self._wrapped: bool | None = None
        self._rest = b""
        self._begun: dict[str, bytearray] = {}  # messages that their writer split, by where they come from

    def feed(self, chunk: bytes) -> bytes:
        self._rest += chunk
        if self._wrapped is None:
            self._wrapped = _sniffed(self._rest)
        if self._wrapped is None:
            return self._blank()
        if not self._wrapped:
            whole, newline, self._rest = self._rest.rpartition(b"\n")
            if len(self._rest) > _LONGEST_LINE:
                whole, newline, self._rest = whole + newline + self._rest, b"", b""
            return _plain(whole + newline)
        whole, newline, self._rest = self._rest.rpartition(b"\n")
        return b"".join(self._joined(line) + b"\n" for line in whole.split(b"\n")) if newline else b""

    def _blank(self) -> bytes:
        """The empty lines that a log begins with, once they are too many to keep until its first line comes."""
        end = len(self._rest) - len(self._rest.lstrip())
        if end < _SNIFFED:
            return b""
        end = self._rest.rfind(b"\n", 0, end) + 1 or end
        blank, self._rest = self._rest[:end], self._rest[end:]
        return blank

    def close(self) -> bytes:
        rest, self._rest = self._rest, b""
        last = self._joined(rest) if rest and (self._wrapped or _sniffed(rest + b"\n")) else _plain(rest)
        return b"\n".join((*self._begun.values(), last)) if self._begun else last

    def _joined(self, line: bytes) -> bytes:
        """A message that was split (Docker: at 16 KiB, journald: at LineMax) in the line of its last part."""
        record = _record(line)
        if record is None:
            return line
        origin = str(record.get("_STREAM_ID") or record.get("stream") or record.get("CONTAINER_ID"))[:80]
        message = self._begun.pop(origin, None) or bytearray(_before(record))
        message += _message(record)
        if not _is_split(record) or len(message) > _LONGEST_MESSAGE or len(self._begun) > _STREAMS:
            return bytes(message).rstrip(b" ")
        self._begun[origin] = message
        return b""


def _plain(block: bytes) -> bytes:
    """The block with records of Python's logging as lines of text; other lines as they are."""
    if not _LOGGING.search(block):
        return block
    lines = (line.decode("utf-8", "replace") if line.startswith(b"{") else "" for line in block.split(b"\n"))
    pairs = zip(lines, block.split(b"\n"), strict=True)
    return b"\n".join(plain_text(text).encode("utf-8", "replace") if is_json(text) else raw for text, raw in pairs)


def _sniffed(data: bytes) -> bool | None:
    """True if the first line that is not empty is such JSON; None while it is incomplete."""
    first, ended, _ = data.lstrip()[:_SNIFFED].partition(b"\n")
    if not first.startswith(b"{"):
        return False if first else None
    return any(mark in first for mark in _MARKS) if ended or len(first) == _SNIFFED else None


def _record(line: bytes) -> dict[str, Any] | None:
    """None for a line that is no such JSON."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _is_split(record: dict[str, Any]) -> bool:
    """True if the message continues in the next record."""
    log = record.get("log")
    if "MESSAGE" in record or not isinstance(log, str):
        return record.get("_LINE_BREAK") == "line-max" or record.get("CONTAINER_PARTIAL_MESSAGE") == "true"
    return not log.endswith("\n") and "stream" in record


def _message(record: dict[str, Any]) -> bytes:
    """journald gives a list of numbers where a message is no plain text (colours, progress bars)."""
    message = record.get("MESSAGE", record.get("log"))
    if isinstance(message, list):
        message = bytes(n for n in message if isinstance(n, int) and 0 <= n < 256).decode("utf-8", "replace")
    text = message if isinstance(message, str) else ""
    return text.rstrip("\n").replace("\n", "\r").encode("utf-8", "replace")


def _before(record: dict[str, Any]) -> bytes:
    """The time, and `kernel:` or the unit's name: some signs are only the kernel's."""
    stamp, name = record.get("__REALTIME_TIMESTAMP"), record.get("SYSLOG_IDENTIFIER")
    time = record.get("time")
    if isinstance(stamp, str) and stamp.isdigit() and len(stamp) < 18:
        time = datetime.fromtimestamp(int(stamp) / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    parts = (time[:40] if isinstance(time, str) else "", f"{name[:79]}:" if isinstance(name, str) else "")
    return "".join(f"{part} " for part in parts if part).encode("utf-8", "replace")


def rejoined(block: bytes) -> bytes:
    """The block with each wrapped record on its first line, and empty lines where the rest of it was.

    Wrapped is, in a block without long lines, a line after which the next word had no room; no record begins with it.
    """
    if max(map(len, block[:_SNIFFED].split(b"\n"))) > _WIDE:
        return block
    lines = block.split(b"\n")
    width = max(map(len, lines))
    if len(lines) == 1 or not _NARROW <= width <= _WIDE:
        return block
    record, last = 0, lines[0]
    for number, line in enumerate(lines[1:], 1):
        if _goes_on(lines[record], last, line, width):
            lines[record] += _between(last, line, width) + line
            lines[number] = b""
        else:
            record = number
        last = line
    return b"\n".join(lines)


def _goes_on(record: bytes, last: bytes, line: bytes, width: int) -> bool:
    room = width - len(last) - 1
    if room >= len(line) or len(record) > _LONGEST_RECORD or not record or record[:_SAME] == line[:_SAME]:
        return False
    if record.startswith(_TYPED) or _RECORD.match(line) or _RULER.search(last[-3:]):
        return False
    if not line[:1].islower() and _SENTENCE_END.search(last[-2:]):
        return False
    chunk = _CHUNK.match(line)
    return chunk is not None and len(chunk[0]) > room


def _between(last: bytes, line: bytes, width: int) -> bytes:
    """Nothing within a word that was too long for a line, or after its hyphen."""
    if last.endswith(b"-") or (len(last) == width and len(last.split()[-1]) + len(line.split()[0]) > width):
        return b""
    return b" "
