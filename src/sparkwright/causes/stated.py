"""The cause that an engine's message states, among those that rules found."""

from collections.abc import Mapping, Set
from functools import cache

from sparkwright.causes.cause import LogCause
from sparkwright.causes.explanation import Reason
from sparkwright.causes.load import families
from sparkwright.causes.ranking import MOST, FoundCause, fill_steps
from sparkwright.domain.diagnosis import Cause, Diagnosis, Proof
from sparkwright.domain.values import replace

_BEHIND = 0.1  # by which a cause that only words of the same line show stays behind
_SURE = 0.8  # a rule that is surer knows a line better than the table of messages


def with_stated(found: Diagnosis, because: Reason, words: Mapping[str, str], impossible: Set[str]) -> Diagnosis:
    """The diagnosis with the cause that an engine's message states, before what only words of that line show.

    words: about the cluster. impossible: keys of causes that cannot be.
    """
    stated, line = because.states or (None, None)
    known = _by_key().get(stated.key) if stated else None
    if not stated or not line or not known or known.key in impossible:
        return found
    new = fill_steps(FoundCause(known, stated.sure, (line,), {}), stated.sure, words)
    if same := next((cause for cause in found.causes if cause.key == known.key), None):
        new = replace(same, confidence=max(same.confidence, new.confidence))
    others = (cause for cause in found.causes if cause.key != known.key)
    behind = (_behind(cause, new.confidence - _BEHIND) if _is_by_words_of(cause, line) else cause for cause in others)
    return replace(found, causes=tuple(sorted((new, *behind), key=lambda cause: -round(cause.confidence * 20))[:MOST]))


@cache
def _by_key() -> Mapping[str, LogCause]:
    return {cause.key: cause for causes in families().values() for cause in causes}


def _behind(cause: Cause, most: float) -> Cause:
    return replace(cause, confidence=round(min(cause.confidence, most), 2))


def _is_by_words_of(cause: Cause, line: Proof) -> bool:
    """True if a rule that is no more than likely found the cause in that line."""
    there = any((proof.source, proof.number) == (line.source, line.number) for proof in cause.proof)
    return there and cause.confidence < _SURE
