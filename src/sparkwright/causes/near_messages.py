"""The cause whose messages and examples a line is most like, by words and pairs of words: a hint, where no sign, no
message and no description of a cause fits."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence, Set
from functools import cache
from itertools import pairwise
from math import log, sqrt

from sparkwright.causes.candidates import split_prefix
from sparkwright.causes.cause import LogCause
from sparkwright.causes.explanation import Reason
from sparkwright.causes.load import families
from sparkwright.causes.messages import all_stated
from sparkwright.causes.ranking import FoundCause
from sparkwright.causes.similarity import words_of
from sparkwright.domain.finding import Severity
from sparkwright.engines.messages import SLOT
from sparkwright.logscan.sign import HINT

_NEIGHBOURS, _POWER = 15, 3  # nearest messages that vote, each with its likeness to this power
# Likeness of the nearest message; the first cause's share of the votes of the first three; what the line and that
# message have in common, in worth of words that only one message has (`syntax error` is too little). Chosen on 43
# collected failures without a named cause: 10 get one, 7 of them the right one.
_LEAST_LIKE, _LEAST_SHARE, _LEAST_COMMON = 0.25, 0.6, 2.4
_UNKNOWN = 0.5  # worth of a word that is in no message, as a share of the rarest word's
_MOST = 200  # words and pairs of a line
_SHOWN = 6  # words
_VALUE = re.compile(r"0x[0-9a-f]+|\b\d[\d.:]*\b|/[\w./-]+")


class MessageIndex:
    """An index of texts by their words and pairs of words, weighted by rarity (cosine of TF-IDF)."""

    def __init__(self, texts: Iterable[tuple[LogCause, str]]) -> None:
        listed = [(cause, _features(text)) for cause, text in texts]
        self._causes = [cause for cause, _ in listed]
        seen = Counter(word for _, words in listed for word in words)
        self._rarest = log(max(len(listed), 2))
        self._worth = {word: (log(len(listed) / n)) ** 2 for word, n in seen.items()}
        self._length = [sqrt(sum(self._worth[word] for word in words)) or 1.0 for _, words in listed]
        self._by_word = defaultdict[str, list[int]](list)
        for number, (_, words) in enumerate(listed):
            for word in words:
                self._by_word[word].append(number)

    def nearest(self, because: Reason) -> FoundCause | None:
        """A hint of the cause that most of the nearest messages state; None where none is near, or they disagree."""
        words = _features(because.why.line.text) if because.why else frozenset[str]()
        near = self._near(words)
        if not near or near[0][0] < _LEAST_LIKE:
            return None
        votes = defaultdict[str, float](float)
        for like, number in near:
            votes[self._causes[number].key] += like**_POWER
        best = sorted(votes, key=lambda key: -votes[key])[:3]
        if votes[best[0]] < _LEAST_SHARE * sum(votes[key] for key in best):
            return None
        nearest = next(number for _, number in near if self._causes[number].key == best[0])
        common = [word for word in words if nearest in self._by_word.get(word, ())]
        if sum(self._worth[word] for word in common) < _LEAST_COMMON * self._rarest**2:
            return None
        shown = sorted((word for word in common if " " not in word), key=lambda word: (-self._worth[word], word))
        return FoundCause(self._causes[nearest], HINT, because.proof, {}, 1, tuple(shown[:_SHOWN]))

    def _near(self, words: Set[str]) -> Sequence[tuple[float, int]]:
        """(likeness, number) of the nearest texts, the nearest first."""
        unknown = (_UNKNOWN * self._rarest) ** 2
        length = sqrt(sum(self._worth.get(word, unknown) for word in words)) or 1.0
        shared = defaultdict[int, float](float)
        for word in words:
            for number in self._by_word.get(word, ()):
                shared[number] += self._worth[word]
        found = ((score / (length * self._length[number]), number) for number, score in shared.items())
        return sorted(found, reverse=True)[:_NEIGHBOURS]


def _features(text: str) -> frozenset[str]:
    """Its words, and each two that follow one another, without values, paths and what stands before a message."""
    words = words_of(_VALUE.sub(" ", split_prefix(text)[1].replace(SLOT, " ")))[:_MOST]
    return frozenset(words) | {f"{one} {other}" for one, other in pairwise(words)}


@cache
def message_index() -> MessageIndex:
    """The index of the messages that state a cause, of examples, and of the causes' titles and keys."""
    known = {c.key: c for group in families().values() for c in group if c.severity is not Severity.INFO}
    stated = ((known[one.key], text) for text, one in all_stated() if one.key in known)
    own = ((c, text) for c in known.values() for text in (*c.fires, c.title, c.key.replace("-", " ")))
    return MessageIndex([*stated, *own])
