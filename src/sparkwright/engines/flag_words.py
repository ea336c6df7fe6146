"""The right word: what an engine calls a thing that another engine, or another version of it, calls differently.

Only meanings whose names differ are listed; what an engine had before or will have later is computed from the data.
"""

from collections.abc import Iterator, Sequence

from sparkwright.domain.values import dataclass
from sparkwright.engines.definitions import meaning_of, read_definition, written_name
from sparkwright.engines.flag_data import FlagData
from sparkwright.engines.flag_values import FlagProblem
from sparkwright.engines.options import option_name
from sparkwright.engines.tables import SEPARATE
from sparkwright.engines.version import version_key


@dataclass(frozen=True, slots=True)
class OptionAdvice:
    """word: what to write, '' when nothing fits; because: where that comes from."""

    word: str = ""
    because: str = ""


def right_word(data: FlagData, word: str) -> OptionAdvice:
    """The certain replacement for an option that this version lacks."""
    name = option_name(word).partition(".")[0]
    for found in (_spelled(data, name), _past(data, name), _renamed(data, name), _foreign(data, name)):
        if found.word:
            return found
    return OptionAdvice()


def owning_engine(data: FlagData, word: str) -> str:
    """The engine that has an option of this name where this one has none; '' when none does."""
    others = (engine for engine in SEPARATE if engine != data.engine)
    return next((engine for engine in others if any(_aliases(data, engine, option_name(word)))), "")


def right_value(engine: str, option: str, values: Sequence[str]) -> str:
    """The value that this engine writes for another engine's; '' when there is none."""
    definition = read_definition(engine)
    return definition.values.get(meaning_of(definition, {option}), {}).get(values[0], "") if values else ""


def _spelled(data: FlagData, name: str) -> OptionAdvice:
    """The same name with other dashes, and `--no-` before an option that is off unless it is given."""
    same = next((s for s in data.names if option_name(s) == name and s.startswith("--")), "")
    if same:
        return OptionAdvice(same, f"{data.engine} writes it so")
    bare = f"--{name.removeprefix('no-')}"
    if name.startswith("no-") and bare in data.names and data.options[data.names[bare]].kind == "flag":
        return OptionAdvice(f"nothing: {bare} is off unless it is given", "it is a plain switch")
    return OptionAdvice()


def _past(data: FlagData, name: str) -> OptionAdvice:
    word = read_definition(data.engine).renamed.get(name, "")
    return OptionAdvice(word, "renamed") if written_name(word) in data.names else OptionAdvice()


def _renamed(data: FlagData, name: str) -> OptionAdvice:
    """The replacement named by a version that still had the option."""
    for version in reversed(data.among.versions(data.engine)):
        option = data.among.read(data.engine, version).find(f"--{name}")
        if option and option.replaced_by and written_name(option.replaced_by) in data.names:
            return OptionAdvice(option.replaced_by, f"{data.engine} {version} already named it")
    return OptionAdvice()


def _foreign(data: FlagData, name: str) -> OptionAdvice:
    """The option with the meaning that this word has in another engine, which may know it by an alias."""
    mine = read_definition(data.engine).words
    for engine in SEPARATE:
        spellings = {name, *_aliases(data, engine, name)} if engine != data.engine else ()
        words = mine.get(meaning_of(read_definition(engine), spellings), ())
        if best := next((word for word in words if written_name(word) in data.names), ""):
            return OptionAdvice(best, f"--{name} is {engine}'s word")
    return OptionAdvice()


def _aliases(data: FlagData, engine: str, name: str) -> Iterator[str]:
    """All names of the option that another engine's newest version knows by this one."""
    newest = data.among.read(engine, data.among.versions(engine)[-1])
    for spelled in (f"--{name}", f"-{name}", f"--{name.replace('-', '_')}"):
        if spelled in newest.names:
            yield from (option_name(s) for s in newest.options[newest.names[spelled]].spellings)


def history(data: FlagData, spelled: str) -> str:
    """`first in 0.24.0` or `last in 0.27.1, gone in 0.30.0`, of the versions with data; '' if none has it."""
    return _in_words(data, [v for v in _all(data) if spelled in data.among.read(data.engine, v).names])


def variable_history(data: FlagData, name: str) -> str:
    """The same for an environment variable."""
    return _in_words(data, [v for v in _all(data) if name in data.among.read(data.engine, v).env])


def value_history(data: FlagData, option: str, problem: FlagProblem) -> str:
    """The same for a value that this version's option does not take."""
    having = []
    for one in _all(data):
        found = data.among.read(data.engine, one).find(f"--{option}")
        if found and problem.value in map(str, found.allowed(problem.key)):
            having.append(one)
    return _in_words(data, having) if problem.value else ""


def _all(data: FlagData) -> Sequence[str]:
    return data.among.versions(data.engine)


def _in_words(data: FlagData, having: list[str]) -> str:
    here = version_key(data.engine, data.version)
    older = [v for v in having if version_key(data.engine, v) < here]
    newer = [v for v in having if version_key(data.engine, v) > here]
    if newer:
        until = "on" if newer[-1] == _all(data)[-1] else f"to {newer[-1]}"
        return f"{data.engine} has it from {newer[0]} {until}"
    if older:
        later = (v for v in _all(data) if version_key(data.engine, v) > version_key(data.engine, older[-1]))
        return f"{data.engine} had it up to {older[-1]}, and no longer in {next(later, data.version)}"
    return ""
