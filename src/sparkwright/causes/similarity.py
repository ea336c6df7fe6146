"""Causes that a log resembles by its rare words, where no sign of a cause is in it: never more than possible.

BM25 over the causes' own texts (key, title, why, fix, the letters of their patterns, examples).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import log

from sparkwright.causes.cause import LogCause
from sparkwright.causes.explanation import Reason
from sparkwright.causes.load import families
from sparkwright.causes.ranking import Found
from sparkwright.domain.finding import Severity
from sparkwright.logscan.sign import HINT, POSSIBLE

_SATURATED, _BY_LENGTH = 1.2, 0.5  # BM25's k1 and b
_MOST = 400  # different words of a log
_IN_FAMILY, _BY_MECHANISM, _LATER = 1.1, 1.8, 0.97  # by what a score is multiplied; each further key of a mechanism
_UNKNOWN = 6.0  # worth of a word that no cause has
_LEAST, _CLEAR = 0.1, 0.2  # share of what the log's words are worth: below nothing is named, from here on clearly
_MARGIN, _NEARLY = 1.15, 0.8  # of the best score over the next one; of those that are named with it
_CHOSEN, _SHOWN = 3, 6  # causes; words
_WORD = re.compile(r"[A-Za-z_]\w{0,60}(?:[.-]\w{1,60}){0,6}|\d{2,6}")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_SYNTAX = re.compile(r"\(\?[^):]{0,20}:?|\\[bdDwWsSAZ]|\[[^\]]*\]|\{\d*,?\d*\}|[\\?+*|()^$]")
_ENDINGS = ("ing", "ed", "es", "ly", "s", "e")


@dataclass(frozen=True, slots=True)
class Near:
    """A cause. score: of the words it shares; share: of what all words asked for are worth, 0 to 1."""

    cause: LogCause
    score: float
    share: float
    words: tuple[str, ...]


@cache
def _stems(word: str) -> tuple[str, ...]:
    """The word as it is and its parts (`cudaErrorNoDevice`: cuda, error, device), without endings."""
    parts = [_stem(part.lower()) for part in _PART.findall(word)]
    whole = (word.lower(),) if len(parts) > 1 else ()
    return (*whole, *(part for part in parts if len(part) > 1))


def _stem(word: str) -> str:
    ending = next((one for one in _ENDINGS if word.endswith(one) and len(word) > len(one) + 2), "")
    return word.removesuffix(ending) if not word.endswith("ss") else word


def words_of(text: str) -> list[str]:
    return [stem for word in _WORD.findall(text) for stem in _stems(word)]


@cache
def document(cause: LogCause) -> Mapping[str, float]:
    """Its words and what they count for."""
    patterns = " ".join(_SYNTAX.sub(" ", pattern) for sign in cause.signatures for pattern in sign.patterns)
    parts = ((cause.key, 2.0), (cause.title, 2.0), (cause.why, 1.0), (" ".join(cause.fix), 0.5), (patterns, 1.0))
    found: dict[str, float] = defaultdict(float)
    for text, weight in (*parts, *((example, 0.7) for example in cause.fires)):
        for word in words_of(text):
            found[word] += weight
    return found


class Index:
    """Of causes by the words of their texts; harmless ones are left out."""

    def __init__(self, causes: Iterable[LogCause]) -> None:
        listed = [cause for cause in causes if cause.severity is not Severity.INFO]
        self._family = {cause.key: family for family, group in families().items() for cause in group}
        seen = Counter(word for cause in listed for word in document(cause))
        self._worth = {word: log(1 + (len(listed) - n + 0.5) / (n + 0.5)) for word, n in seen.items()}
        mean = sum(sum(document(cause).values()) for cause in listed) / len(listed)
        self._by_word: dict[str, list[tuple[LogCause, float]]] = defaultdict(list)
        for cause in listed:
            long = _SATURATED * (1 - _BY_LENGTH + _BY_LENGTH * sum(document(cause).values()) / mean)
            for word, count in document(cause).items():
                value = self._worth[word] * count * (_SATURATED + 1) / (count + long)
                self._by_word[word].append((cause, value))

    def nearest(self, reason: Reason) -> list[Near]:
        """The nearest first; none when the log shares too little with all."""
        given: dict[str, float] = {}
        for text, weight in reason.lines:
            given |= {word: max(weight, given.get(word, 0.0)) for word in words_of(text)}
        worth = {word: weight * self._worth[word] for word, weight in given.items() if word in self._worth}
        rare = sorted(worth, key=lambda word: -worth[word])[:_MOST]
        shared: dict[str, list[tuple[float, str]]] = defaultdict(list)
        causes: dict[str, LogCause] = {}
        for word in rare:
            for cause, value in self._by_word[word]:
                shared[cause.key].append((given[word] * value, word))
                causes[cause.key] = cause
        most = sum(weight * self._worth.get(word, _UNKNOWN) for word, weight in given.items()) * (_SATURATED + 1)
        near = [self._near(causes[key], sorted(pairs, reverse=True), most, reason) for key, pairs in shared.items()]
        return sorted(near, key=lambda one: -one.score)

    def _near(self, cause: LogCause, pairs: Sequence[tuple[float, str]], most: float, reason: Reason) -> Near:
        score = sum(value for value, _ in pairs)
        words = tuple(word for _, word in pairs[:_SHOWN])
        named = _BY_MECHANISM * _LATER ** reason.keys.index(cause.key) if cause.key in reason.keys else 1.0
        of_family = reason.why and self._family[cause.key] in reason.why.families
        return Near(cause, score * named * (_IN_FAMILY if of_family else 1.0), score / most, words)


@cache
def index() -> Index:
    """Of all causes."""
    return Index(cause for family in families().values() for cause in family)


def resembled(reason: Reason, causes: Index) -> list[Found]:
    """Causes that the log may be a case of, the likeliest first; none where it resembles none enough."""
    near = causes.nearest(reason)[:_CHOSEN]
    near = [one for one in near if one.score >= _NEARLY * near[0].score]
    if not near:
        return []
    is_named, best = near[0].cause.key in reason.keys, near[0]
    alone = len(near) < 2 or best.score >= _MARGIN * near[1].score
    clear = best.share >= _CLEAR if alone else best.share >= 2 * _CLEAR
    if not (clear or is_named) and (best.share < _LEAST or not reason.bad):
        return []
    first = POSSIBLE if clear or is_named else HINT
    return [Found(n.cause, round(first * n.score / best.score, 2), reason.proof, {}, 1, n.words) for n in near]
