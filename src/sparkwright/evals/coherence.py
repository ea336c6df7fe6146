"""Easy questions with known answers: whether a model that has just started speaks, or produces token soup."""

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from importlib.resources import files

from sparkwright.domain.values import dataclass

_WORD = re.compile(r"[^\W\d_]+")
_TOKEN = re.compile(r"\w+")
_ONE_CHARACTER, _FEWEST = 0.8, 6
_BROKEN = 0.2
_LOOP = re.compile(r"([^\W\d_]{2,20}?)\1{7}")
_LONGEST = 2000  # characters that are judged
_FEW_WORDS = 8  # fewer show nothing about a language
_FEWEST_COMMON = 0.12  # of the words of a text in Latin letters
_MOST_REPEATED = 0.7  # of the runs of three words are there before
_LONG_WORD = 20  # letters; one in twenty words at most is longer, in German, too
_MOST_SCRIPTS, _SHARE = 2, 0.05  # a script counts from this part of the letters on
_SOUPS = 2  # of three answers
_FEWEST_OF_SENTENCE = 3  # words
_SENTENCE = re.compile(r"[.?!:;\u2026\n]+")
_MARKUP = re.compile(r"</?\|?[A-Za-z_]{1,30}\|?>(?:[a-z]{2,12}$)?", re.MULTILINE)
"""A chat template's tag, with the role that ends its line: a base model repeats those of its prompt."""


class Coherence(StrEnum):
    """unknown: the answers are language, or missing, and none of them is the known one."""

    COHERENT = "coherent"
    GARBLED = "garbled"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class EasyQuestion:
    ask: str
    known: tuple[re.Pattern[str], ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """The judgement of a few answers. why: a sentence with the proof, '' when coherent."""

    coherence: Coherence
    why: str = ""


@cache
def _table() -> tuple[tuple[EasyQuestion, ...], int, frozenset[str]]:
    text = (files("sparkwright.evals") / "coherence.toml").read_text(encoding="utf-8")
    tree = tomllib.loads(text)
    found = tuple(
        EasyQuestion(one["ask"], tuple(re.compile(each, re.IGNORECASE) for each in one["known"]))
        for one in tree["question"]
    )
    return found, int(tree["tokens"]), frozenset(tree["common"]["words"])


def questions() -> tuple[EasyQuestion, ...]:
    return _table()[0]


def answer_tokens() -> int:
    """Most tokens of an answer: a model that thinks first names the answer by then."""
    return _table()[1]


def judge_answers(answers: Sequence[tuple[EasyQuestion, str]]) -> Judged:
    """One known answer shows a model that understands, unless the others are soup.

    Without any, soup is garbled; a language that is not understood, or a model of another kind, is unknown.
    """
    texts = [(question, text[:_LONGEST]) for question, text in answers]
    known = sum(any(each.search(text) for each in question.known) for question, text in texts)
    soups = [(why, text) for _, text in texts if (why := why_soup(text))]
    if len(soups) >= _SOUPS and known < 2:
        why, text = soups[0]
        return Judged(Coherence.GARBLED, f"{why}: {text[:80]!r}")
    if known:
        return Judged(Coherence.COHERENT)
    shown = "; ".join(repr(text[:40]) for _, text in texts)
    return Judged(Coherence.UNKNOWN, f"none of {len(texts)} easy questions was answered: {shown}")


def why_soup(text: str) -> str:
    """The reason why a text is no language; '' when it may be one, or is too short to tell."""
    if why := babble(text) or _scripts(text):
        return why
    if loop := _LOOP.search(text):
        return f"{loop[1]!r} over and over"
    tags, plain = Counter(_MARKUP.findall(text)), _MARKUP.sub("\n", text)
    if len(tags) == 1 and tags.total() >= _FEW_WORDS and not plain.strip():
        return f"{next(iter(tags))!r} over and over"
    words = _words(plain)
    if len(words) < _FEW_WORDS:
        return ""
    loops = (why for part in _told_once(plain) if (why := _repeats(part)))
    return next(loops, "") or _foreign_words(words)


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _told_once(text: str) -> list[list[str]]:
    """The words in parts: each whole sentence once, the last one, which may be cut off, and all of them together.

    A base model at temperature 0 repeats sentences, and is well. A damaged one loops inside a sentence.
    """
    *whole, last = [tuple(_words(part)) for part in _SENTENCE.split(text)]
    found = [one for one in dict.fromkeys(whole) if len(one) >= _FEWEST_OF_SENTENCE]
    short = [one for one in whole if len(one) < _FEWEST_OF_SENTENCE]
    if not any(one[: len(last)] == last for one in found):
        found.append(last)
    return [*map(list, found), [word for part in (*found, *short) for word in part]]


def babble(said: str) -> str:
    """The reason why a text is no language whatever was asked; '' if it may be one. Empty text may be hidden
    reasoning."""
    text = "".join(said.split())
    if text and sum(c == "\ufffd" or not c.isprintable() for c in text) / len(text) >= _BROKEN:
        return "bytes that are no text"
    if len(text) >= _FEWEST and (most := Counter(text).most_common(1)[0])[1] / len(text) >= _ONE_CHARACTER:
        return f"{most[0]!r} over and over"
    words = [word.lower() for word in _TOKEN.findall(said)]
    if len(words) >= 4 and len(set(words)) == 1:
        return f"{words[0][:20]!r} over and over"
    return ""


def _repeats(words: Sequence[str]) -> str:
    if len(words) < _FEW_WORDS:
        return ""
    triples = Counter(zip(words, words[1:], words[2:], strict=False))
    repeated = 1 - len(triples) / max(1, sum(triples.values()))
    return f"{' '.join(triples.most_common(1)[0][0])!r} over and over" if repeated >= _MOST_REPEATED else ""


def _foreign_words(words: Sequence[str]) -> str:
    """Judges texts in Latin letters only."""
    latin = [word for word in words if word[0] < "\u0250"]
    if len(latin) < len(words) * (1 - _SHARE):
        return ""
    if sum(len(word) > _LONG_WORD for word in latin) >= _SHARE * len(latin):
        return "words run together"
    common = sum(word in _table()[2] for word in latin) / len(latin)
    return "words without a sentence" if common < _FEWEST_COMMON else ""


def _scripts(text: str) -> str:
    """Japanese alone writes with three; they count as one here."""
    letters = [c for c in text if c.isalpha()]
    found = Counter(_script(c) for c in letters)
    mixed = [name for name, number in found.items() if number >= max(2.0, _SHARE * len(letters))]
    return f"letters of {len(mixed)} scripts" if len(mixed) > _MOST_SCRIPTS else ""


@cache
def _script(letter: str) -> str:
    name = unicodedata.name(letter, "?").partition(" ")[0]
    return "CJK" if name in ("HIRAGANA", "KATAKANA", "HALFWIDTH", "FULLWIDTH") else name
