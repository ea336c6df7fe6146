"""Verifiable instructions: what each kind asks, and its check. Own texts and checks, in the manner of IFEval.

Idea: https://arxiv.org/abs/2311.07911. A new kind: a maker below and its line in KINDS.
"""

import re
from collections.abc import Callable, Mapping
from random import Random

from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.values import dataclass
from sparkwright.loadgen.texts import COMMON, PLACES, THINGS

Check = Callable[[str], bool]
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_SENTENCE = re.compile(r"[^.!?…]+(?:[.!?…]+|$)")
_BULLET = re.compile(r"^\s*[*-] +\S", re.MULTILINE)
_CJK = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
# Letters and small words by which a text of a few sentences is recognised.
_LANGUAGES: Mapping[str, tuple[str, ...]] = {
    "German": ("der", "die", "und", "das", "ist", "ein", "nicht", "mit", "zu", "den"),
    "French": ("le", "la", "les", "et", "est", "un", "une", "des", "dans", "pour"),
    "Spanish": ("el", "la", "los", "y", "es", "un", "una", "en", "que", "por"),
    "Italian": ("il", "la", "gli", "e", "un", "una", "di", "che", "per", "non"),
}


@dataclass(frozen=True, slots=True)
class Instruction:
    """text: the sentence in the prompt. alone: it sets the whole form, so that no other may be next to it."""

    kind: str
    text: str
    check: Check
    alone: bool = False


Maker = Callable[[Random], tuple[str, Check]]


def find_words(text: str) -> list[str]:
    return _WORD.findall(text)


def sentences(text: str) -> list[str]:
    return [one for one in _SENTENCE.findall(text) if _WORD.search(one)]


def _at_least_words(dice: Random) -> tuple[str, Check]:
    count = dice.randrange(40, 120, 10)
    return f"Write at least {count} words.", lambda text: len(find_words(text)) >= count


def _at_most_words(dice: Random) -> tuple[str, Check]:
    count = dice.randrange(30, 80, 10)
    return f"Use at most {count} words.", lambda text: 0 < len(find_words(text)) <= count


def _sentence_count(dice: Random) -> tuple[str, Check]:
    count = dice.randrange(2, 6)
    return f"Write exactly {count} sentences.", lambda text: len(sentences(text)) == count


def _paragraphs(dice: Random) -> tuple[str, Check]:
    count = dice.randrange(2, 5)
    return (
        f"Write exactly {count} paragraphs, with an empty line between them.",
        lambda text: sum(bool(part.strip()) for part in re.split(r"\n\s*\n", text.strip())) == count,
    )


def _bullets(dice: Random) -> tuple[str, Check]:
    count = dice.randrange(3, 7)
    return (
        f"Give exactly {count} bullet points, each on a line that begins with '* '.",
        lambda text: len(_BULLET.findall(text)) == count,
    )


def _numbered(dice: Random) -> tuple[str, Check]:
    count = dice.randrange(3, 7)
    numbers = [str(number + 1) for number in range(count)]
    return (
        f"Give a numbered list of exactly {count} entries, as in '1. '.",
        lambda text: re.findall(r"^\s*(\d+)\. +\S", text, re.MULTILINE) == numbers,
    )


def _keyword(dice: Random) -> tuple[str, Check]:
    one, two = dice.sample(THINGS, 2)
    return f"Use the words '{one}' and '{two}'.", lambda text: all(w.lower() in text.lower() for w in (one, two))


def _keyword_times(dice: Random) -> tuple[str, Check]:
    word, count = dice.choice(THINGS), dice.randrange(2, 5)
    found = re.compile(rf"\b{re.escape(word)}\b", re.IGNORECASE)
    return f"Use the word '{word}' exactly {count} times.", lambda text: len(found.findall(text)) == count


def _forbidden(dice: Random) -> tuple[str, Check]:
    banned = dice.sample(("very", "also", "because", "small", "water", "people"), 2)
    texts = " and ".join(f"'{word}'" for word in banned)
    return f"Do not use the words {texts}.", lambda text: not {*banned} & {word.lower() for word in find_words(text)}


def _letter(dice: Random) -> tuple[str, Check]:
    letter, count = dice.choice("bgkpvw"), dice.randrange(3, 7)
    return (
        f"Use the letter '{letter}' at least {count} times.",
        lambda text: text.lower().count(letter) >= count,
    )


def _without_letter(dice: Random) -> tuple[str, Check]:
    letter = dice.choice("jqxz")
    return f"Do not use the letter '{letter}'.", lambda text: bool(text.strip()) and letter not in text.lower()


def _lower(dice: Random) -> tuple[str, Check]:
    return "Use lower-case letters only.", lambda text: bool(find_words(text)) and text == text.lower()


def _upper(dice: Random) -> tuple[str, Check]:
    return "Use capital letters only.", lambda text: bool(find_words(text)) and text == text.upper()


def _capital_words(dice: Random) -> tuple[str, Check]:
    count = dice.randrange(2, 5)
    return (
        f"Write at least {count} words in capital letters only.",
        lambda text: sum(len(word) > 1 and word.isupper() for word in find_words(text)) >= count,
    )


def _language(dice: Random) -> tuple[str, Check]:
    name = dice.choice(sorted(_LANGUAGES))
    return f"Answer in {name} only.", lambda text: _spoken(text) == name


def _spoken(text: str) -> str:
    """The language with most of its small words, at least one word in eight; '' for none."""
    found = [word.lower() for word in find_words(text)]
    counts = {name: sum(word in small for word in found) for name, small in _LANGUAGES.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] * 8 >= len(found) > 0 and not _CJK.search(text) else ""


def _json(dice: Random) -> tuple[str, Check]:
    keys = dice.sample(("title", "place", "reason", "count", "color"), 3)
    return (
        f"Answer with one JSON object and nothing else; its keys are {', '.join(keys)}.",
        lambda text: _object(text, keys),
    )


def _object(text: str, keys: list[str]) -> bool:
    bare = re.sub(r"^```(?:json)?\s*|\s*```$", "", text.strip())
    try:
        tree = read_json(bare)
    except ValueError:
        return False
    return isinstance(tree, dict) and set(tree) == set(keys)


def _ends_with(dice: Random) -> tuple[str, Check]:
    end = dice.choice(("That is all.", "More tomorrow.", "Ask again at any time."))
    return f"End with exactly this sentence: {end}", lambda text: text.strip().endswith(end)


def _begins_with(dice: Random) -> tuple[str, Check]:
    first = dice.choice(COMMON).capitalize()
    return f"Begin with the word '{first}'.", lambda text: find_words(text)[:1] == [first]


def _repeat(dice: Random) -> tuple[str, Check]:
    line = f"The {dice.choice(THINGS)} is at the {dice.choice(PLACES)}."
    return (
        f"First repeat this sentence word for word, then answer: {line}",
        lambda text: text.strip().startswith(line) and len(text.strip()) > len(line) + 10,
    )


def _quoted(dice: Random) -> tuple[str, Check]:
    return "Put the whole answer in double quotation marks.", lambda text: bool(re.fullmatch(r'\s*"[^"]+"\s*', text))


def _title(dice: Random) -> tuple[str, Check]:
    return (
        "Begin with a title in double angle brackets, as in <<title>>.",
        lambda text: bool(re.match(r"\s*<<[^<>\n]+>>", text)),
    )


def _no_comma(dice: Random) -> tuple[str, Check]:
    return "Do not use any commas.", lambda text: bool(find_words(text)) and "," not in text


def _placeholders(dice: Random) -> tuple[str, Check]:
    count = dice.randrange(2, 5)
    return (
        f"Use at least {count} placeholders in square brackets, such as [name].",
        lambda text: len(re.findall(r"\[[^\[\]\n]+\]", text)) >= count,
    )


def _sections(dice: Random) -> tuple[str, Check]:
    count = dice.randrange(2, 4)
    return (
        f"Divide the answer into {count} sections; begin each with 'Section' and its number.",
        lambda text: re.findall(r"^\W*Section (\d+)", text, re.MULTILINE) == [str(n + 1) for n in range(count)],
    )


def _postscript(dice: Random) -> tuple[str, Check]:
    return "Add a postscript that begins with 'P.S.'.", lambda text: bool(re.search(r"^\W*P\.S\.", text, re.MULTILINE))


def _highlighted(dice: Random) -> tuple[str, Check]:
    count = dice.randrange(2, 4)
    return (
        f"Highlight at least {count} phrases with asterisks, as in *phrase*.",
        lambda text: len(re.findall(r"\*{1,2}[^*\s][^*\n]*\*{1,2}", text)) >= count,
    )


def _choice(dice: Random) -> tuple[str, Check]:
    answers = ("yes, certainly", "no, never", "it depends")
    listed = " / ".join(f"'{one}'" for one in answers)
    return (
        f"Answer with exactly one of these and nothing else: {listed}.",
        lambda text: text.strip(" .\n'\"") in answers,
    )


KINDS: Mapping[str, Maker] = {
    "words-at-least": _at_least_words,
    "words-at-most": _at_most_words,
    "sentences": _sentence_count,
    "paragraphs": _paragraphs,
    "bullets": _bullets,
    "numbered": _numbered,
    "keywords": _keyword,
    "keyword-times": _keyword_times,
    "forbidden-words": _forbidden,
    "letter": _letter,
    "without-letter": _without_letter,
    "lower-case": _lower,
    "upper-case": _upper,
    "capital-words": _capital_words,
    "language": _language,
    "json": _json,
    "end": _ends_with,
    "begin": _begins_with,
    "repeat": _repeat,
    "quoted": _quoted,
    "title": _title,
    "no-commas": _no_comma,
    "placeholders": _placeholders,
    "sections": _sections,
    "postscript": _postscript,
    "highlights": _highlighted,
    "choice": _choice,
}
# Each sets the form of the whole answer: no other instruction next to it.
ALONE = frozenset({"json", "choice", "language", "upper-case", "quoted", "repeat", "numbered", "bullets", "sections"})
