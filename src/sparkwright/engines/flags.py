"""Does this version of an engine have this flag or variable, and take this value? Asked of data read from its wheels.

Findings: ENG001 unknown flag, ENG002 value not among those allowed, ENG003 value missing or of the wrong kind,
ENG004 unknown key in a JSON option, ENG005 data of a neighbouring version used, ENG006 no data for this engine,
ENG007 deprecated option or variable, ENG008 environment variable that the engine does not read, ENG009 name not among
the built-in ones.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.values import dataclass
from sparkwright.engines import flag_words
from sparkwright.engines.definitions import base_definition
from sparkwright.engines.findings import ENG
from sparkwright.engines.flag_data import DASHING, SHIPPED, FlagData, FlagLibrary, flag_data
from sparkwright.engines.flag_values import FlagProblem, Option, problems
from sparkwright.engines.flag_words import OptionAdvice
from sparkwright.engines.options import option_name

_SHORT = re.compile(r"-[A-Za-z]")
_LEVEL = re.compile(r"-O=?(\d?)$")  # vLLM's parser turns -O3 into --optimization-level 3


@dataclass(frozen=True, slots=True)
class WrittenFlag:
    """One option as written: the word itself, its option if known, dotted key ('' if none), values, and `--no-`."""

    word: str
    option: Option | None
    key: str = ""
    values: tuple[str, ...] = ()
    negated: bool = False

    @property
    def text(self) -> str:
        return " ".join((self.word, *self.values))[:200]


def check_flags(
    engine: str, version: str, argv: Sequence[str], extra: Collection[str] = (), library: FlagLibrary = SHIPPED
) -> tuple[Finding, ...]:
    """Findings over a rank's words; those before the first option (program, `serve`, model) are skipped.

    extra: options that the image's own build has besides, and `option.key` of JSON options; nothing is known about
    their values.
    """
    data, said = flag_data(engine, version, library)
    return (*said, *(check_against(data, argv, exact=not said, extra=extra) if data else ()))


def check_against(
    data: FlagData, argv: Sequence[str], exact: bool = True, extra: Collection[str] = ()
) -> tuple[Finding, ...]:
    """exact: the data is of this very version; otherwise an unknown flag may exist and only weighs as a warning."""
    severity = Severity.OVERRIDE if exact else Severity.WARN
    own = frozenset(option_name(name) for name in extra)
    of = _Data(data)
    said = (_said(of, word, values, severity, own) for word, values in _words(argv))
    return tuple(finding for findings in said for finding in findings)


class _Data:
    """Flag data by identity: they are read once, and comparing two would cost more than checking an option."""

    __slots__ = ("_key", "data")

    def __init__(self, data: FlagData) -> None:
        self.data = data
        self._key = (id(data.options), *map(id, data.among.own))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Data) and self._key == other._key


# A search for remedies asks about the same words for every change of a recipe, and every rank has them.
@lru_cache(maxsize=1024)
def _said(
    of: _Data, word: str, values: tuple[str, ...], severity: Severity, own: frozenset[str]
) -> tuple[Finding, ...]:
    given = _given(of.data, word, values)
    return () if option_name(given.word).partition(".")[0] in own else tuple(_check(of.data, given, severity, own))


def parse(data: FlagData, argv: Sequence[str]) -> Iterator[WrittenFlag]:
    """The options of a command line, each with the words up to the next option that it takes."""
    return (_given(data, word, values) for word, values in _words(argv))


def _words(argv: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    if len(argv) > 2 and argv[1] == "-m" and "python" in argv[0]:
        argv = argv[3:]  # the interpreter's own option
    starts = [i for i, word in enumerate(argv) if word.startswith("--") or _SHORT.match(word)]  # `-1` is a value
    for start, end in pairwise([*starts, len(argv)]):
        word, _, inline = argv[start].partition("=")
        yield word, ((inline,) if "=" in argv[start] else tuple(argv[start + 1 : end]))


def _given(data: FlagData, word: str, values: tuple[str, ...]) -> WrittenFlag:
    if data.engine == "vllm" and (level := _LEVEL.match(word)):
        return WrittenFlag(word, data.options["optimization-level"], "", (level[1],) if level[1] else values)
    name, _, key = word.partition(".")
    spelled = _spelling(data, name)
    option = data.find(spelled)
    return WrittenFlag(
        word, option, key.rstrip("+"), values, negated=option is not None and spelled in option.negations
    )


def _spelling(data: FlagData, name: str) -> str:
    """The name as the engine's parser reads it."""
    return f"--{option_name(name)}" if name.startswith("--") and data.engine in DASHING else name


def _check(data: FlagData, given: WrittenFlag, severity: Severity, own: Collection[str]) -> Iterator[Finding]:
    if given.option is None:
        yield _unknown(data, given, severity)
        return
    if given.option.deprecated:
        yield _deprecated(data, given, given.option)
    found = () if given.negated else problems(given.option, given.key, given.values)
    name = option_name(given.word).partition(".")[0]
    ours = (problem for problem in found if not (problem.key and f"{name}.{problem.key}" in own))
    yield from (_problem(data, given, problem, severity) for problem in ours)


def _unknown(data: FlagData, given: WrittenFlag, severity: Severity) -> Finding:
    name = given.word.partition(".")[0]
    advice = flag_words.right_word(data, name)
    when = flag_words.history(data, _spelling(data, name))
    begun = sorted(data.begun(name))
    why = f": the name is short for any of {', '.join(begun[:4])}" if begun else ", without a try at the model"
    return ENG["ENG001"].on(
        given.word,
        "; ".join(part for part in (given.text, advice.because, when) if part),
        title=f"{data.engine} {data.version} has no option {given.word}",
        cause=f"the engine would end at once{why}",
        fix=_hint(data, name, advice, when),
        severity=severity,
    )


@lru_cache(maxsize=256)
def _near(name: str, names: tuple[str, ...], cutoff: float) -> list[str]:
    """The name that is spelled nearly so. A search for remedies asks again for every change of a recipe."""
    return get_close_matches(name, names, 1, cutoff)


def _hint(data: FlagData, name: str, advice: OptionAdvice, when: str) -> str:
    """The hint: first a certain replacement, then the versions with the option, then a similar name."""
    if advice.word:
        return f"write {advice.word}" if " " in advice.word else f"did you mean {advice.word}?"
    if when:
        return f"leave it out, or take another version: {when}"
    if foreign := flag_words.owning_engine(data, name):
        return f"remove it: it is {foreign}'s, and {data.engine} has none of that name"
    near = _near(name, tuple(data.names), 0.75)
    if near:
        return f"did you mean {near[0]}?"
    return "remove it; if the image's own build has it, name it in engine.extra_flags"


def _problem(data: FlagData, given: WrittenFlag, problem: FlagProblem, severity: Severity) -> Finding:
    weight = Severity.WARN if problem.code == "ENG009" else severity
    name = given.option.name if given.option else ""
    meant = flag_words.right_value(data.engine, name, given.values)
    when = flag_words.value_history(data, name, problem)
    return ENG[problem.code].on(
        given.word,
        "; ".join(part for part in (given.text, when) if part),
        title=f"{data.engine} {data.version}: {given.word} {problem.what}",
        cause="",
        fix=f"write {given.word} {meant}" if meant and problem.code == "ENG002" else problem.remedy,
        severity=weight,
    )


def _deprecated(data: FlagData, given: WrittenFlag, option: Option) -> Finding:
    gone = option.refused or "argument has been removed" in option.deprecated
    title = f"{given.word} is {'gone' if gone else 'on its way out'} in {data.engine} {data.version}"
    hint = f"use {option.replaced_by}" if option.replaced_by else "use what the engine names instead"
    severity = Severity.OVERRIDE if gone else Severity.WARN
    return ENG["ENG007"].on(given.word, option.deprecated, title=title, cause="", fix=hint, severity=severity)


def prefixes_of(engine: str) -> tuple[str, ...]:
    """Beginnings of variables that only this engine's have; others belong to libraries."""
    definition = base_definition(engine)
    return definition.prefixes if definition else ()


def check_variables(
    engine: str, version: str, env: Iterable[str], extra: Iterable[str] = (), library: FlagLibrary = SHIPPED
) -> tuple[Finding, ...]:
    """Findings for variables of the engine's own prefix. extra: what the image's own build reads besides."""
    data, said = flag_data(engine, version, library)
    prefixes = prefixes_of(engine)
    if data is None or not data.env or not prefixes:
        return ()
    own = [name for name in env if name.startswith(prefixes) and name not in set(extra)]
    severity = Severity.WARN if said else Severity.OVERRIDE
    late = [_late(data, name) for name in own if name in data.replaced]
    # SGLang takes SGL_X as SGLANG_X (environ.py).
    also = {name: name.replace("SGL_", "SGLANG_", 1) if data.engine == "sglang" else name for name in own}
    unread = [name for name in own if not {name, also[name]} & data.env]
    return (*late, *(_unread(data, version, name, severity) for name in unread))


def _unread(data: FlagData, version: str, name: str, severity: Severity) -> Finding:
    when = flag_words.variable_history(data, name)
    return ENG["ENG008"].on(
        f"env.{name}",
        when,
        title=f"{data.engine} {data.version} does not read {name}",
        fix=_instead(data, name, when),
        severity=severity,
    )


def _instead(data: FlagData, name: str, when: str) -> str:
    """An option of that name, else the variable that is meant, else where an image's own variables are declared."""
    prefix = next(p for p in prefixes_of(data.engine) if name.startswith(p))
    bare = name.removeprefix(prefix).removeprefix("ARG_").lower()
    for option in (f"--{bare.replace('_', '-')}", f"--{bare}"):
        if option in data.names:
            return f"write the option {option}: this version has no variable for it"
    if when:
        return f"leave it out, or take another version: {when}"
    if near := _near(name, tuple(data.env), 0.85):
        return f"did you mean {near[0]}?"
    return "remove it; if the image's own build reads it, name it in engine.extra_env"


def _late(data: FlagData, name: str) -> Finding:
    new = data.replaced[name]
    return ENG["ENG007"].on(
        f"env.{name}",
        new if " " in new else "",
        title=f"{name} is on its way out in {data.engine} {data.version}",
        cause="",
        fix=f"use {new}" if new and " " not in new else "use what the engine names instead" if new else "remove it",
    )
