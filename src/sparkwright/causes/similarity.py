"""Causes that a log resembles by its rare words (BM25), where no sign of a cause is in it: never more than possible."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Set
from functools import cache, lru_cache
from math import log

from sparkwright.causes.cause import LogCause
from sparkwright.causes.explanation import Reason
from sparkwright.causes.load import families
from sparkwright.causes.ranking import FoundCause
from sparkwright.domain.finding import Severity
from sparkwright.logscan.sign import HINT, POSSIBLE

_SATURATED, _BY_LENGTH = 1.2, 0.5  # BM25's k1 and b
_MOST = 400  # different words of a log
_IN_FAMILY, _BY_MECHANISM, _LATER = 1.1, 1.8, 0.8  # by what a score is multiplied; each further key of a mechanism
_UNKNOWN = 6.0  # worth of a word that no cause has
# The best one's share of what the log's words are worth, times its score over the next one's: chosen on reports whose
# own signatures were left out, and on logs that no cause fits. At least so much where the mechanism names it too, where
# it does not, and where no line is an error; what is clear is possible, the rest a hint.
_LEAST, _ALONE, _DESCRIBED, _CLEAR = 0.2, 0.225, 0.3, 0.25
_RARE, _MANY = 2.0, 2  # worth of a word of one cause in seven; so many are shared where no mechanism names it
_NAMED = 1.3  # more where the mechanism of the line names it
_SHOWN = 6  # words
_WORD = re.compile(r"[A-Za-z_]\w{0,60}(?:[.-]\w{1,60}){0,6}|\d{2,6}")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_SYNTAX = re.compile(r"\(\?[^):]{0,20}:?|\\[bdDwWsSAZ]|\[[^\]]*\]|\{\d*,?\d*\}|[\\?+*|()^$]")
_ENDING = re.compile(r"(?<=...)(?:ing|ed|es|ly|(?<!s)s|e)$")


@lru_cache(1 << 14)
def _stems(word: str) -> tuple[str, ...]:
    """The word as it is and its parts (`cudaErrorNoDevice`: cuda, error, device), without endings."""
    parts = [_ENDING.sub("", part.lower()) for part in _PART.findall(word)]
    whole = (word.lower(),) if len(parts) > 1 else ()
    return (*whole, *(part for part in parts if len(part) > 1))


def words_of(text: str) -> list[str]:
    return [stem for word in _WORD.findall(text) for stem in _stems(word)]


@cache
def _of_outcomes() -> frozenset[str]:
    """Words that say only that something ended badly; they do not count as rare."""
    return frozenset(words_of("task command module process returned a non-zero exit status code failed with an error"))


@cache
def document(cause: LogCause) -> Mapping[str, float]:
    """Its words (of key, title, why, fix, the letters of its patterns, examples) and what they count for."""
    patterns = " ".join(_SYNTAX.sub(" ", pattern) for sign in cause.signatures for pattern in sign.patterns)
    parts = ((cause.key, 2.0), (cause.title, 2.0), (cause.why, 1.0), (" ".join(cause.fix), 0.5), (patterns, 1.0))
    found: dict[str, float] = defaultdict(float)
    for text, weight in (*parts, *((example, 0.7) for example in cause.fires)):
        for word in words_of(text):
            found[word] += weight
    return found


def _has_most(cause: LogCause, words: Set[str]) -> bool:
    """True if more than half of these words are in its texts, or there are none."""
    return not words or 2 * len(words & document(cause).keys()) > len(words)


class CauseIndex:
    """An index of causes by the words of their texts; harmless ones are left out."""

    def __init__(self, causes: Iterable[LogCause]) -> None:
        listed = [cause for cause in causes if cause.severity is not Severity.INFO]
        self._causes = {cause.code: cause for cause in listed}
        self._family = {cause.key: family for family, group in families().items() for cause in group}
        seen = Counter(word for cause in listed for word in document(cause))
        self._worth = {word: log(1 + (len(listed) - n + 0.5) / (n + 0.5)) for word, n in seen.items()}
        mean = sum(sum(document(cause).values()) for cause in listed) / len(listed)
        self._by_word: dict[str, list[tuple[str, float]]] = defaultdict(list)
        for cause in listed:
            long = _SATURATED * (1 - _BY_LENGTH + _BY_LENGTH * sum(document(cause).values()) / mean)
            for word, count in document(cause).items():
                value = self._worth[word] * count * (_SATURATED + 1) / (count + long)
                self._by_word[word].append((cause.code, value))

    def nearest(self, reason: Reason) -> FoundCause | None:
        """The cause that the log may be a case of; None where it resembles none enough."""
        given: dict[str, float] = {}
        for text, weight in reason.lines:
            given |= {word: max(weight, given.get(word, 0.0)) for word in words_of(text)}
        worth = {word: weight * self._worth.get(word, _UNKNOWN) for word, weight in given.items()}
        shared: dict[str, list[tuple[float, str]]] = defaultdict(list)
        for word in sorted(worth, key=lambda word: -worth[word])[:_MOST]:
            for code, value in self._by_word.get(word, ()):
                shared[code].append((given[word] * value, word))
        told = frozenset(words_of(reason.telling))
        may_be = (code for code in shared if _has_most(self._causes[code], told))
        scores = {code: sum(value for value, _ in shared[code]) for code in may_be}
        weighed = {code: score * self._likelier(self._causes[code], reason) for code, score in scores.items()}
        near = sorted(weighed, key=lambda code: -weighed[code])
        if not near:
            return None
        best, alone = near[0], weighed[near[0]] / weighed[near[:2][-1]]
        clear = alone * scores[best] / (sum(worth.values()) * (_SATURATED + 1))
        by_mechanism = self._causes[best].key in reason.keys
        clear *= _NAMED if by_mechanism else 1.0
        telling = (word for _, word in shared[best] if not (word.isdigit() or word in _of_outcomes()))
        rare = sum(self._worth[word] >= _RARE for word in telling)
        least = (_LEAST if by_mechanism else _ALONE) if reason.bad else _DESCRIBED
        if clear < least or not (by_mechanism or rare >= _MANY):
            return None
        words = tuple(word for _, word in sorted(shared[best], reverse=True)[:_SHOWN])
        return FoundCause(self._causes[best], POSSIBLE if clear >= _CLEAR else HINT, reason.proof, {}, 1, words)

    def _likelier(self, cause: LogCause, reason: Reason) -> float:
        """The factor of the score: the mechanism of the line names the cause, or its family."""
        named = _BY_MECHANISM * _LATER ** reason.keys.index(cause.key) if cause.key in reason.keys else 1.0
        return named * (_IN_FAMILY if reason.why and self._family[cause.key] in reason.why.families else 1.0)


@cache
def cause_index() -> CauseIndex:
    return CauseIndex(cause for family in families().values() for cause in family)
