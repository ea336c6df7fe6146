"""Branches of a shell script: the one that runs where no variable and no argument is given, as far as words tell."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from sparkwright.domain.values import dataclass, field

Verdict = bool | None  # None: only a shell could know
_ENDS = {"fi": ("if",), "esac": ("case",), "done": ("while", "until", "for", "select"), "}": ("{", "function")}
_OPENS = ("if", "while", "until", "for", "select", "{", "function")
_ARGUMENT = re.compile(r"\$\{[1-9@*]\}|\$[1-9@*]")
_COUNT = re.compile(r"\$\{#\}|\$#")
_UNKNOWN = re.compile(r"\$\{|\$\(|`")
_NUMBERS = {"-eq": (0,), "-ne": (-1, 1), "-gt": (1,), "-ge": (0, 1), "-lt": (-1,), "-le": (-1, 0)}
# Alternatives, classes and one repetition: what Python searches in linear or quadratic time, and means as a shell does.
_PLAIN_PATTERN = re.compile(r"[\w|^$./: ()\[\]-]{1,200}|[\w^$./: \[\]-]{1,100}[+*]\$?")


@dataclass(slots=True)
class ShellBlock:
    """One open `if`, `case`, loop, group or function. runs: its current branch does. taken: an earlier one did.

    phase: condition, subject, patterns, body.
    """

    kind: str
    phase: str = "body"
    runs: Verdict = None
    taken: Verdict = False
    tests: list[tuple[str, Verdict]] = field(default_factory=list)
    subject: str = ""
    patterns: list[str] = field(default_factory=list)


class Branches:
    """Follows the words that open and close branches. line: of each branch that was decided by its words."""

    def __init__(self) -> None:
        self.blocks: list[ShellBlock] = []
        self.decided: dict[int, str] = {}

    @property
    def runs(self) -> Verdict:
        """True: what stands here always runs; False: never; None: only a shell could know."""
        found = [one.runs for one in self.blocks]
        return False if False in found else None if None in found else True

    @property
    def in_condition(self) -> bool:
        return bool(self.blocks) and self.blocks[-1].phase == "condition"

    def take(self, words: list[str], operator: str, line: int) -> list[str] | None:
        """The words without those that open, close and divide branches; None if nothing of them is a command."""
        while True:
            top = self.blocks[-1] if self.blocks else None
            if top and top.phase in ("subject", "patterns") and words[:1] != ["esac"]:
                self._match(top, words, operator, line)
                return None
            if not words or words[0] not in (*_OPENS, *_ENDS, "case", "then", "elif", "else", "do"):
                return words
            word, words = words[0], words[1:]
            if word in ("for", "select"):
                self.blocks.append(ShellBlock(word))
                return None
            self._keyword(word, line)

    def _keyword(self, word: str, line: int) -> None:
        top = self.blocks[-1] if self.blocks else ShellBlock("")
        if word in _ENDS:
            if word == "esac" and top.kind == "case":
                self._note(line, top.taken if top.taken is False else None, "no branch of `case` runs")
            self._close(_ENDS[word])
        elif word == "case":
            self.blocks.append(ShellBlock(word, "subject"))
        elif word in _OPENS:
            self.blocks.append(ShellBlock(word, "condition" if word in ("if", "while", "until") else "body"))
        elif word == "do":
            verdict = _together(top.tests) if top.kind in ("while", "until") else None
            top.phase, top.runs = "body", False if verdict is (top.kind == "until") and verdict is not None else None
            self._note(line, top.runs, f"the loop `{top.kind}` does not run")
        elif top.kind == "if" and word == "elif":
            top.phase, top.runs, top.tests = "condition", None, []
        elif top.kind == "if":
            top.phase = "body"
            self._choose(top, True if word == "else" else _together(top.tests))
            self._note(line, top.runs, f"the branch `{word}` runs" if top.runs else f"the branch `{word}` does not run")

    def _note(self, line: int, runs: Verdict, what: str) -> None:
        if runs is not None and all(one.runs is not None for one in self.blocks[:-1]):
            self.decided.setdefault(line, what)

    def _close(self, kinds: Sequence[str]) -> None:
        """Close the innermost block of these kinds, and what a text that is no script left open in it."""
        at = next((n for n in range(len(self.blocks) - 1, -1, -1) if self.blocks[n].kind in kinds), None)
        if at is not None:
            del self.blocks[at:]

    def _choose(self, top: ShellBlock, verdict: Verdict) -> None:
        """Sets `runs` of a branch whose own condition is `verdict`, after those before it."""
        if top.taken or verdict is False:
            top.runs = False
        else:
            top.runs = True if verdict and top.taken is False else None
            top.taken = True if top.runs else None

    def tested(self, words: Sequence[str], before: str) -> None:
        """One command of a condition."""
        self.blocks[-1].tests.append((before, decide(words)))

    def _match(self, top: ShellBlock, words: list[str], operator: str, line: int) -> None:
        if top.phase == "subject":
            top.subject += " ".join(words[: words.index("in")] if "in" in words else words)
            if "in" not in words:
                return
            top.phase, words = "patterns", words[words.index("in") + 1 :]
        if operator in (")", "|") and words:
            top.patterns += words
        if operator == ")" and top.patterns:
            self._choose(top, _matches(_by_default(top.subject), top.patterns))
            self._note(line, top.runs or None, f"the branch {'|'.join(top.patterns)} of `case` runs")
            top.phase, top.patterns = "body", []

    def end_branch(self, operator: str) -> None:
        """`;;` ends a branch of `case`."""
        if operator == ";;" and self.blocks and self.blocks[-1].kind == "case":
            self.blocks[-1].phase, self.blocks[-1].runs = "patterns", None


def _matches(subject: str, patterns: Sequence[str]) -> Verdict:
    if _UNKNOWN.search(subject):
        return None
    found = [None if _UNKNOWN.search(one) else fnmatchcase(subject, one) for one in patterns]
    return True if True in found else None if None in found else False


def _by_default(word: str) -> str:
    """The word of a script that is called without arguments."""
    return _COUNT.sub("0", _ARGUMENT.sub("", word))


def _together(tests: Sequence[tuple[str, Verdict]]) -> Verdict:
    """Tests with `&&` and `||` between them, from left to right; of others only the last one counts."""
    result: Verdict = None
    for before, verdict in tests:
        if before == "&&" and result is not True:
            result = False if result is False or verdict is False else None
        elif before == "||" and result is not False:
            result = True if result is True or verdict is True else None
        else:
            result = verdict
    return result


def decide(words: Sequence[str]) -> Verdict:
    """The result of `[ ... ]`, `[[ ... ]]`, `test`, `true` or `false`; None for files and words without a value."""
    if words and words[0] == "!":
        inner = decide(words[1:])
        return None if inner is None else not inner
    if list(words) in (["true"], ["false"], [":"]):
        return words[0] != "false"
    if words and words[0] in ("[", "[[", "test"):
        inside = list(words[1:-1] if words[0] != "test" and words[-1] in ("]", "]]") else words[1:])
        return _test([_by_default(word) for word in inside], patterns=words[0] == "[[")
    return None


def _test(words: list[str], patterns: bool) -> Verdict:
    if words[:1] == ["!"] and len(words) > 1:
        inner = _test(words[1:], patterns)
        return None if inner is None else not inner
    if any(_UNKNOWN.search(word) for word in words):
        return None
    if len(words) == 3:
        return _compared(words[0], words[1], words[2], patterns)
    if len(words) == 2 and words[0] in ("-n", "-z"):
        return (words[0] == "-n") == bool(words[1])
    return bool(words[0]) if len(words) == 1 else None


def _compared(left: str, operator: str, right: str, patterns: bool) -> Verdict:
    if operator in ("=", "==", "!="):
        same = fnmatchcase(left, right) if patterns else left == right
        return same if operator != "!=" else not same
    if operator in _NUMBERS and all(re.fullmatch(r"-?\d{1,15}", one) for one in (left, right)):
        a, b = int(left), int(right)
        return ((a > b) - (a < b)) in _NUMBERS[operator]
    return bool(re.search(right, left[:400])) if operator == "=~" and _is_plain(right) else None


def _is_plain(pattern: str) -> bool:
    try:
        return _PLAIN_PATTERN.fullmatch(pattern) is not None and re.compile(pattern) is not None
    except re.error:
        return False
