"""The engine definitions that ship: one TOML file each in data/engines."""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from sparkwright.domain.codec import from_tree
from sparkwright.domain.engine import EngineDefinition
from sparkwright.domain.values import replace


@cache
def shipped_definitions() -> Mapping[str, EngineDefinition]:
    """The shipped definitions by name. They keep the schema of recipes/engine_file.py: a unit test reads each with
    it."""
    found = {}
    for entry in sorted(files("sparkwright.engines").joinpath("data", "engines").iterdir(), key=lambda one: one.name):
        if entry.name.endswith(".toml"):
            made = from_tree(EngineDefinition, tomllib.loads(entry.read_text(encoding="utf-8")))
            found[made.name] = replace(made, source=f"engines/{entry.name}")
    return found


def program_words(definition: EngineDefinition) -> tuple[str, ...]:
    """The words of the command before its first placeholder or option: `tensorfold serve`."""
    ends = (n for n, word in enumerate(definition.command) if "{" in word or word.startswith("-"))
    return definition.command[: next(ends, len(definition.command))]
