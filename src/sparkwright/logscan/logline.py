"""One raw line of a log: without colours and control characters, its process and its time."""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from sparkwright.domain.printable import without_controls

LONGEST, FIRST, LAST = 4000, 400, 1600
_KEPT, _MOST = 1200, 16_000  # bytes of a line; of one with settings among the first
_DUMP = re.compile(rb"Args\(|args: \{|with config: ")
_WHO = re.compile(
    r"\((?P<a>(?:APIServer|EngineCore|Worker|RayWorker|DPCoordinator|ApiServer)\w*(?: pid=\d+)?)[^)]{0,60}\)"
    r"|\[(?P<b>rank ?\d+)\]|(?P<c>\b(?:TP|DP|PP)\d+(?: (?:TP|DP|PP|EP)\d+)*)\]|^(?P<d>[\w.-]+:\d+:\d+ \[\d+\])"
)
_MONTHS = {name: n for n, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}  # noqa: SIM905
_ISO = re.compile(
    r"(?P<y>20\d\d)[-/](?P<mo>\d\d)[-/](?P<d>\d\d)[T ,]+(?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)"
    r"(?:[.,](?P<f>\d{1,9}))?(?P<z>Z|[+-]\d\d:?\d\d)?"
)
_SHORT = re.compile(
    r"(?:INFO|WARNING|ERROR|DEBUG|CRITICAL) (?P<mo>\d\d)-(?P<d>\d\d) (?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)"
)
_GLOG = re.compile(r"\b[IWEF](?P<mo>\d\d)(?P<d>\d\d) (?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)(?:\.(?P<f>\d{1,9}))?")
_SYSLOG = re.compile(r"^(?P<m>[A-Z][a-z]{2}) +(?P<d>\d{1,2}) (?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d)\b")
_FORMS = (_ISO, _SHORT, _GLOG, _SYSLOG)
_TYPOGRAPHIC = str.maketrans(
    {**dict.fromkeys("\u2018\u2019\u201a\u2032", "'"), **dict.fromkeys("\u201c\u201d\u201e\u2033", '"')}
)
_LOOKED_AT = 160
_SETTINGS = re.compile(r"(?:server_args|[Aa]rgs|[Cc]onfig|Namespace|Options)\w*\(|non-default args|\bconfig: ")
_SETTING = re.compile(r"\b\w+=[^\s,]")
_KEY = re.compile(r"'\w+': ")  # SGLang 0.5.23 prints its settings as a mapping, of which a piece may come alone
_MANY_KEYS = 24
_MANY_SETTINGS = 8
_RAISED = re.compile(
    r"(?:^|[\s\]):])(?:[a-z_]\w{0,60}\.){0,8}[A-Z]\w{0,80}(?:Error|Exception|Interrupt|Failure|Timeout): "
)


@lru_cache(64)  # several patterns look at a line, one after the other
def decoded(line: bytes) -> str:
    """Text of at most twice LONGEST characters, whatever the bytes."""
    text = line[: 2 * LONGEST].decode("utf-8", "replace")
    if not text.isprintable():
        text = without_controls(text)
    return text if text.isascii() else text.translate(_TYPOGRAPHIC)


def is_settings(text: str) -> bool:
    """True if it prints a program's settings: what is named there may well be off. An exception's own line never is."""
    if _RAISED.search(text[:_LOOKED_AT]):
        return False
    if "input_value=" not in text and len(_KEY.findall(text)) >= _MANY_KEYS:
        return True
    return len(_SETTING.findall(text)) >= (_MANY_SETTINGS if _SETTINGS.search(text) else 2 * _MANY_SETTINGS)


def process_name(text: str) -> str:
    """The process that the line names: `Worker_TP1 pid=4385`, `rank1`, `TP1`, `spark-1:4523:4750 [0]`, or ''."""
    found = _WHO.search(text[:_LOOKED_AT])
    return next((group for group in found.groups() if group), "").strip() if found else ""


def line_time(text: str, year: int) -> float | None:
    """Seconds since the epoch of the line's own time (UTC where it has no zone); year: for those without one."""
    head = text[:_LOOKED_AT]
    match = next((found for form in _FORMS if (found := form.search(head))), None)
    return _seconds(match.groupdict(), year) if match else None


def _seconds(part: dict[str, str | None], year: int) -> float | None:
    month = part.get("mo") or _MONTHS.get((part.get("m") or "").lower(), 0)
    day, hour, minute, second = (int(part[key] or 0) for key in ("d", "h", "mi", "s"))
    try:
        moment = datetime(int(part.get("y") or year), int(month), day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return moment.timestamp() + float(f"0.{part.get('f') or 0}") - zone_seconds(part.get("z") or "")


def zone_seconds(text: str) -> float:
    """Seconds east of UTC of `+02:00`, `-0700`, `Z`, ''."""
    digits = text.replace(":", "")[1:]
    if len(digits) != 4 or not digits.isdigit():
        return 0.0
    return (int(digits[:2]) * 3600 + int(digits[2:]) * 60) * (-1 if text[0] == "-" else 1)


class Excerpt:
    """The first FIRST and the last LAST lines that were not like any before, of _KEPT bytes each."""

    def __init__(self) -> None:
        self._first: list[tuple[int, bytes]] = []
        self._last: deque[tuple[int, bytes]] = deque(maxlen=LAST)

    def needed(self, lines: list[int]) -> list[int]:
        """The lines of these that will be kept: once the first ones are there, only the last ones count."""
        return lines[-LAST:] if len(self._first) >= FIRST else lines

    def add(self, lines: Sequence[tuple[int, bytes]]) -> None:
        if len(self._first) >= FIRST and all(len(line) <= _KEPT for _, line in lines):
            self._last.extend(lines)
            return
        for number, line in lines:
            kept = line if len(line) <= _KEPT else self._shortened(line)
            (self._first if len(self._first) < FIRST else self._last).append((number, kept))

    def _shortened(self, line: bytes) -> bytes:
        if len(self._first) < FIRST and _DUMP.search(line, 0, _KEPT):
            return line[:_MOST]
        kept = line[:_KEPT]
        if b"\r" in line:  # several in one: of a traceback the end counts
            kept += b"\r" + line[-2 * _KEPT :].partition(b"\r")[2]
        return kept

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """(number from 1, raw line) in the order of the source; several in one record have its number."""
        for number, line in (*self._first, *self._last):
            yield from ((number, part) for part in line.split(b"\r"))
