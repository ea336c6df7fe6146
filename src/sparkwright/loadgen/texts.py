"""Natural-looking text of three kinds, made here: the same for the same seed, never the same twice in a prompt.

Every piece begins with a letter or a bracket and ends with a line break. Tokenizers cut there, whatever follows, so the
tokens of pieces one after the other are the sum of their tokens.
"""

import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from random import Random

from sparkwright.domain.workload import Text

_DATA: dict[str, list[str]] = json.loads(Path(__file__).with_name("texts.json").read_text(encoding="utf-8"))


PEOPLE, NAMES, PLACES = _DATA["people"], _DATA["names"], _DATA["places"]
THINGS, IDEAS, KINDS = _DATA["things"], _DATA["ideas"], _DATA["kinds"]
VERBS, FIELDS = _DATA["verbs"], _DATA["fields"]
# Words that stand alone, each of at most six letters: with a space in front, one token in nearly every vocabulary.
COMMON, LETTERS = _DATA["common"], _DATA["letters"]


def sentence(dice: Random) -> str:
    frame = dice.choice(_DATA["frames"])
    name, other = dice.sample(NAMES, 2)
    place, other_place = dice.sample(PLACES, 2)
    when, did = dice.choice(_DATA["when"]), dice.choice(_DATA["did"])
    kind = dice.choice(KINDS)
    return frame.format(
        person=dice.choice(PEOPLE),
        name=name,
        Name=name,
        other=other,
        place=place,
        other_place=other_place,
        thing=dice.choice(THINGS),
        idea=dice.choice(IDEAS),
        kind=kind,
        kinder=f"more {kind}",
        did=did,
        done=_PARTICIPLES.get(did, did),
        went=dice.choice(_DATA["went"]),
        how=dice.choice(_DATA["how"]),
        when=when,
        When=when[0].upper() + when[1:],
        where=dice.choice(_DATA["where"]),
        number=dice.choice(_DATA["numbers"]),
    )


_PARTICIPLES = {"hid": "hidden", "drew": "drawn", "forgot": "forgotten"}


def _repeated(make: Callable[[Random], str], dice: Random, size: int) -> list[str]:
    """Texts that together have at least `size` words."""
    found, count = [], 0
    while count < size:
        found.append(make(dice))
        count += len(found[-1].split())
    return found


def paragraph(dice: Random, size: int) -> str:
    """Sentences on one line, at least `size` words."""
    return " ".join(_repeated(sentence, dice, size)) + "\n"


def small_object(dice: Random) -> str:
    """An object of a few plain values."""
    name, place = dice.choice(NAMES), dice.choice(PLACES)
    return json.dumps({"name": name, "place": place, "count": dice.randrange(1000), "open": dice.random() < 0.5})


def record(dice: Random) -> str:
    """An object with lists and an object inside."""
    found = {
        "id": f"{dice.choice(THINGS)}-{dice.randrange(100, 1000)}",
        "owner": {"name": dice.choice(NAMES), "role": dice.choice(PEOPLE)},
        "title": f"{dice.choice(KINDS)} {dice.choice(THINGS)}",
        "tags": dice.sample(IDEAS, dice.randrange(2, 5)),
        "price": round(dice.uniform(1, 500), 2),
        "history": [
            {"state": dice.choice(_DATA["did"]), "hour": dice.randrange(24), "ok": dice.random() < 0.8}
            for _ in range(dice.randrange(1, 4))
        ],
        "next": None if dice.random() < 0.3 else dice.randrange(10_000),
    }
    return json.dumps(found)


def records(dice: Random, size: int) -> str:
    """Objects, one a line, at least `size` words."""
    return "".join(f"{one}\n" for one in _repeated(record, dice, size))


_PLAIN = [word for word in THINGS + IDEAS if len(word) < 9]


def code_statement(dice: Random) -> str:
    """One statement at the top level."""
    a, b = dice.sample(_PLAIN, 2)
    return f"{a}_{b} = {dice.choice(VERBS)}_{a}({b!r}, {dice.choice(FIELDS)}={dice.randrange(1, 100)})"


def function(dice: Random) -> str:
    """A function of three to six steps and the empty lines after it."""
    noun, arg = dice.sample(_PLAIN, 2)
    name = f"{dice.choice(VERBS)}_{noun}_{dice.choice(FIELDS)}"
    steps = "".join(_step(dice, arg) for _ in range(dice.randrange(3, 7)))
    doc = f"{dice.choice(VERBS).capitalize()} the {dice.choice(KINDS)} {noun} of each {arg}."
    head = f"def {name}({arg}, {dice.choice(FIELDS)}={dice.randrange(10)}):"
    return f'{head}\n    """{doc}"""\n{steps}    return {arg}\n\n\n'


def _step(dice: Random, arg: str) -> str:
    a, b = dice.sample(_PLAIN, 2)
    return dice.choice(_DATA["steps"]).format(
        a=a,
        b=b,
        arg=arg,
        n=dice.randrange(1, 100),
        field=dice.choice(FIELDS),
        verb=dice.choice(VERBS),
        quoted=repr(f"{dice.choice(PLACES)}_{b}"),
        message=repr(f"{dice.choice(KINDS)} {a}: %s of %d"),
        kind=dice.choice(KINDS),
        flag=dice.choice(("True", "False")),
        default=dice.choice(("None", "[]", "{}", "0")),
    )


def module(dice: Random, size: int) -> str:
    """Functions, at least `size` words."""
    return "".join(_repeated(function, dice, size))


Maker = Callable[[Random, int], str]

_BLOCKS: dict[Text, Maker] = {Text.PROSE: paragraph, Text.CODE: module, Text.JSON: records}
_LINES: dict[Text, Callable[[Random], str]] = {Text.PROSE: sentence, Text.CODE: code_statement, Text.JSON: small_object}
# What is asked for at the end. Structured answers are easier to draft, so speculation is measured by what is asked.
QUESTIONS = {
    Text.PROSE: "Write a long and quiet story in plain prose about the people and places above, without any list.",
    Text.CODE: "Write a long Python module with a class and its tests that does what the functions above do.",
    Text.JSON: "Answer only with a JSON array of many objects that have the same keys as the records above.",
}
CLOSING = "Think before every step, use the tools where they help, and keep answers as short as the task allows."


@lru_cache(16)
def blocks(kind: Text, seed: str, count: int, size: int) -> tuple[str, ...]:
    """`count` different blocks of at least `size` words each."""
    dice = Random(f"blocks/{kind}/{seed}/{size}")
    return tuple(_BLOCKS[kind](dice, size) for _ in range(count))


@lru_cache(16)
def single_lines(kind: Text, seed: str, count: int) -> tuple[str, ...]:
    """`count` single lines, all different."""
    dice, found = Random(f"lines/{kind}/{seed}"), dict[str, None]()
    while len(found) < count:
        found[_LINES[kind](dice) + "\n"] = None
    return tuple(found)
