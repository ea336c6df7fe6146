"""The engine definitions that ship: one TOML file each in data/engines.

Those of BUILT_IN have a module that renders their ranks and computes their memory; the file has the rest.
"""

from collections.abc import Callable, Collection, Mapping
from functools import cache
from importlib.resources import files
from typing import Generic, TypeVar

from sparkwright.domain.codec import from_tree
from sparkwright.domain.engine import EngineDefinition
from sparkwright.domain.values import replace
from sparkwright.engines.options import option_name
from sparkwright.engines.tables import BUILT_IN, DATA_OF, SEPARATE, engine_table

T = TypeVar("T")


@cache
def shipped_definitions() -> Mapping[str, EngineDefinition]:
    """The shipped definitions of engines without a module, by name.

    They keep the schema of recipes/engine_file.py: a unit test reads each with it.
    """
    entries = files("sparkwright.engines").joinpath("data", "engines").iterdir()
    names = sorted(entry.name.removesuffix(".toml") for entry in entries if entry.name.endswith(".toml"))
    return {name: read_definition(name) for name in names if name not in BUILT_IN}


@cache
def read_definition(name: str) -> EngineDefinition:
    """The shipped definition of that name, an engine with a module or without."""
    return replace(from_tree(EngineDefinition, dict(engine_table(name))), source=f"engines/{name}.toml")


def base_definition(engine: str) -> EngineDefinition | None:
    """The file with what is known of an engine's releases, words and variables; None for one that does not ship.

    The simulator and vLLM on Ray take vLLM's.
    """
    of = DATA_OF.get(engine, engine)
    return read_definition(of) if of in SEPARATE else shipped_definitions().get(of)


def meaning_of(definition: EngineDefinition, spellings: Collection[str]) -> str:
    """The meaning of an option, of which one of these names (without dashes before it) is an engine's word; ''."""
    rows = definition.words.items()
    return next((meaning for meaning, words in rows if {bare_name(word) for word in words} & set(spellings)), "")


def bare_name(word: str) -> str:
    """`dist-init-addr` of `--dist-init-addr ADDRESS:PORT` and of `--dist-init-addr=x`."""
    return option_name(written_name(word))


def written_name(word: str) -> str:
    """`--dist-init-addr` of `--dist-init-addr ADDRESS:PORT` and of `--x=y`; a dotted key is left off, too."""
    return word.split(" ")[0].split("=")[0].partition(".")[0]


class FromFile(Generic[T]):
    """An attribute of an engine's class that its file gives. The file is read when the attribute is first asked for."""

    def __init__(self, take: Callable[[EngineDefinition], T]) -> None:
        self._take = take
        self._kept: dict[str, T] = {}

    def __get__(self, engine: object, owner: type) -> T:
        name = str(owner.name)  # type: ignore[attr-defined]
        if name not in self._kept:
            self._kept[name] = self._take(read_definition(name))
        return self._kept[name]


def program_words(definition: EngineDefinition) -> tuple[str, ...]:
    """The words of the command before its first placeholder or option: `tensorfold serve`."""
    ends = (n for n, word in enumerate(definition.command) if "{" in word or word.startswith("-"))
    return definition.command[: next(ends, len(definition.command))]
