"""An outage as clients and the operator saw it: when nothing useful came, what came instead, what `status` printed."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any

from drills.fate import Fate, SentRequest

PATIENCE = 25.0
"""Seconds until a client gives up."""
SLOW = 5.0
"""An answer that takes longer, while nobody else gets one, is part of an outage."""
TRUTH = 5.0
"""Seconds into an outage from which `status` may not print `ready`."""
CLOSE = 2.0
"""Seconds that an incident's `away` may differ from the clients'."""
BEYOND, WAITED = 5.0, 35.0
"""Seconds that all but the engine's own start may take, and until what was given back is noticed: the longest back-off
of a first fault, and BEYOND."""
MOMENT = 0.5
"""What is shorter lasted no longer than the clients' requests are apart."""


@dataclass(frozen=True, slots=True)
class MeasuredOutage:
    """began: the first request that got nothing useful was sent; ended: the first good answer was whole, 0: never."""

    began: float
    ended: float = 0.0

    @property
    def away(self) -> float | None:
        return self.ended - self.began if self.ended else None


@dataclass(frozen=True, slots=True)
class OutageSample:
    """One call of `status`: when it began and how long it took, its exit code, the state's word, all of its text."""

    at: float
    took: float
    code: int
    word: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class View:
    """The statements of a table's row. away: seconds of each outage, None for one that did not end."""

    away: tuple[float | None, ...] = ()
    got: str = ""
    status: str = ""
    incidents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """The observations. at: the fault; restored: what it took was there again, 0 if nothing had to. start: the engine's
    own start.

    incidents: as `incidents list --json` has them. record: what status, incidents and the supervisor's log had after.
    """

    at: float
    end: float
    requests: Sequence[SentRequest] = ()
    samples: Sequence[OutageSample] = ()
    incidents: Sequence[dict[str, Any]] = ()
    record: str = ""
    start: float = 0.0
    restored: float = 0.0
    outages: Sequence[MeasuredOutage] = field(default=())


@dataclass(frozen=True, slots=True)
class Expected:
    """away: seconds at most beyond the engine's own start; None: however long. starts: as in figures.Target.

    incidents: how many are right, None: any. cause: what the first incident's `what` and cause must have, never: what
    neither they nor an answer to a client may have; status, record, refusal: what some call of `status`, the record
    afterwards and some refusal must have. All of them are regular expressions. meant: the clients are shut out by a
    setting, so that `status` may print `ready`.
    """

    away: float | None = None
    incidents: int | None = 1
    cause: str = ""
    never: str = r"LAPI006|LIMG009|somebody removed|served model name|exits 0 after"
    status: str = ""
    record: str = ""
    refusal: str = ""
    meant: bool = False


def outages(requests: Iterable[SentRequest]) -> list[MeasuredOutage]:
    """The outages in order; those less than a second apart are one."""
    ordered = sorted(requests, key=lambda one: one.sent)
    good = [one for one in ordered if one.fate is Fate.ANSWERED]
    ends = sorted(one.ended for one in good)
    found: list[MeasuredOutage] = []
    for one in ordered:
        if not _useless(one, ends) or (found and one.sent < (found[-1].ended or float("inf"))):
            continue
        ended = min((other.ended for other in good if other.sent >= one.sent), default=0.0)
        began = found.pop().began if found and one.sent - found[-1].ended < 1.0 else one.sent
        found.append(MeasuredOutage(began, ended))
    return found


def _useless(one: SentRequest, ends: Sequence[float]) -> bool:
    """Refused, broken or silent; or late, and nobody else was answered meanwhile for long."""
    if one.fate is not Fate.ANSWERED:
        return True
    if one.ended - one.sent <= SLOW:
        return False
    between = [end for end in ends if one.sent < end < one.ended]
    return any(after - before > SLOW for before, after in pairwise([one.sent, *between, one.ended]))


def bad_answers(seen: Observed) -> str:
    """The clients' bad answers, most first, each with its count."""
    found = Counter(_what(one) for one in seen.requests if one.sent >= seen.at and _what(one))
    most = max((one.ended - one.sent for one in seen.requests if one.fate is Fate.ANSWERED), default=0.0)
    words = [f"{count} x {what}" for what, count in found.most_common(5)]
    return "; ".join([*words, *([f"answers after up to {most:.0f} s"] if most > SLOW else [])]) or "answers"


def _what(one: SentRequest) -> str:
    if one.fate is Fate.ANSWERED:
        return ""
    if one.status >= 400:
        return f"{one.status} {'with' if _explained(one) else 'WITHOUT'} reason and Retry-After"
    if one.fate is Fate.LOST and one.ended - one.sent >= PATIENCE - 1:
        return f"no answer in {PATIENCE:.0f} s"
    return "stream ended early" if one.status else f"no connection ({one.said.partition(':')[0]})"


def _explained(one: SentRequest) -> bool:
    return one.shaped and bool(one.retry)


def outage_view(seen: Observed) -> View:
    away = tuple(round(one.away, 1) if one.away else None for one in seen.outages if not _moment(one))
    return View(away, bad_answers(seen), state_story(seen.samples, seen.at), tuple(map(incident, seen.incidents)))


def _moment(one: MeasuredOutage) -> bool:
    return one.away is not None and one.away < MOMENT


def state_story(samples: Sequence[OutageSample], since: float) -> str:
    """Each state and exit code once in a row, with the seconds from the fault until it was first and last printed."""
    after = [one for one in samples if one.at + one.took >= since]
    parts = []
    for (word, code), group in groupby(after, key=lambda one: (one.word, one.code)):
        same = list(group)
        span = [f"{one.at + one.took - since:.0f}" for one in (same[0], same[-1])]
        parts.append(f"{word} (exit {code}) {'-'.join(dict.fromkeys(span))} s")
    return " > ".join(parts)


def incident(tree: dict[str, Any]) -> str:
    """The description, cause and `away` of one of `incidents list --json`."""
    cause = f"; cause: {tree['cause']} [{tree['code']}]" if tree.get("cause") else "; no cause named"
    away = tree.get("away")
    return f"{tree['what']}{cause}; " + (f"{away:.0f} s away" if away is not None else "no end")


def missed(expected: Expected, seen: Observed) -> list[str]:
    """Each target that was not met, as text."""
    return [words for check in CHECKS for words in check(expected, seen)]


def _back(expected: Expected, seen: Observed) -> list[str]:
    """Back at all, and within the time."""
    if any(one.away is None for one in seen.outages):
        return ["clients are not served again"]
    if expected.away is None or not seen.outages:
        return []
    most = max(one.away or 0.0 for one in seen.outages)
    limit = max(seen.restored - seen.at, 0.0) + seen.start + expected.away
    return [f"away for {most:.1f} s, target {limit:.1f} s"] if most > limit else []


def _status(expected: Expected, seen: Observed) -> list[str]:
    """Never `ready` in an outage, but for its first seconds; and the words that it must have."""
    wrong = [
        one.at + one.took - out.began
        for out in seen.outages
        for one in seen.samples
        if one.word == "ready" and one.at >= out.began + TRUTH and one.at + one.took <= (out.ended or seen.end)
    ]
    found = [f"status prints ready {max(wrong):.0f} s into the outage"] if wrong and not expected.meant else []
    lacks = expected.status and not any(re.search(expected.status, one.text) for one in seen.samples)
    return [*found, *([f"status never prints {expected.status!r}"] if lacks else [])]


def _incidents(expected: Expected, seen: Observed) -> list[str]:
    count, wanted = len(seen.incidents), expected.incidents
    found = [] if wanted is None or count == wanted else [f"{count} incident(s), not {wanted}"]
    words = incident(seen.incidents[0]) if seen.incidents else ""
    if expected.cause and not re.search(expected.cause, words, re.DOTALL):
        found.append(f"the incident does not name {expected.cause!r}")
    texts = [words for tree in seen.incidents for words in (incident(tree), str(tree.get("code", "")))]
    hits = [hit[0] for text in [*texts, *(one.said for one in seen.requests)] if (hit := _never(expected, text))]
    return [*found, *(f"wrong words: {hit}" for hit in dict.fromkeys(hits))]


def _never(expected: Expected, text: str) -> "re.Match[str] | None":
    return re.search(expected.never, text) if expected.never else None


def _away(expected: Expected, seen: Observed) -> list[str]:
    """`away` of a single incident is what clients had."""
    outs = [one for one in seen.outages if not _moment(one)]
    if len(outs) != 1 or len(seen.incidents) != 1 or outs[0].away is None:
        return []
    away = seen.incidents[0].get("away")
    if away is None or abs(away - outs[0].away) > CLOSE:
        return [f"the incident has {'no end' if away is None else f'{away:.0f} s'}, clients had {outs[0].away:.0f} s"]
    return []


def _refusals(expected: Expected, seen: Observed) -> list[str]:
    bare = [one for one in seen.requests if one.status >= 500 and not _explained(one)]
    found = [f"{len(bare)} x {bare[0].status} without reason or Retry-After: {bare[0].said[:80]}"] if bare else []
    if expected.refusal and not any(
        re.search(expected.refusal, one.said) for one in seen.requests if one.status >= 500
    ):
        found.append(f"no refusal has {expected.refusal!r}")
    return found


def _record(expected: Expected, seen: Observed) -> list[str]:
    if not expected.record or re.search(expected.record, seen.record, re.IGNORECASE):
        return []
    return [f"nothing recorded of {expected.record!r}"]


CHECKS: tuple[Callable[[Expected, Observed], list[str]], ...] = (
    _back, _status, _incidents, _away, _refusals, _record,
)  # fmt: skip
