"""The right word: what an engine calls a thing that another engine, or another version of it, calls differently.

Only meanings whose names differ are listed; what an engine had before or will have later is computed from the data.
"""

from collections.abc import Iterator, Sequence

from sparkwright.domain.values import dataclass
from sparkwright.engines.flag_data import FlagData, read_data, versions
from sparkwright.engines.flag_values import Problem
from sparkwright.engines.options import option_name
from sparkwright.engines.tables import DATA_OF, vocabulary
from sparkwright.engines.version import version_key


@dataclass(frozen=True, slots=True)
class Advice:
    """word: what to write, '' when nothing fits; because: where that comes from."""

    word: str = ""
    because: str = ""


def right_word(data: FlagData, word: str) -> Advice:
    """What to write in place of an option that this version does not have, from what is known for certain."""
    name = option_name(word).partition(".")[0]
    for found in (_spelled(data, name), _past(data, name), _renamed(data, name), _foreign(data, name)):
        if found.word:
            return found
    return Advice()


def owner(data: FlagData, word: str) -> str:
    """The engine that has an option of this name where this one has none; '' when none does."""
    others = (engine for engine in vocabulary().engines if engine != data.engine)
    return next((engine for engine in others if any(_aliases(engine, option_name(word)))), "")


def right_value(engine: str, option: str, values: Sequence[str]) -> str:
    """The value that this engine writes for another engine's; '' when there is none."""
    return vocabulary().values.get(engine, {}).get(option, {}).get(values[0], "") if values else ""


def written_name(word: str) -> str:
    """`--dist-init-addr` of `--dist-init-addr ADDRESS:PORT` and of `--x=y`; a dotted key is left off, too."""
    return word.split(" ")[0].split("=")[0].partition(".")[0]


def _spelled(data: FlagData, name: str) -> Advice:
    """The same name with other dashes, and `--no-` before an option that is off unless it is given."""
    same = next((s for s in data.names if option_name(s) == name and s.startswith("--")), "")
    if same:
        return Advice(same, f"{data.engine} writes it so")
    bare = f"--{name.removeprefix('no-')}"
    if name.startswith("no-") and bare in data.names and data.options[data.names[bare]].kind == "flag":
        return Advice(f"nothing: {bare} is off unless it is given", "it is a plain switch")
    return Advice()


def _past(data: FlagData, name: str) -> Advice:
    word = vocabulary().past.get(data.engine, {}).get(name, "")
    return Advice(word, "renamed") if written_name(word) in data.names else Advice()


def _renamed(data: FlagData, name: str) -> Advice:
    """What a version that still had it named instead."""
    for version in reversed(versions(data.engine)):
        option = read_data(data.engine, version).find(f"--{name}")
        if option and option.replaced_by and written_name(option.replaced_by) in data.names:
            return Advice(option.replaced_by, f"{data.engine} {version} already named it")
    return Advice()


def _foreign(data: FlagData, name: str) -> Advice:
    """The option with the meaning that this word has in another engine, which may know it by an alias."""
    engines = vocabulary().engines
    mine = engines.index(data.engine) if data.engine in engines else -1
    for place, engine in enumerate(engines):
        if mine >= 0 and place != mine and (row := _meaning(engine, place, name)):
            best = next((w for w in row[mine].split("|") if written_name(w) in data.names), "")
            if best:
                return Advice(best, f"--{name} is {engine}'s word")
    return Advice()


def _meaning(engine: str, place: int, name: str) -> tuple[str, ...] | None:
    spellings = {name} | set(_aliases(engine, name))
    rows = (
        row
        for row in vocabulary().meanings
        if spellings & {option_name(written_name(w)) for w in row[place].split("|") if w}
    )
    return next(rows, None)


def _aliases(engine: str, name: str) -> Iterator[str]:
    """All names of the option that another engine's newest version knows by this one."""
    data = read_data(engine, versions(engine)[-1])
    for spelled in (f"--{name}", f"-{name}", f"--{name.replace('-', '_')}"):
        if spelled in data.names:
            yield from (option_name(s) for s in data.options[data.names[spelled]].spellings)


def history(engine: str, version: str, spelled: str) -> str:
    """`first in 0.24.0` or `last in 0.27.1, gone in 0.30.0`, of the versions with data; '' if none has it."""
    having = [v for v in versions(engine) if spelled in read_data(engine, v).names]
    return in_words(engine, version, having)


def variable_history(engine: str, version: str, name: str) -> str:
    """The same for an environment variable."""
    return in_words(engine, version, [v for v in versions(engine) if name in read_data(engine, v).env])


def value_history(engine: str, version: str, option: str, problem: Problem) -> str:
    """The same for a value that this version's option does not take."""
    having = []
    for one in versions(engine):
        found = read_data(engine, one).find(f"--{option}")
        if found and problem.value in map(str, found.allowed(problem.key)):
            having.append(one)
    return in_words(engine, version, having) if problem.value else ""


def in_words(engine: str, version: str, having: list[str]) -> str:
    of = DATA_OF.get(engine, engine)
    here = version_key(of, version)
    older = [v for v in having if version_key(of, v) < here]
    newer = [v for v in having if version_key(of, v) > here]
    if newer:
        until = "on" if newer[-1] == versions(engine)[-1] else f"to {newer[-1]}"
        return f"{of} has it from {newer[0]} {until}"
    if older:
        gone = next((v for v in versions(engine) if version_key(of, v) > version_key(of, older[-1])), version)
        return f"{of} had it up to {older[-1]}, and no longer in {gone}"
    return ""
