"""A failure without a known cause: the line that explains, the mechanism, how far the engine got."""

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import pairwise

from sparkwright.causes.candidates import (
    EXCEPTION,
    MECHANISM,
    STRONG,
    LineCandidate,
    Mechanism,
    candidates,
    is_exception,
    is_line,
    split_prefix,
    with_mechanism,
)
from sparkwright.causes.evidence import harmless, is_logged_as_fine, is_quiet
from sparkwright.causes.fallback import context_of, kind_of
from sparkwright.causes.judgement import SourceOutcome
from sparkwright.causes.load import families
from sparkwright.causes.messages import StatedCause, stated_in
from sparkwright.causes.ranking import Slots
from sparkwright.domain.diagnosis import Cause, Explanation, Proof
from sparkwright.domain.values import dataclass, replace
from sparkwright.engines.messages import message_of
from sparkwright.engines.progress import progress
from sparkwright.logscan.logline import decoded, is_settings, process_name
from sparkwright.logscan.sign import POSSIBLE

_LONGEST = 600  # characters of a line that are looked at
FEW = 12  # lines: of so few each may be the reason
_NEXT_TO, _OTHERS = 2, 6  # lines
_MATCHED = 100  # messages
_LEAST = 2.0  # of the weight: below are remarks
_BURST = 400  # lines: errors that are closer belong together
_SLOT = re.compile(r"(?<!\{)\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Reason:
    """The explanation, None when no line reports anything bad, and what a cause may be found by.

    lines: with what each counts for; keys: of causes that its mechanism names, the likeliest first; bad: the line
    reports a failure: it is neither information or a warning, nor only the worst of a few.
    fails: more than a word of failure says so (its level, its form or a mechanism), and by who prints it, and where,
    it is a failure.
    described: the few lines that there are are no log, and one of them has a word of failure.
    telling: what the line names that a cause must name, too, if the log only resembles it.
    states: the cause that the line, or else the worst other failure, states as an engine's message, with that line.
    generic: its mechanism fits all kinds of failures, or it has none.
    """

    why: Explanation | None
    lines: tuple[tuple[str, float], ...]
    keys: tuple[str, ...] = ()
    proof: tuple[Proof, ...] = ()
    bad: bool = False
    described: bool = False
    fails: bool = False
    telling: str = ""
    states: tuple[StatedCause, Proof] | None = None
    generic: bool = False


def reason(
    sources: Mapping[str, Iterable[tuple[int, bytes]]],
    year: int,
    words: Mapping[str, str],
    over: Mapping[str, int] | None = None,
    outcomes: Mapping[str, SourceOutcome] | None = None,
) -> Reason:
    """The reason of the failure. Sources by name, each as (number, raw line) in order. words: about the cluster.

    over: the last line by source of what cannot explain an end: the engine was ready or has answered after it.
    outcomes: by source; without them each line that looks like a failure is one.
    """
    past = over or {}
    read = {name: [(number, decoded(raw)[:_LONGEST]) for number, raw in lines] for name, lines in sources.items()}
    ways = {name: progress(lines) for name, lines in read.items()}
    few = sum(map(len, read.values())) <= FEW
    listed = {name: candidates(name, lines, year, few) for name, lines in read.items()}
    ends = {
        name: [c for c in every if ways[name].may_end_at(c.number, c.strong) and c.number > past.get(name, 0)]
        for name, every in listed.items()
    }
    found = _named(_placed([one for every in ends.values() for one in _last_burst(every)], read), few)
    if not found:
        return _without_reason(read if few else {})
    best = max(found, key=lambda one: (one.weight, -(one.at or 0.0), -one.number))
    phase = ways[best.source].at(best.number)
    later = (one for one in found if one.source == best.source and one.number > best.number)
    then = [_proof(one) for one in later if one.weight >= EXCEPTION and one.body != best.body][-1:]
    if best.heading:
        then.append(_proof(replace(best, number=best.heading[0], text=best.heading[1])))
    same = tuple(dict.fromkeys(o.source for o in found if o.body == best.body and o.source != best.source))
    known = best.mechanism
    title, steps = _filled_in(best, known, words) if known else (kind_of(best.body), ())
    where = phase.value if phase else ""
    around = _around(read[best.source], best, found, few)
    of_place, more = context_of(where, best.place, best.text)
    bad = best.weight >= _LEAST and not is_quiet(best.text)
    seen = f"phase={where} in={best.place}\n" + "\n".join(text for text, _ in around)
    rows = known.rows(seen) if known and bad else []
    keys = tuple(dict.fromkeys(key for row in rows for key in row["keys"]))
    of_key = tuple(family for family, group in families().items() for cause in group if cause.key in keys[:1])
    likeliest = [*(of_place if not known or known.generic else ()), *of_key]
    if rows and rows[0].get("when"):  # words of the line
        likeliest.reverse()
    why = Explanation(
        line=_proof(best),
        mechanism=known.key if known else "",
        title=title,
        families=tuple(dict.fromkeys((*likeliest, *(known.families if known else ())))),
        place=best.place,
        phase=where,
        next=steps if known else more,
        same=same,
        then=then[0] if then else None,
    )
    described = few and _is_described([text for text, _ in around])
    failed = [one for one in found if not outcomes or _has_failure(outcomes[one.source], one)]
    of_unit = bad and best in failed and outcomes and outcomes[best.source].is_of_a_failed_unit(best.number)
    fails = bool(of_unit) or (bad and any(map(_is_a_failure, failed))) or any(map(_ends_in_error, failed))
    states = _stated(best, failed) if fails else None
    generic = not known or known.generic
    return Reason(why, around, keys, (why.line,), bad, described, fails, _telling(best, known), states, generic)


def _stated(best: LineCandidate, failed: Sequence[LineCandidate]) -> tuple[StatedCause, Proof] | None:
    """The cause that the best line states, or else the worst other failure."""
    ordered = sorted(failed, key=lambda one: (one is not best, -one.weight))
    return next(((one.states, _proof(one)) for one in ordered if one.states), None)


def without_followers(causes: Sequence[Cause], because: Reason) -> tuple[Cause, ...]:
    """The causes without hints from lines that only report another failure, if an exception elsewhere explains it."""
    line = because.why.line if because.why and because.fails else None
    if not line or not is_exception(split_prefix(line.text)[1]):
        return tuple(causes)
    return tuple(one for one in causes if one.confidence >= POSSIBLE or not _only_follows(one.proof, line))


def ruled_by_the_line(causes: Iterable[Cause], near: str, because: Reason) -> float:
    """The confidence that a rule has in another cause than `near` by the line that explains alone; 0.0 for none, and
    where that line says more than that the program failed."""
    line = because.why.line if because.why and because.generic else None
    others = (one for one in causes if one.key != near and len(one.proof) == 1)
    return max((one.confidence for one in others if one.proof[0] == line), default=0.0)


def _only_follows(proof: Sequence[Proof], line: Proof) -> bool:
    """True if all of it reports the failure of something else, and the line that explains is not in it."""
    return line not in proof and all(is_line("follows", one.text) for one in proof)


def _proof(one: LineCandidate) -> Proof:
    return Proof(one.source, one.number, one.text.strip()[:_LONGEST], one.at, process_name(one.text))


def _telling(one: LineCandidate, known: Mechanism | None) -> str:
    match = known.match(one.body) if known and known.telling else None
    return (match.groupdict().get(known.telling) or "") if known and match else ""


def _filled_in(one: LineCandidate, known: Mechanism, words: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """(title, steps) with what the line names; steps that need what it does not name are left out."""
    match = known.match(one.body)
    groups = match.groupdict() if match else {}
    slots = {name: text.strip(" '\"`:,.") for name, text in groups.items() if text}
    quoted = {name: shlex.quote(text) for name, text in slots.items()}  # of a log, and to be pasted into a shell
    steps = (step for step in known.next if all(slots.get(name) for name in _SLOT.findall(step)))
    return _title(known.title, slots), tuple(step.format_map(Slots({**words, **quoted})) for step in steps)


def _is_a_failure(one: LineCandidate) -> bool:
    """True if more than a word of failure shows it: its form, its level or its mechanism."""
    is_clear = one.weight > _LEAST or is_exception(one.body)
    is_clear = is_clear or any(is_line(kind, one.body) for kind in ("fatal", "signal"))
    is_clear = is_clear or (
        is_line("said", one.body) and not (is_line("goes_on", one.body) or is_line("follows", one.body))
    )
    return bool(one.reports and is_clear) and not (is_quiet(one.text) or is_logged_as_fine(one.body))


def _has_failure(of_source: SourceOutcome, one: LineCandidate) -> bool:
    return of_source.has_failure(one.number, one.text, signed=False)


def _ends_in_error(one: LineCandidate) -> bool:
    """True if a program reports that what it was asked for failed, though another line may say why."""
    return one.strong and one.reports and is_line("ends", one.text)


def _title(text: str, slots: Mapping[str, str]) -> str:
    """The title without the clauses whose slots the line does not name."""
    head, colon, tail = text.partition(": ")
    clauses = [one for one in tail.split(", ") if all(slots.get(name) for name in _SLOT.findall(one))]
    whole = head + colon * bool(clauses) + ", ".join(clauses)
    return re.sub(r"[\s:(]*<[^>]*>\)?", "", whole.format_map(defaultdict(lambda: "<>", slots)))


def _without_reason(read: Mapping[str, Sequence[tuple[int, str]]]) -> Reason:
    """The reason from a few lines that report nothing bad: somebody's sentence, a table."""
    lines = [(name, number, text) for name, given in read.items() for number, text in given if text.strip()]
    lines = [one for one in lines if not is_settings(one[2])]
    proof = tuple(Proof(name, number, text.strip()) for name, number, text in lines[:1])
    texts = [text for *_, text in lines]
    return Reason(None, tuple((text, 1.0) for text in texts), (), proof, described=_is_described(texts))


def _is_described(lines: Sequence[str]) -> bool:
    """True if somebody describes a failure: no line begins as a log's do, and one has a word of failure."""
    return not any(split_prefix(text)[0] for text in lines) and any(is_line("bad", text) for text in lines)


def _around(
    lines: Sequence[tuple[int, str]], best: LineCandidate, found: Sequence[LineCandidate], few: bool
) -> tuple[tuple[str, float], ...]:
    """The line that explains, those next to it, and others that may explain, with what each counts for."""
    near = (pair for pair in lines if pair[0] != best.number and (few or abs(pair[0] - best.number) <= _NEXT_TO))
    other = sorted(found, key=lambda one: -one.weight)[:_OTHERS]
    return (
        (best.text, 1.5),
        *((text, 1.0 if few else 0.5) for _, text in near),
        *((one.body, 0.25) for one in other if one is not best),
    )


def _placed(found: Sequence[LineCandidate], read: Mapping[str, Sequence[tuple[int, str]]]) -> list[LineCandidate]:
    """The candidates compared with the engines' messages: their place in the source is added, routine messages are
    dropped.

    An exception's own line stays, whatever message it resembles. read: the lines of each source.
    """

    @cache
    def log(source: str) -> str:
        return "\n".join(text for _, text in read[source]).lower()

    if len(found) > _MATCHED:  # known harmless lines must not keep others from being compared
        found = [one for one in found if not harmless(one.text)]
    worst = sorted(found, key=lambda one: -one.weight)[:_MATCHED]
    known = {one.body: message_of(one.body) for one in worst}
    fine = {body for body, message in known.items() if message and message.is_routine}
    fine = {body for body in fine if not is_exception(body)}
    fine |= {one.body for one in worst if harmless(one.text)}
    kept = [(one, known.get(one.body)) for one in found if one.body not in fine]
    placed = ((replace(one, place=m.place) if m and m.place and "/" not in one.place else one, m) for one, m in kept)
    stated = ((one, stated_in(one.body, message, partial(log, one.source))) for one, message in placed)
    return [replace(one, states=states) if states else one for one, states in stated]


def _named(found: Sequence[LineCandidate], few: bool) -> list[LineCandidate]:
    """The candidates with their mechanisms, as far as these can change which is the best."""
    best = max((one.weight for one in found), default=0.0)
    near = (with_mechanism(one) for one in found if few or one.weight >= best - MECHANISM)
    return [one for one in near if one.weight > 0 and (few or one.weight >= _LEAST)]


def _last_burst(found: Sequence[LineCandidate]) -> Sequence[LineCandidate]:
    """The lines after the last long stretch of lines without any that is as bad."""
    worst = max((one.weight for one in found), default=0.0)
    bad = [n for n, one in enumerate(found) if one.weight >= min(worst, STRONG)]
    start = 0
    for earlier, later in pairwise(bad):
        if found[later].number - found[earlier].number > _BURST:
            start = later
    return found[start:]
