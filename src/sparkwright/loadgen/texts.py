"""Natural-looking text of three kinds, made here: the same for the same seed, never the same twice in a prompt.

Every piece begins with a letter or a bracket and ends with a line break. Tokenizers cut there, whatever follows, so the
tokens of pieces that stand one after the other are the sum of their tokens.
"""

from collections.abc import Callable
from random import Random

from sparkwright.domain.workload import Text
from sparkwright.loadgen import code_text, json_text, prose

Maker = Callable[[Random, int], str]

_BLOCKS: dict[Text, Maker] = {Text.PROSE: prose.paragraph, Text.CODE: code_text.module, Text.JSON: json_text.records}
_LINES: dict[Text, Callable[[Random], str]] = {
    Text.PROSE: prose.sentence,
    Text.CODE: code_text.line,
    Text.JSON: json_text.small,
}
# What is asked for at the end. Structured answers are easier to draft, so speculation is measured by what is asked.
QUESTIONS = {
    Text.PROSE: "Write a long and quiet story in plain prose about the people and places above, without any list.",
    Text.CODE: "Write a long Python module with a class and its tests that does what the functions above do.",
    Text.JSON: "Answer only with a JSON array of many objects that have the same keys as the records above.",
}
CLOSING = "Think before every step, use the tools where they help, and keep answers as short as the task allows."


def blocks(kind: Text, seed: str, count: int, size: int) -> tuple[str, ...]:
    """`count` different blocks of at least `size` words each."""
    dice = Random(f"blocks/{kind}/{seed}/{size}")
    return tuple(_BLOCKS[kind](dice, size) for _ in range(count))


def lines(kind: Text, seed: str, count: int) -> tuple[str, ...]:
    """`count` single lines, all different."""
    dice, found = Random(f"lines/{kind}/{seed}"), dict[str, None]()
    while len(found) < count:
        found[_LINES[kind](dice) + "\n"] = None
    return tuple(found)
