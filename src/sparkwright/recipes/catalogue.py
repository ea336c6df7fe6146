"""The recipes for a purpose, their order in lists, and what some were called before."""

import tomllib
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from importlib.resources import files

from sparkwright.domain.recipe import ModelKind, Recipe, RecipeState

_CODE_CONTEXT = 65_536  # tokens: an agent's prompt with tools and files soon has as many
_STATES = (RecipeState.READY, RecipeState.DOCUMENTED, RecipeState.REFUSED)


class Purpose(StrEnum):
    CHAT = "chat"
    CODE = "code"
    EMBED = "embed"
    RERANK = "rerank"
    TRANSCRIBE = "transcribe"


_KINDS = {
    Purpose.EMBED: ModelKind.EMBEDDING,
    Purpose.RERANK: ModelKind.RERANK,
    Purpose.TRANSCRIBE: ModelKind.TRANSCRIPTION,
}


@cache
def _catalogue() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads((files("sparkwright.recipes") / "catalogue.toml").read_text(encoding="utf-8"))


def older_recipes() -> Mapping[str, str]:
    """Shipped recipes that stand last, with the reason."""
    return _catalogue()["older"]


def name_today(name: str) -> str:
    """The name of a shipped recipe that had this one before 0.2.0; '' if none had."""
    return _catalogue()["former"].get(name, "")


def as_it_was_called(text: str, name: str) -> str:
    """The text of a shipped recipe under its former name, so that what serves under that one is found again."""
    return text.replace(f"\nname: {name_today(name)}\n", f"\nname: {name}\n", 1)


def suits_purpose(recipe: Recipe, purpose: Purpose) -> bool:
    """Code asks for a parser of tool calls and room for an agent's prompt; no simulator suits anything."""
    if recipe.model.simulated or recipe.model.kind is not _KINDS.get(purpose, ModelKind.CHAT):
        return False
    wide = recipe.serving.context >= _CODE_CONTEXT
    return purpose is not Purpose.CODE or bool(recipe.parsers.tool and wide)


def list_place(recipe: Recipe, shipped: bool) -> tuple[int, int]:
    """The recipe's place in a list: simulators last, then older ones; ready before documented before refused."""
    late = 2 if recipe.model.simulated else int(shipped and recipe.name in older_recipes())
    return late, _STATES.index(recipe.state)
