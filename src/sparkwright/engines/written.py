"""A command line that somebody wrote -> its options by the engine's own names, whichever version has them.

The tables of all versions are asked, the newest first: who wrote the line does not always say for which version.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from sparkwright.domain.values import dataclass
from sparkwright.engines.flag_data import DASHING, FlagData, flag_data, read_data, versions
from sparkwright.engines.flag_values import Option, problems
from sparkwright.engines.flags import parse, prefixes_of
from sparkwright.engines.options import option_name
from sparkwright.engines.tables import DATA_OF, SEPARATE

_OPTION = re.compile(r"--[A-Za-z]|-[A-Za-z]")
_UNKNOWN = ("ENG002", "ENG004")  # a value or a key that is not among those of this version
_LEVEL = re.compile(r"-O=?(\d?)$")
_TELLING = 3  # options, for less any image might have
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([kKmMgGtT])(i?)")


@dataclass(frozen=True, slots=True)
class Written:
    """name: the engine's, with what follows a dot. option: None where no version has it.

    long: as written, if that is one of the option's long names, else `name`. values: the words that it takes.
    negated: one of the option's negative spellings.
    """

    name: str
    long: str
    values: tuple[str, ...]
    option: Option | None = None
    negated: bool = False


def read_words(engine: str, words: Sequence[str]) -> tuple[tuple[str, ...], tuple[Written, ...]]:
    """Positional words, and the options in their order. A lone `--` makes all that follows positional."""
    positional, options, at = list[str](), list[Written](), 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            return (*positional, *words[at:]), tuple(options)
        if not _OPTION.match(word):
            positional.append(word)
            continue
        end = next((n for n in range(at, len(words)) if words[n] == "--" or _OPTION.match(words[n])), len(words))
        found, taken = _one(engine, word, tuple(words[at:end]))
        options.append(found)
        at += taken
    return tuple(positional), tuple(options)


def only_engine_with(words: Sequence[str]) -> str:
    """The engine that has all options of a command line, where each other lacks some; '' for none or several."""
    found = [name for name in SEPARATE if _has_all(name, words)]
    return found[0] if len(found) == 1 else ""


def _has_all(engine: str, words: Sequence[str]) -> bool:
    options = read_words(engine, words)[1]
    return len(options) >= _TELLING and all(one.option for one in options)


def _one(engine: str, word: str, following: tuple[str, ...]) -> tuple[Written, int]:
    """The option, and how many of the words behind it belong to it."""
    spelled, equals, inline = word.partition("=")
    of = DATA_OF.get(engine, engine)
    if of == "vllm" and (level := _LEVEL.match(spelled)):
        option = _lookup(of, "--optimization-level")
        values = (level[1],) if level[1] else (inline,) if equals else following[:1]
        name = "optimization-level"
        return Written(name, name, values, option), 0 if level[1] or equals else len(values)
    head, dot, tail = spelled.partition(".")
    name = f"--{option_name(head)}" if head.startswith("--") and of in DASHING else head
    option = _lookup(of, name)
    negated = option is not None and name in option.negations
    own = option.name.lstrip("-") if option and not negated else option_name(head)
    is_long = option is not None and not negated and head.startswith("--") and name in option.spellings
    long = head.lstrip("-") if is_long and of not in DASHING else option_name(head) if is_long else own
    values = (inline,) if equals else following[: _arity(option, bool(dot), negated)]
    return Written(own + dot + tail, long + dot + tail, values, option, negated), 0 if equals else len(values)


def _arity(option: Option | None, nested: bool, negated: bool) -> int | None:
    """The largest number of words it takes; None: all up to the next option."""
    if nested:
        return 1
    if option is None or option.kind == "list":
        return None
    return 0 if negated or option.kind in ("flag", "bool") else 1


@cache
def _lookup(engine: str, name: str) -> Option | None:
    """The exact spelling in the newest version that has it, else the beginning of one."""
    tables = [read_data(engine, version) for version in reversed(versions(engine))]
    exact = (data.options[data.names[name]] for data in tables if name in data.names)
    begun = (option for data in tables if (option := data.find(name)))
    return next(exact, None) or next(begun, None)


def whole_number(option: Option | None, word: str) -> int | None:
    """`131072`, `128k` and `25G` as the option's own parser reads them; None for what is no whole number.

    vLLM: k is 1,000 and K is 1,024. SGLang: k and K are 1,000, Ki is 1,024.
    """
    if re.fullmatch(r"-?\d{1,18}", word):
        return int(word)
    sized = _SIZE.fullmatch(word)
    if not sized or option is None or option.type not in ("human-int", "si-int"):
        return None
    binary = bool(sized[3]) if option.type == "si-int" else sized[2].isupper()
    found = float(sized[1]) * (1024 if binary else 1000) ** ("kmgt".index(sized[2].lower()) + 1)
    return int(found) if found.is_integer() else None


def unknown_to(engine: str, version: str, argv: Sequence[str]) -> tuple[str, ...]:
    """Options, keys of JSON options (`option.key`) and values that a version does not have, by the option's name."""
    data, _ = flag_data(engine, version)
    return tuple(dict.fromkeys(_unknown(data, argv))) if data else ()


def _unknown(data: FlagData, argv: Sequence[str]) -> Iterator[str]:
    for given in parse(data, argv):
        name = option_name(given.word).partition(".")[0]
        if given.option is None or given.option.refused or "argument has been removed" in given.option.deprecated:
            yield name
        elif not given.negated:
            found = (p for p in problems(given.option, given.key, given.values) if p.code in _UNKNOWN)
            yield from (f"{name}.{problem.key}" if problem.key else name for problem in found)


def unread_by(engine: str, version: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """Variables of the engine's own prefix that a version does not read."""
    data, _ = flag_data(engine, version)
    prefixes = prefixes_of(engine)
    if data is None or not data.env:
        return ()
    also = {name: name.replace("SGL_", "SGLANG_", 1) for name in env if name.startswith("SGL_")}
    own = (name for name in env if name.startswith(prefixes))
    return tuple(name for name in own if not {name, also.get(name, name)} & data.env)
