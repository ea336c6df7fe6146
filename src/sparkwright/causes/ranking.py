"""The ranking of causes: the root first. A cause that only follows from another one sinks below it."""

import re
from collections.abc import Iterable, Mapping, Sequence

from sparkwright.causes.cause import LogCause, WholeLogRule
from sparkwright.causes.load import whole_log
from sparkwright.checks.compat.versions import ranges
from sparkwright.domain.diagnosis import Cause, Proof, StatedFact
from sparkwright.domain.finding import Severity
from sparkwright.domain.values import dataclass, replace
from sparkwright.logscan.matcher import Hit
from sparkwright.logscan.sign import CERTAIN, LIKELY, POSSIBLE, Story

MOST = 3
_MORE = 0.02  # for each further sign of the same cause
_HIGHEST = 0.99
_EXPLAINED = 0.5  # what is left of the confidence in a cause that another one explains
_NEAR = 0.1
_IN_RANGE, _OUTSIDE = 0.25, 0.5  # of the doubt that a version takes away, of the confidence that it leaves
_PROOFS = 6
_SURE_ENOUGH = 0.9  # for a step that takes a node away; below it, such a step comes after the others
_TAKES_A_NODE = re.compile(r"\breboot\b|\bpower[- ](?:cycle|off)\b|\bshutdown -", re.IGNORECASE)
_THREAD = re.compile(r"/(?:issues|pull|discussions|t)/")  # one owner's report, not documentation
_RAISED = re.compile(r"(?:^|[\s\]):])(?:[a-z_]\w{0,60}\.){0,8}[A-Z]\w{0,80}(?:Error|Exception): ")
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT])")
_ELSEWHERE = {  # of engines that somebody else runs
    "logs": "docker logs --tail 200 <container>",
    "ends": "docker inspect -f '{{.State.OOMKilled}} {{.State.ExitCode}}' <container>",
}


_IN_CONTAINER = re.compile(r"docker exec (?:-it? )?<container> ")
_OF_IMAGES = re.compile(r"\bdocker (?:build|image|inspect|pull|save|load|run|compose)\b")


class Slots(dict[str, str]):
    """Values for the `{name}` in a step; `<name>` for an unknown word."""

    def __missing__(self, name: str) -> str:
        return _ELSEWHERE.get(name, f"<{name.replace('_', ' ')}>")


@dataclass(frozen=True, slots=True)
class FoundCause:
    """One cause that is shown. at_most: how sure a single sign of a single report can make."""

    known: LogCause
    sure: float
    proof: tuple[Proof, ...]
    groups: Mapping[str, str]
    seen: int = 1
    resembles: tuple[str, ...] = ()
    at_most: float = 1.0
    versions: tuple[StatedFact, ...] = ()


def found_by_signs(hits: Iterable[Hit], causes: Mapping[str, LogCause]) -> list[FoundCause]:
    """One Found a cause; hits of all sources together. causes: by code."""
    by_code: dict[str, list[Hit]] = {}
    for hit in filter(_is_above, hits):
        by_code.setdefault(hit.signed.code, []).append(hit)
    return [_merged(causes[code], group) for code, group in by_code.items()]


def _is_above(hit: Hit) -> bool:
    """True if the amounts in its line are as the sign asks for; also for a line without units."""
    if not hit.signed.sign.above:
        return True
    amounts = [_amount(hit.groups.get(name, "")) for name in hit.signed.sign.above]
    return None not in amounts and (amounts[0] or 0.0) > (amounts[1] or 0.0)


def _amount(text: str) -> float | None:
    found = _AMOUNT.match(text)
    return float(found[1]) * 1024.0 ** "KMGT".find(found[2]) if found else None


def _merged(known: LogCause, hits: list[Hit]) -> FoundCause:
    """Each line once, by whichever sign found it first. Seen: lines; several signs may match the same one."""
    best = sorted(hits, key=lambda hit: (-hit.signed.sign.sure, _place(hit.proof[0])))
    signs = len({hit.signed for hit in hits})
    sure = min(_HIGHEST, best[0].signed.sign.sure + _MORE * (signs - 1))
    reported_once = signs == 1 and len(known.see) == 1 and _THREAD.search(known.see[0])
    lines: dict[tuple[str, int], Proof] = {}
    most: dict[str, int] = {}
    for hit in best:
        for proof in hit.proof:
            lines.setdefault((proof.source, proof.number), proof)
        most[hit.proof[0].source] = max(hit.count, most.get(hit.proof[0].source, 0))
    groups = {name: text for hit in reversed(best) for name, text in hit.groups.items()}
    proofs = tuple(lines.values())[:_PROOFS]
    return FoundCause(known, sure, proofs, groups, sum(most.values()), at_most=LIKELY if reported_once else 1.0)


def found_by_stories(rules: Iterable[WholeLogRule], stories: tuple[Story, ...]) -> list[FoundCause]:
    causes = whole_log()
    return [
        FoundCause(causes[r.code], v.sure, tuple(dict.fromkeys(v.proof)), {}) for r in rules for v in r.judge(stories)
    ]


def with_versions(one: FoundCause, stories: Iterable[Story]) -> FoundCause:
    """More sure where a version is in the range known for the cause; less where it is known in no other and all are."""
    known, key = ranges(), one.known.key
    seen = [(name, story.marks[name].last) for story in stories for name in known.of(key) if name in story.marks]
    read = [(name, version, line) for name, line in seen if (version := known.version(name, line.text))]
    inside = [row for row in read if known.has(key, *row[:2])]
    if not inside and (not read or key not in known.only):
        return one
    how = f"is {'in' if inside else 'outside'} the range known for this"
    rows = ((f"{name} {version} {how} ({known.of(key)[name]})", line) for name, version, line in inside or read)
    sure = one.sure + (1 - one.sure) * _IN_RANGE if inside else one.sure * _OUTSIDE
    return replace(one, sure=sure, versions=tuple(StatedFact(*row) for row in rows))


def ranked(found: Sequence[FoundCause], words: Mapping[str, str]) -> tuple[tuple[Cause, ...], tuple[Cause, ...]]:
    """(causes, harmless), each with the most likely first; equal ones by which came first. words: about the cluster."""
    told = [one for one in found if not _excused(one, found)]
    weighed = [(_weight(one, told), one) for one in told]
    weighed.sort(key=lambda pair: (-round(pair[0] * 20), _place(pair[1].proof[0])))
    causes = tuple(fill_steps(one, weight, words) for weight, one in weighed)
    bad = _once(cause for cause in causes if cause.severity is not Severity.INFO)
    blamed = {key for one in found if one.known.severity is not Severity.INFO for key in one.known.consequences}
    return bad[:MOST], _once(c for c in causes if c.severity is Severity.INFO and c.key not in blamed)


def _excused(one: FoundCause, found: Sequence[FoundCause]) -> bool:
    """True if the cause rests only on a line that is certainly harmless."""
    sure = (other for other in found if other.known.severity is Severity.INFO and other.sure >= CERTAIN)
    return one.sure <= POSSIBLE and any(one.known.key in other.known.consequences for other in sure)


def _weight(one: FoundCause, found: Sequence[FoundCause]) -> float:
    """Half for what follows from another cause that is as sure, and for what only degrades where something ended it."""
    real = [other for other in found if other.known.severity is not Severity.INFO]
    ends = (
        o.sure + _NEAR >= one.sure or not set(o.proof) & set(one.proof)
        for o in real
        if o.known.severity.stops and o.sure > POSSIBLE and o.known.key not in one.known.consequences
    )
    degrades = not one.known.severity.stops and any(ends)
    follows = any(
        one.known.key in o.known.consequences
        and (o.sure + _NEAR >= one.sure or (_is_raised(o) and not _is_raised(one)))
        for o in real
    )
    return one.sure * _EXPLAINED if degrades or follows else one.sure


def _is_raised(one: FoundCause) -> bool:
    """True if an exception's own line shows it."""
    return any(_RAISED.search(proof.text) for proof in one.proof)


def _place(proof: Proof) -> tuple[float, int]:
    return (proof.at if proof.at is not None else float("inf"), proof.number)


def _once(causes: Iterable[Cause]) -> tuple[Cause, ...]:
    """The best of each key."""
    kept: dict[str, Cause] = {}
    for cause in causes:
        kept.setdefault(cause.key, cause)
    return tuple(kept.values())


def without_containers(steps: Sequence[str]) -> list[str]:
    """The steps for ranks that are processes: on the node itself, without those that build or look at images."""
    plain = [_IN_CONTAINER.sub("", step) for step in steps]
    return [step for step in plain if not _OF_IMAGES.search(step)] or plain


def fill_steps(one: FoundCause, weight: float, words: Mapping[str, str]) -> Cause:
    """The cause with its steps filled in. words: about the cluster."""
    slots, known = Slots({**words, **one.groups}), one.known
    fix = [step.format_map(slots) for step in known.fix]
    fix = without_containers(fix) if words.get("runtime") == "process" else fix
    confidence = round(min(weight, one.at_most), 2)
    if confidence < _SURE_ENOUGH:
        fix.sort(key=lambda step: _TAKES_A_NODE.search(step.partition("#")[0]) is not None)
    return Cause(
        known.key,
        known.code,
        known.title,
        known.severity,
        confidence,
        known.why,
        tuple(fix),
        one.proof,
        one.seen,
        one.resembles,
        one.versions,
    )
