"""Shell text as simple commands: quotes, continuations, comments and variables are resolved; nothing is run.

What only a shell could know stays visible in a word: `${NAME}` of a variable that has no value, `$(...)` of a command.
"""

import re
import shlex
from collections.abc import Iterator, Mapping

from sparkwright.domain.errors import RecipeError
from sparkwright.domain.values import dataclass, field
from sparkwright.recipes.importers.branches import Branches, decide

MOST_CHARACTERS = 128 * 1024
_PIECE = re.compile(
    r"""(?P<blank>[ \t\r]+|\\\r?\n)
    |(?P<test>(?<![^\s;&|()!])\[\[[ \t][^\n]{0,400}?[ \t]\]\](?![^\s;&|)]))
    |(?P<comment>(?:(?<=[\s;&|()])|^)\#[^\n]*)
    |<(?P<place>[A-Za-z][\w./-]{0,60})>(?![\w./&])
    |(?P<redirect>\d?(?:&>>?|>>|>\||>&\d?|<&\d?|<<<|<<-?|<>|[<>]))
    |(?P<operator>\n|;;|&&|\|\||\|&|[;&|()])
    |'(?P<single>[^']*)'
    |"(?P<double>(?:[^"\\]|\\.)*)"
    |\\(?P<escaped>.)
    |(?P<folder>\$\([ ]{0,9}pwd[ ]{0,9}\)|`pwd`)
    |(?P<output>\$\(|`)
    |\$\{(?P<braced>(?:[^{}]|\{[^{}]*\})*)\}
    |\$(?P<name>\w+|[@*?!$\#-])
    |(?P<plain>[^\s'"\\$`;&|()<>]+|.)""",
    re.VERBOSE | re.DOTALL,
)
_INSIDE = re.compile(
    r"\\([\"\\$`])|(\$\( {0,9}pwd {0,9}\)|`pwd`)|(\$\(|`)|\$\{((?:[^{}]|\{[^{}]*\})*)\}|\$(\w+)", re.DOTALL
)
_ALL_OF = re.compile(r"([A-Za-z_]\w*)\[[@*]\](?:\+.*)?", re.DOTALL)  # inside `${...}`: every item of an array
_ARRAY = re.compile(r"([A-Za-z_]\w*)(\+?)=")
_BRACED = re.compile(r"(?P<name>\w+)(?P<how>:?[-+=?])?(?P<other>.*)", re.DOTALL)
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_MOST_DEPTH = 200  # branches inside each other
OUTPUT = "$(...)"
_MARK = re.compile(r"\$\{[^{}]*\}|\$\(\.\.\.\)|\$[@*?!#$-]")


class Growth:
    """Counts what variables and holes add to a text. Raises RecipeError once that is more than a file may hold."""

    def __init__(self, source: str) -> None:
        self._source, self._characters = source, 0

    def by(self, value: str) -> str:
        self._characters += len(value)
        if self._characters > MOST_CHARACTERS:
            why = f"its variables fill in more than {MOST_CHARACTERS} characters"
            raise RecipeError(f"{self._source}: {why}", hint="write the values in their places")
        return value


@dataclass(frozen=True, slots=True)
class Simple:
    """One simple command. line: where it begins. assigned: `NAME=value` before it. after: the operator behind it.

    comment: behind its words, in the same line.
    """

    line: int
    words: tuple[str, ...]
    assigned: Mapping[str, str] = field(default_factory=dict)
    before: str = ""
    after: str = ""
    redirected: bool = False
    in_branch: bool = False
    comment: str = ""


class Script:
    """commands: in their order. variables: assigned or exported so far; exported: what the commands after it see."""

    def __init__(
        self,
        text: str,
        source: str,
        given: Mapping[str, str] | None = None,
        line: int = 1,
        fixed: Mapping[str, str] | None = None,
    ) -> None:
        """given: variables before the first line; fixed: those that keep their value whatever the script assigns.

        Raises RecipeError with file and line for a quote that is not closed.
        """
        if len(text) > MOST_CHARACTERS:
            raise RecipeError(f"{source}: {len(text)} characters; at most {MOST_CHARACTERS} are read", hint="cut it")
        self._fixed = dict(fixed or {})
        self.variables = dict(given or {}) | self._fixed
        self._arrays: dict[str, list[str]] = {}
        self._array, self._first_item, self._comment, self._tested = "", 0, "", False
        self.exported: dict[str, str] = {}
        self.commands: list[Simple] = []
        self._source, self._line = source, line
        self._known: bool | None = None  # of the commands before `&&` or `||`: whether they succeed
        self.branches = Branches()
        self._words: list[str] = []
        self._word: str | None = None
        self._begun, self._before, self._redirected, self._skip = line, "", False, False
        self._grown = Growth(source)
        for match in _PIECE.finditer(text):
            self._take(match, text)
            self._line += match[0].count("\n")
        self._end("")

    def _take(self, match: re.Match[str], text: str) -> None:
        kind, found = match.lastgroup or "", match[match.lastgroup or 0]
        if kind in ("blank", "comment"):
            self._close_word()
            self._comment = found if kind == "comment" and self._words and not self._array else self._comment
        elif kind == "operator" and (self._array or self._opens_array(found)):
            self._take_array(found)
        elif kind == "redirect":
            self._close_word()
            self._redirected = self._skip = True
            if found[-1:].isdigit() and "&" in found:
                self._skip = False
        elif kind == "operator":
            self._end(found)
        elif kind == "plain" and found in "'\"":
            raise RecipeError(
                f"{self._source}:{self._line}: a quote ({found}) is not closed", hint="close it, or copy the whole line"
            )
        else:
            self._add(kind, found)

    def _add(self, kind: str, found: str) -> None:
        if kind == "place":  # `<model>` of a README, which a shell would take for two redirections
            kind, found = "braced", re.sub(r"\W", "_", found)
        if not self._words and self._word is None:
            self._begun = self._line
        if (items := self._items(kind, found)) is not None:
            for item in items:
                self._close_word()
                self._word = self._grown.by(item)
            return
        if kind in ("braced", "name"):
            parts = self._value(found).split() or [""]
            self._word = (self._word or "") + parts[0] if parts[0] or self._word is not None else self._word
            for part in parts[1:]:
                self._close_word()
                self._word = part
            return
        if kind == "test":
            self._add_test(found)
            return
        special = {"output": OUTPUT, "folder": self._value("PWD") if kind == "folder" else ""}
        inner = self._expanded(found) if kind == "double" else special.get(kind, found)
        self._word = (self._word or "") + inner

    def _add_test(self, text: str) -> None:
        """The words of `[[ ... ]]`; what it joins with `&&` or `||` is left to a shell."""
        inner = text[2:-2].strip()
        left, matches, pattern = inner.partition(" =~ ")
        if matches:
            words = [*shlex_words(left), "=~", pattern.strip()]
        else:
            words = ["${&&}"] if re.search(r"&&|\|\||[()]", inner) else shlex_words(inner)
        self._words += ["[[", *(self._expanded(word) for word in words)]
        self._word = "]]"

    def _expanded(self, text: str) -> str:
        def one(match: re.Match[str]) -> str:
            if match[1]:
                return match[1]
            if match[2]:
                return self._value("PWD")
            return OUTPUT if match[3] else self._value(match[4] if match[4] is not None else match[5])

        return _INSIDE.sub(one, text.replace("\\\n", ""))

    def _value(self, inside: str) -> str:
        """`NAME`, `NAME:-default` and their like; one that has no value stays as it is."""
        match = _BRACED.fullmatch(inside)
        if not match:
            return f"${{{inside}}}"
        name, how, other = match["name"], match["how"] or "", match["other"]
        value = self.variables.get(name)
        if how.endswith("+"):
            return self._expanded(other) if value else ""
        if value is not None and (value or not how.startswith(":")):
            return self._grown.by(value)
        other = other[1:-1] if re.fullmatch(r'"[^"]*"', other) else other
        if how.endswith("?") and name.isdecimal():
            return f"${{{name}:?}}"  # an argument that must be there
        return self._expanded(other) if how[-1:] in ("-", "=") and how else f"${{{name}}}"

    def _opens_array(self, operator: str) -> bool:
        declares = self._words[:1] in ([], ["local"], ["declare"], ["readonly"])
        return operator == "(" and declares and bool(self._word and _ARRAY.fullmatch(self._word))

    def _take_array(self, operator: str) -> None:
        """`NAME=(`, what is between its words, and the bracket that closes it."""
        self._close_word()
        if not self._array:
            self._array, self._first_item = self._words.pop(), len(self._words)
        elif operator == ")":
            items = self._words[self._first_item :]
            del self._words[self._first_item :]
            self._keep_array(self._array.rstrip("+="), items, self._array.endswith("+="))
            self._array = ""

    def _keep_array(self, name: str, items: list[str], more: bool) -> None:
        """Keeps an array's items. Nobody knows them under a condition; with `+=` the name in their place shows that
        some are missing."""
        if self.branches.runs is False:
            return
        if self._conditional and not more:
            self._arrays.pop(name, None)
            return
        there = self._arrays.setdefault(name, [])
        if not more:
            there.clear()
        there += [f"${{{name}}}"] if self._conditional else items

    def _items(self, kind: str, found: str) -> list[str] | None:
        """The words of `"${NAME[@]}"`; None for anything else."""
        inside = found[2:-1] if kind == "double" and found.startswith("${") and found.endswith("}") else found
        match = _ALL_OF.fullmatch(inside) if kind in ("double", "braced") else None
        items = self._arrays.get(match[1]) if match else None
        self._grown.by(" " * len(items or ()))
        return items

    def _close_word(self) -> None:
        if self._word is not None and not self._skip:
            self._words.append(self._word)
        if self._word is not None:
            self._skip = False
        self._word = None

    def _end(self, operator: str) -> None:
        self._close_word()
        words, self._words = self._words, []
        found = self.branches.take(words, operator, self._begun)
        words = found or []
        if len(self.branches.blocks) > _MOST_DEPTH:
            why = f"more than {_MOST_DEPTH} branches and loops are open inside each other"
            raise RecipeError(f"{self._source}:{self._line}: {why}", hint="give the line that starts the engine")
        if found and self.branches.in_condition:
            self.branches.tested(found, self._before)
        skipped = self._known is not None and self._before in ("&&", "||") and (self._before == "&&") != self._known
        if self.branches.runs is not False and not skipped:
            self._run(words[words[:1] == ["!"] :], operator)
        self.branches.end_branch(operator)
        self._follow(words, operator, skipped)
        self._before, self._redirected, self._skip, self._comment = operator, False, False, ""

    def _follow(self, words: list[str], operator: str, skipped: bool) -> None:
        """Keeps what is known of the commands before `&&` or `||`: a test's result; an assignment succeeds."""
        is_test, chained = words[:1] in (["["], ["[["], ["test"]), operator in ("&&", "||")
        if not skipped:
            sure = self._known is not None or self._before not in ("&&", "||")
            assigns = bool(words) and all(_ASSIGNED.fullmatch(one) and OUTPUT not in one for one in words)
            self._known = decide(words) if is_test else True if assigns and sure else None
        self._tested = chained and (self._tested or is_test)
        self._known = self._known if chained else None

    def _run(self, words: list[str], operator: str) -> None:
        assigned = dict[str, str]()
        while words and (match := _ASSIGNED.fullmatch(words[0])):
            assigned[match[1]] = match[2]
            words = words[1:]
        if words[:1] in (["export"], ["declare"], ["local"], ["readonly"]):
            self._export(words)
        elif not words:
            self._assign(assigned)
        else:
            more = (self._before, operator, self._redirected, self.branches.runs is None, self._comment)
            self.commands.append(Simple(self._begun, tuple(words), assigned, *more))

    def _export(self, words: list[str]) -> None:
        found = {match[1]: match[2] for word in words[1:] if (match := _ASSIGNED.fullmatch(word))}
        bare = {word: self.variables[word] for word in words[1:] if word in self.variables}
        self._assign(found)
        if not self._conditional and words[0] == "export":
            self.exported |= found | bare

    @property
    def _conditional(self) -> bool:
        """True if an assignment holds only sometimes: in a branch, behind a test, or behind `||`."""
        if self.branches.runs is None:
            return True
        return self._known is None and (self._tested or self._before == "||")

    def _assign(self, found: Mapping[str, str]) -> None:
        """Assigns variables. One under a condition, or printed by a command, has no value: nobody knows it."""
        for name, value in found.items():
            if name in self._fixed:
                continue
            if self._conditional or OUTPUT in value:
                self._forget(name, value)
            else:
                self.variables[name] = value
                if name in self.exported:
                    self.exported[name] = value

    def _forget(self, name: str, value: str) -> None:
        """Drops a value that nobody knows; of one that may have grown, the name stands for what may be missing."""
        old, more = self.variables.pop(name, ""), f" ${{{name}}}"
        if old and value.startswith(old) and OUTPUT not in value:
            self.variables[name] = old.removesuffix(more) + more


def shlex_words(text: str) -> list[str]:
    """Words as a shell splits them; none where a quote is open."""
    try:
        return shlex.split(text)
    except ValueError:
        return []


def unresolved(word: str) -> str:
    """The part of a word that only a shell could know: `${NAME}` or `$(...)`; '' if there is none."""
    found = _MARK.search(word)
    return found[0] if found else ""


def env_file(text: str, source: str) -> Iterator[tuple[str, str]]:
    """NAME and value of each line of a `.env` file. Raises RecipeError with file and line."""
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip().removeprefix("export ")
        if not bare or bare.startswith("#"):
            continue
        match = _ASSIGNED.fullmatch(bare)
        if not match:
            raise RecipeError(f"{source}:{number}: found {bare[:40]!r}; expected NAME=value", hint="correct the line")
        script = Script(f"{match[1]}={match[2]}" if " " not in match[2] or match[2][0] in "'\"" else "", source)
        yield match[1], script.variables.get(match[1], match[2].partition(" #")[0].strip())
