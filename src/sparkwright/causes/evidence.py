"""The lines that count as evidence: their level, file listings, known harmless lines."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache

from sparkwright.causes.candidates import BAD, JSON_HEAD, is_exception, is_line, line_pattern, split_prefix
from sparkwright.causes.load import families, pattern_needs
from sparkwright.domain.diagnosis import Proof
from sparkwright.domain.finding import Severity
from sparkwright.engines.messages import message_of
from sparkwright.logscan.book import digest, linear
from sparkwright.logscan.sign import POSSIBLE

_HEAD = 90  # characters in which a line's level stands, behind the names of processes
_PROCESSES = re.compile(r"(?:\([^()]{1,120}\) ){1,4}")
_CACHED = 1 << 12
_ANY = ((0.0, 0), ("",))


@lru_cache(_CACHED)
def is_quiet(text: str) -> bool:
    """True if its writer logs it as information or a warning, and it is no exception and no end of a process."""
    if is_listing(text):
        return True
    start = found.end() if (found := _PROCESSES.match(text)) else 0
    head = text[start : start + (JSON_HEAD if text.startswith("{") else _HEAD)]
    body = split_prefix(text)[1].lstrip()
    level = line_pattern("level").search(head) or line_pattern("level").match(split_prefix(text)[1])
    if (level["bad"] or level["g"] in BAD) if level else not is_logged_as_fine(body):
        return False
    return not (is_line("fatal", text) or is_line("gone", text) or is_exception(body))


def is_logged_as_fine(body: str) -> bool:
    """True if an engine logs that message as information or a warning, though the line does not show its level."""
    if is_exception(body) or is_line("ends", body) or is_line("fatal", body):  # the same text may be raised
        return False
    message = message_of(body)
    return message is not None and message.level in ("I", "W")


def is_listing(text: str) -> bool:
    """True if it lists a file, a package or a layer: a name there is no message."""
    return line_pattern("listing").match(text) is not None


@cache
def _harmless() -> Sequence[tuple[float, Sequence[str], str, str]]:
    """Signs of harmless lines: (confidence, words of which a line has one, pattern, pattern of excluded lines)."""
    known = pattern_needs()
    causes = (cause for group in families().values() for cause in group if cause.severity is Severity.INFO)
    signs = (sign for cause in causes for sign in cause.signatures if sign.sure >= POSSIBLE)
    single = [sign for sign in signs if len(sign.patterns) == 1 and sign.times == 1 and not sign.only]
    return [(one.sure, known.get(digest(one.patterns[0]), _ANY)[1], one.patterns[0], one.unless) for one in single]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(linear(pattern), re.IGNORECASE)


@lru_cache(_CACHED)
def harmless(text: str) -> float:
    """The confidence that the line alone is harmless; 0.0 for an unknown line."""
    low = text.lower()
    possible = (row for row in _harmless() if any(word in low for word in row[1]))
    return max((row[0] for row in possible if _matches(text, row[2], row[3])), default=0.0)


def _matches(text: str, pattern: str, unless: str) -> bool:
    return bool(_compiled(pattern).search(text) and not (unless and _compiled(unless).search(text)))


def are_before(proofs: Iterable[Proof], served: Mapping[str, int]) -> bool:
    """True if all of them stand before the line by which their source was ready. served: source -> that line."""
    return all(proof.number <= served.get(proof.source, -1) for proof in proofs)
