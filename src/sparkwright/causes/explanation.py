"""A failure without a known cause: the line that explains, the mechanism, how far the engine got.

Lines are weighed by what they are (an exception's own line, a level, words), not by what program wrote them; a line
that only reports the failure of something else never outweighs the line with the reason.
"""

import re
import shlex
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from sparkwright.causes.fallback import kind_of
from sparkwright.causes.load import families
from sparkwright.causes.ranking import Slots
from sparkwright.domain.diagnosis import Explanation, Proof
from sparkwright.engines.dialect import of_a_client
from sparkwright.engines.messages import message_of
from sparkwright.engines.progress import progress
from sparkwright.logscan.book import linear
from sparkwright.logscan.logline import decoded, is_settings, when, who

_FILE = Path(__file__).with_name("mechanisms") / "mechanisms.toml"
_LONGEST = 600  # characters of a line that are looked at
_SHORTEST = 4
FEW = 12  # lines: of so few each may be the reason
_MESSAGE = 3  # lines
_EXCEPTION, _STRONG = 4.0, 2.5  # kinds of lines: a weaker one is no reason when the engine went on to a later phase
_MECHANISM = 1.0  # more weight for a line with one
_NEXT_TO, _OTHERS = 2, 6  # lines
_MATCHED = 100  # messages
_LEAST = 2.0  # of the weight: below are remarks
_BURST = 400  # lines: errors that are closer belong together
_TYPED = ("$ ", "+ ")  # commands as a shell shows them
_ANY_CASE = ("fatal", "said", "bad", "goes_on")
_SENTENCE = 20  # characters
_PLACE = re.compile(r'File "(?P<file>[^"]{1,200})", line (?P<line>\d+), in (?P<name>[\w<>.]{1,80})')
_CARETS = re.compile(r"[\s^~]*")
_SLOT = re.compile(r"(?<!\{)\{(\w+)\}")
_LOGGER = re.compile(r"\b(?P<place>[\w/.-]{2,60}\.(?:py|cc|cpp|cu|go|rs|c|h):\d+)\b")


@dataclass(frozen=True, slots=True)
class Mechanism:
    """How something fails. patterns: with slots; next: steps, of which those with an empty slot are left out."""

    key: str
    title: str
    families: tuple[str, ...]
    patterns: tuple[re.Pattern[str], ...]
    next: tuple[str, ...]
    causes: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]

    def match(self, text: str) -> re.Match[str] | None:
        return next((found for pattern in self.patterns if (found := pattern.search(text))), None)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A line that may explain. weight: how much it looks like the reason. strong: an error by its own form."""

    source: str
    number: int
    text: str
    body: str
    weight: float
    at: float | None
    strong: bool
    place: str = ""
    mechanism: Mechanism | None = None


@cache
def _tables() -> Mapping[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


@cache
def form(name: str) -> re.Pattern[str]:
    """How lines of that kind look."""
    return re.compile("|".join(_tables()["lines"][name]), re.IGNORECASE if name in _ANY_CASE else 0)


@cache
def mechanisms() -> tuple[Mechanism, ...]:
    return tuple(
        Mechanism(
            one["key"],
            one["title"],
            tuple(one["families"]),
            tuple(re.compile(linear(pattern)) for pattern in one["patterns"]),
            tuple(one["next"]),
            tuple((re.compile(linear(row.get("when", "")), re.I), tuple(row["keys"])) for row in one.get("causes", ())),
        )
        for one in _tables()["mechanism"]
    )


@dataclass(frozen=True, slots=True)
class Reason:
    """The explanation, None when no line reports anything bad, and what a cause may be found by.

    lines: with what each counts for; keys: of causes that its mechanism names, the likeliest first; bad: the line
    reports a failure, and is not only the worst of a few.
    """

    why: Explanation | None
    lines: tuple[tuple[str, float], ...]
    keys: tuple[str, ...] = ()
    proof: tuple[Proof, ...] = ()
    bad: bool = False


def reason(sources: Mapping[str, Iterable[tuple[int, bytes]]], year: int, words: Mapping[str, str]) -> Reason:
    """Of sources by name, each as (number, raw line) in order. words: about the cluster."""
    read = {name: [(number, decoded(raw)[:_LONGEST]) for number, raw in lines] for name, lines in sources.items()}
    ways = {name: progress(lines) for name, lines in read.items()}
    few = sum(map(len, read.values())) <= FEW
    listed = {name: candidates(name, lines, year, few) for name, lines in read.items()}
    ends = {name: [c for c in every if ways[name].may_end_at(c.number, c.strong)] for name, every in listed.items()}
    found = _named(_placed([one for every in ends.values() for one in _last_burst(every)]), few)
    if not found:
        return _without_reason(read if few else {})
    best = max(found, key=lambda one: (one.weight, -(one.at or 0.0), -one.number))
    phase = ways[best.source].at(best.number)
    later = (one for one in found if one.source == best.source and one.number > best.number)
    then = [one for one in later if one.weight >= _EXCEPTION and one.body != best.body]
    same = tuple(dict.fromkeys(o.source for o in found if o.body == best.body and o.source != best.source))
    title, steps, known = _filled_in(best, words)
    why = Explanation(
        _proof(best),
        known.key if known else "",
        title,
        known.families if known else (),
        best.place,
        phase.value if phase else "",
        steps,
        same,
        _proof(then[-1]) if then else None,
    )
    around = _around(read[best.source], best, found, few)
    seen = f"phase={why.phase} in={why.place}\n" + "\n".join(text for text, _ in around)
    bad = best.weight >= _LEAST
    rows = (keys for when, keys in (known.causes if known and bad else ()) if when.search(seen))
    keys = tuple(dict.fromkeys(key for row in rows for key in row))
    if keys:
        of_key = {cause.key: family for family, group in families().items() for cause in group}
        why = replace(why, families=tuple(dict.fromkeys((*map(of_key.__getitem__, keys[:1]), *why.families))))
    return Reason(why, around, keys, (why.line,), bad)


def _proof(one: Candidate) -> Proof:
    return Proof(one.source, one.number, one.text.strip()[:_LONGEST], one.at, who(one.text))


def _filled_in(one: Candidate, words: Mapping[str, str]) -> tuple[str, tuple[str, ...], Mechanism | None]:
    """(title, steps, mechanism) with what the line names; steps that need what it does not name are left out."""
    known = one.mechanism
    if not known:
        return *kind_of(one.body), None
    match = known.match(one.body)
    groups = match.groupdict() if match else {}
    slots = {name: text.strip(" '\"`:,.") for name, text in groups.items() if text}
    quoted = {name: shlex.quote(text) for name, text in slots.items()}  # of a log, and to be pasted into a shell
    steps = (step for step in known.next if all(slots.get(name) for name in _SLOT.findall(step)))
    title = re.sub(r"[\s:(]*<[^>]*>\)?", "", known.title.format_map(defaultdict(lambda: "<>", slots)))
    return title, tuple(step.format_map(Slots({**words, **quoted})) for step in steps), known


def _without_reason(read: Mapping[str, Sequence[tuple[int, str]]]) -> Reason:
    """Of a few lines that report nothing bad: somebody's sentence, a table."""
    lines = [(name, number, text) for name, given in read.items() for number, text in given if text.strip()]
    lines = [one for one in lines if not is_settings(one[2])]
    proof = tuple(Proof(name, number, text.strip()) for name, number, text in lines[:1])
    return Reason(None, tuple((text, 1.0) for *_, text in lines), (), proof)


def _around(
    lines: Sequence[tuple[int, str]], best: Candidate, found: Sequence[Candidate], few: bool
) -> tuple[tuple[str, float], ...]:
    """The line that explains, those next to it, and others that may explain, with what each counts for."""
    near = (pair for pair in lines if pair[0] != best.number and (few or abs(pair[0] - best.number) <= _NEXT_TO))
    other = sorted(found, key=lambda one: -one.weight)[:_OTHERS]
    return (
        (best.text, 1.5),
        *((text, 1.0 if few else 0.5) for _, text in near),
        *((one.body, 0.25) for one in other if one is not best),
    )


def _placed(found: Sequence[Candidate]) -> list[Candidate]:
    """By the messages of engines: with their place in the source, without what is logged when nothing is wrong."""
    known = {one.body: message_of(one.body) for one in sorted(found, key=lambda one: -one.weight)[:_MATCHED]}
    kept = [(one, message) for one in found if not ((message := known.get(one.body)) and message.is_routine)]
    return [replace(one, place=m.place) if m and m.place and "/" not in one.place else one for one, m in kept]


def _named(found: Sequence[Candidate], few: bool) -> list[Candidate]:
    """With their mechanisms, as far as these can change which is the best."""
    best = max((one.weight for one in found), default=0.0)
    near = (_with_mechanism(one) for one in found if few or one.weight >= best - _MECHANISM)
    return [one for one in near if one.weight > 0 and (few or one.weight >= _LEAST)]


def candidates(source: str, lines: Iterable[tuple[int, str]], year: int, every: bool) -> Iterator[Candidate]:
    """Those that report anything bad, or every one; an exception without a message has the statement that raised it."""
    place = code = ""
    opened, until = 0.0, 0  # the weight of an exception whose message is in the next lines, up to that one
    for number, text in lines:
        prefix, body = _split(text)
        if frame := _PLACE.search(text):
            place = f"{frame['file']}:{frame['line']} {frame['name']}"
        elif form("frame").search(body) and not _CARETS.fullmatch(body):
            code = body.strip()
        if (
            len(body) < _SHORTEST
            or form("frame").search(body)
            or is_settings(text)
            or text.startswith(_TYPED)
            or of_a_client(text)
        ):
            continue
        kind = _kind(prefix, body)
        weight, exception = kind - _doubt(kind, body), kind == _EXCEPTION
        if exception and body.strip(": ").isidentifier():
            weight, body, text = weight - 0.5, f"{body} {code}", f"{text} {code}"
        elif number <= until and body[:1].isspace() and len(body) >= _SENTENCE and weight > -1.0:
            weight, until = opened, 0
        if exception and form("continues").search(body):
            opened, until = weight + 2.0, number + _MESSAGE
        if weight > 0 or every:
            logger = _LOGGER.search(prefix)
            where = place if exception else logger["place"] if logger else ""
            yield Candidate(source, number, text, body, weight, when(text, year), kind >= _STRONG, where)
        place, code = ("", "") if exception else (place, code)


def _with_mechanism(one: Candidate) -> Candidate:
    """A mechanism makes a line a candidate also without a word of failure, but not routine output."""
    known = next((mechanism for mechanism in mechanisms() if mechanism.match(one.body)), None)
    if not known:
        return one
    level = form("level").search(one.text[: len(one.text) - len(one.body)])
    fine = level and (level["fine"] or level["mild"] or level["g"] in ("I", "W"))
    fine = fine or form("follows").search(one.body) or form("goes_on").search(one.body)
    more = max(one.weight, 0.0) + _MECHANISM / 2 if fine else max(one.weight, 2.0) + _MECHANISM
    return replace(one, weight=more, mechanism=known)


def _split(text: str) -> tuple[str, str]:
    """(what stands before the message, the message)."""
    at = 0
    while found := form("prefix").match(text[at:]):
        at += found.end()
    body = text[at:]
    return text[:at], body[1:] if body[:1] == " " and body[1:2] != " " else body


def _kind(prefix: str, body: str) -> float:
    """How much a line looks like the reason by its kind: _EXCEPTION for an exception's own line, 0 for routine."""
    level = form("level").search(prefix) or form("level").match(body)
    bad = bool(form("bad").search(body))
    if form("exception").match(body.lstrip()):
        most = _EXCEPTION
    elif form("fatal").search(body):
        most = 3.5
    elif form("said").search(body):
        most = 3.0
    elif level and (level["bad"] or level["g"] in ("E", "F")):
        most = 2.5 + 0.5 * bad
    else:
        most = 2.0 * bad
    if level and (level["mild"] or level["g"] == "W") and not form("fatal").search(body):
        return min(most, 1.5)
    return min(most, 1.0) if level and (level["fine"] or level["g"] == "I") else most


def _doubt(kind: float, body: str) -> float:
    """What speaks against it: a heading, that it goes on without, that it only follows from something else."""
    doubt = 1.0 if kind and (body[:1].isspace() or body.rstrip().endswith(":")) else 0.0
    doubt += 1.5 if form("goes_on").search(body) and kind < _EXCEPTION else 0.0
    return doubt + (2.0 if form("follows").search(body) else 0.0)


def _last_burst(found: Sequence[Candidate]) -> Sequence[Candidate]:
    """Those after the last long stretch of lines without any that is as bad."""
    worst = max((one.weight for one in found), default=0.0)
    bad = [n for n, one in enumerate(found) if one.weight >= min(worst, _STRONG)]
    start = 0
    for earlier, later in pairwise(bad):
        if found[later].number - found[earlier].number > _BURST:
            start = later
    return found[start:]
