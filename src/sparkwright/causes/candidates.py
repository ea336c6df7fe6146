"""The lines of a log that may explain a failure, weighed by what they are, and the mechanisms that they show.

Lines are weighed by their form (an exception's own line, a level, a word), not by what program wrote them; a line that
only reports the failure of something else never outweighs the line with the reason.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sparkwright.causes.load import pattern_needs
from sparkwright.causes.messages import StatedCause
from sparkwright.domain.values import dataclass, replace
from sparkwright.engines.dialect import of_a_client
from sparkwright.logscan.book import digest, linear
from sparkwright.logscan.logline import is_settings, line_time

_FILE = Path(__file__).with_name("mechanisms") / "mechanisms.toml"
_SHORTEST = 4
_MESSAGE = 3  # lines
EXCEPTION, STRONG = 4.0, 2.5  # kinds of lines: a weaker one is no reason when the engine went on to a later phase
MECHANISM = 1.0  # more weight for a line with one
_HEADED = 2.0  # more weight for the message below an exception's name than for the name
_DEEPER = 0.1  # for each exception that caused the one above it
_TYPED = ("$ ", "+ ")  # commands as a shell shows them
JSON_HEAD = 300  # characters of a record in JSON in which its level stands
BAD, MILD = ("E", "F", "C"), ("I", "W", "N", "D")  # letters of levels
_ANY_CASE = ("fatal", "said", "gone", "bad", "none", "goes_on")
_SENTENCE = 20  # characters
_ANY = ((0.0, 0), ("",))  # of a pattern of which no word is known
_STANDARD = r"[^\"]*/lib/python3\.\d+/(?!site-packages|dist-packages)"  # frames there say little
_PLACE = re.compile(rf'File "(?!{_STANDARD})(?P<file>[^"]{{1,200}})", line (?P<line>\d+), in (?P<name>[\w<>.]{{1,80}})')
_REQUEST = re.compile(r"Exception (?:occurred|happened) during processing of request from ")  # Python's socketserver
_HUNG_UP = re.compile(r"(?:Connection(?:Reset|Aborted)|BrokenPipe)Error: ")
_ADDRESS = re.compile(r"\b(?:https?|ftp)://\S{1,500}")
_CARETS = re.compile(r"[\s^~]*")
_GIVEN = re.compile(r" \[type=\w+, input_value=.*")  # what pydantic was given
_LOGGER = re.compile(r"\b(?P<place>[\w/.-]{2,60}\.(?:py|cc|cpp|cu|go|rs|c|h):\d+)\b")


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A way in which something fails. next: steps, without those with an empty slot; generic: its place shows the
    family.

    like: the mechanism whose causes are its own, too. telling: the slot whose words a cause must have that the log only
    resembles.
    """

    key: str
    title: str
    families: Sequence[str]
    patterns: Sequence[str]
    next: Sequence[str]
    causes: Sequence[Mapping[str, Any]] = ()
    generic: bool = False
    like: str = ""
    telling: str = ""

    def match(self, text: str) -> re.Match[str] | None:
        low, known = text.lower(), pattern_needs()
        possible = (p for p in self.patterns if any(word in low for word in known.get(digest(p), _ANY)[1]))
        return next((found for one in possible if (found := _compiled(one).search(text))), None)

    def rows(self, seen: str) -> list[Mapping[str, Any]]:
        """The causes whose words are seen."""
        causes = next((one.causes for one in mechanisms() if one.key == self.like), self.causes)
        return [row for row in causes if _compiled(row.get("when", ""), re.I).search(seen)]


@dataclass(frozen=True, slots=True)
class LineCandidate:
    """A line that may explain, by weight. strong: an error by its form; heading: a line above whose message it is.

    reports: it has the form or a word of a failure. states: the cause that it states as an engine's message.
    """

    source: str
    number: int
    text: str
    body: str
    weight: float
    at: float | None
    strong: bool
    place: str = ""
    mechanism: Mechanism | None = None
    heading: tuple[int, str] | None = None
    reports: bool = True
    states: StatedCause | None = None


@cache
def _tables() -> Mapping[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


@cache
def line_pattern(name: str) -> re.Pattern[str]:
    """The pattern of lines of that kind."""
    return re.compile("|".join(_tables()["lines"][name]), re.IGNORECASE if name in _ANY_CASE else 0)


def line_alternatives() -> Iterator[str]:
    """All alternatives of all kinds, for `make docs`, which looks for their words."""
    return (one for listed in _tables()["lines"].values() for one in listed)


@cache
def _split_pattern(name: str) -> tuple[Sequence[str], re.Pattern[str] | None, re.Pattern[str] | None]:
    """(words of which a line has one, the alternatives for such lines, those of which no word is known)."""
    flags, known = re.IGNORECASE if name in _ANY_CASE else 0, pattern_needs()
    kinds: tuple[list[str], list[str]] = ([], [])
    for one in _tables()["lines"][name]:
        kinds[digest(one) in known].append(one)
    plain, worded = (re.compile("|".join(listed), flags) if listed else None for listed in kinds)
    words = {word for one in kinds[True] for word in known[digest(one)][1]}
    return tuple(sorted(w for w in words if not any(o != w and o in w for o in words))), worded, plain


def is_line(name: str, text: str) -> bool:
    """True if `line_pattern(name)` is found in it; most lines have none of its words, and are not searched for it."""
    words, worded, plain = _split_pattern(name)
    low = text.lower()
    if worded and any(word in low for word in words) and worded.search(text):
        return True
    return plain is not None and plain.search(text) is not None


@cache
def _compiled(pattern: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(linear(pattern), flags)


@cache
def mechanisms() -> tuple[Mechanism, ...]:
    return tuple(Mechanism(**one) for one in _tables()["mechanism"])


def candidates(source: str, lines: Iterable[tuple[int, str]], year: int, every: bool) -> Iterator[LineCandidate]:
    """The lines that report anything bad, or every one; an exception without a message has the statement that raised
    it."""
    place = code = ""
    head, caused, handles = _Head(), 0, False
    for number, text in lines:
        prefix, body = split_prefix(text)
        handles = (handles and not body.startswith("----")) or _REQUEST.match(body) is not None
        if handles and _HUNG_UP.match(body):  # the server goes on
            continue
        if frame := _PLACE.search(text):
            place = f"{frame['file']}:{frame['line']} {frame['name']}"
        elif line_pattern("frame").search(body) and not _CARETS.fullmatch(body):
            code = body.strip()
        if _is_no_message(text, body):
            continue
        kind = _kind(prefix, body, bool(place))
        weight, exception = kind - _doubt(kind, body), kind == EXCEPTION
        head, above, heading = _head(number, text, body, kind, weight) or head, head, None
        caused = caused + 1 if line_pattern("caused").search(prefix) else 0 if exception else caused
        if exception and body.strip(": ").isidentifier():
            weight, body, text = weight - 0.5, f"{body} {code}", f"{text} {code}"
        elif above.is_of(number, body) and weight > -1.0:
            weight, body, head = above.weight, f"{body} ({above.kept})" if above.kept else body, _Head()
            heading = (above.number, above.text)
        weight += _DEEPER * min(caused, EXCEPTION)
        if weight > 0 or every:
            logger = _LOGGER.search(prefix)
            where = place if exception else logger["place"] if logger else ""
            at, strong = line_time(text, year), kind >= STRONG
            bad = kind > 0 or heading is not None or is_line("signal", body)
            yield LineCandidate(source, number, text, body, weight, at, strong, where, heading=heading, reports=bad)
        place, code = ("", "") if exception else (place, code)


def _is_no_message(text: str, body: str) -> bool:
    short = len(body) < _SHORTEST or text.startswith(_TYPED)
    listed = line_pattern("listing").match(text) or line_pattern("frame").search(body)
    return bool(short or listed or is_settings(text) or of_a_client(text))


@dataclass(frozen=True, slots=True)
class _Head:
    """A line whose message is in the next ones. weight: of that; kept: what of it is shown behind the message."""

    number: int = -_MESSAGE
    text: str = ""
    weight: float = 0.0
    kept: str = ""

    def is_of(self, number: int, body: str) -> bool:
        return number <= self.number + _MESSAGE and bool(self.kept or (body[:1].isspace() and len(body) >= _SENTENCE))


def _head(number: int, text: str, body: str, kind: float, weight: float) -> _Head | None:
    """The candidate of a line that has no message of its own."""
    if line_pattern("opens").search(body):
        return _Head(number, text, kind + _HEADED / 2, body.strip())
    if kind > STRONG and line_pattern("continues").search(body):
        return _Head(number, text, weight + (_HEADED if kind == EXCEPTION else _HEADED / 2))
    return None


def is_exception(body: str, traced: bool = False) -> bool:
    """True if it is an exception's own line. traced: frames of a traceback stand above it."""
    named = body.lstrip()
    if line_pattern("exception").match(named):
        return True
    return bool(line_pattern("camel").match(named) and (traced or is_line("bad", named)))


def with_mechanism(one: LineCandidate) -> LineCandidate:
    """A mechanism makes a line a candidate also without a word of failure, but not routine output."""
    said = _ADDRESS.sub(" ", one.body)  # words of an address are names
    known = next((mechanism for mechanism in mechanisms() if mechanism.match(said)), None)
    if not known:
        return one
    level = line_pattern("level").search(one.text[: len(one.text) - len(one.body) + 2])
    fine = level and (level["fine"] or level["mild"] or level["g"] in MILD)
    fine = fine or is_line("follows", one.body) or is_line("goes_on", one.body)
    more = max(one.weight, 0.0) + MECHANISM / 2 if fine else max(one.weight, 2.0) + MECHANISM
    return replace(one, weight=more, mechanism=known)


def split_prefix(text: str) -> tuple[str, str]:
    """Splits a line into (prefix, message)."""
    at = 0
    while found := line_pattern("prefix").match(text[at:]):
        at += found.end()
    body = _GIVEN.sub("", text[at:])
    return text[:at], body[1:] if body[:1] == " " and body[1:2] != " " else body


def _kind(prefix: str, body: str, traced: bool) -> float:
    """The likelihood, by kind, that a line is the reason: EXCEPTION for an exception's own line, 0 for routine."""
    level = (
        line_pattern("level").search(prefix)
        or line_pattern("level").match(body)
        or line_pattern("level").search(prefix + body[:2])
    )
    if not level and body.startswith("{"):
        level = line_pattern("level").search(body[:JSON_HEAD])
    bad, fatal = has_bad_word(body), is_line("fatal", body)
    if is_exception(body, traced):
        most = EXCEPTION
    elif fatal:
        most = 3.5
    elif is_line("said", body):
        most = 3.0
    elif level and (level["bad"] or level["g"] in BAD):
        most = 2.5 + 0.5 * bad
    else:
        most = 2.0 * bad
    if level and (level["mild"] or level["g"] == "W") and not fatal:
        return min(most, 1.5)
    return min(most, 1.0) if level and (level["fine"] or level["g"] in MILD) else most


def has_bad_word(text: str) -> bool:
    """True if it has a word of failure; `0 failed` and `no errors` have none."""
    if not is_line("bad", text):
        return False
    return not line_pattern("none").search(text) or bool(is_line("bad", line_pattern("none").sub("", text)))


def _doubt(kind: float, body: str) -> float:
    """The doubt about a line: it is a heading, the program continues after it, or it only follows from something
    else."""
    doubt = 1.0 if kind and (body[:1].isspace() or body.rstrip().endswith(":")) else 0.0
    doubt += 1.5 if kind < EXCEPTION and is_line("goes_on", body) else 0.0
    return doubt + (2.0 if is_line("follows", body) else 0.0)
