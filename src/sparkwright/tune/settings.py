"""Settings of an engine that are worth a search: `tune` in its file."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sparkwright.domain.errors import UsageError
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.tuning import TuneGoal, TuneSetting
from sparkwright.engines.catalog import definition_of
from sparkwright.engines.definitions import base_definition
from sparkwright.engines.options import option_name

_SECTIONS = ("serving", "speculation", "flags", "env")


def settings(recipe: Recipe, goal: TuneGoal, cores: int) -> tuple[TuneSetting, ...]:
    """The settings that the recipe's engine has for the goal; cores: of the head, 0 where they are not known."""
    return tuple(one for one in _known(recipe, goal, cores) if len(one.values) > 1)


def _known(recipe: Recipe, goal: TuneGoal, cores: int) -> Iterator[TuneSetting]:
    definition = definition_of(recipe) or base_definition(recipe.engine.name)
    for name, hint in definition.tune.items() if definition else ():
        if goal in (hint.goals or tuple(TuneGoal)) and _possible(recipe, hint.needs):
            values: tuple[Any, ...] = hint.values
            if hint.per == "cores":
                values = tuple(max(1, round(float(share) * cores)) for share in hint.values) if cores else ()
            yield with_own(recipe, TuneSetting(name, hint.key, values, hint.what, hint.by == "start"))


def _possible(recipe: Recipe, needs: str) -> bool:
    return {"": True, "speculation": bool(recipe.speculation.method), "nodes": recipe.nodes > 1}[needs]


def with_own(recipe: Recipe, setting: TuneSetting) -> TuneSetting:
    """The recipe's own value first, then the others, each once."""
    now = own_value(recipe, setting.key)
    return replace(setting, values=(now, *(v for v in dict.fromkeys(setting.values) if str(v) != str(now))))


def own_value(recipe: Recipe, key: str) -> Any:
    """None where the recipe leaves it to the engine. Raises UsageError for a key that is no setting."""
    section, _, name = key.partition(".")
    if section not in _SECTIONS or not name:
        raise UsageError(f"{key} is no setting", f"one of {', '.join(f'{s}.NAME' for s in _SECTIONS)}")
    if section in ("flags", "env"):
        given = recipe.flags if section == "flags" else recipe.env
        found = {option_name(key) if section == "flags" else key: value for key, value in given.items()}
        return found.get(name)
    part = getattr(recipe, section)
    if name not in part.__slots__:
        raise UsageError(f"{key} is no setting: a recipe has no such key")
    return getattr(part, name) or None


def add_settings(recipe: Recipe, found: Sequence[TuneSetting], texts: Sequence[str]) -> tuple[TuneSetting, ...]:
    """The settings with `KEY=V1,V2` of the command line in place of the known values of KEY. Raises UsageError."""
    made = {one.key: one for one in found}
    for text in texts:
        key, equals, values = text.partition("=")
        if not equals or not values:
            raise UsageError(f"{text!r}: expected KEY=VALUE,VALUE", "--try serving.sequences=4,8,16")
        before = made.get(key, TuneSetting(key.partition(".")[2], key, ()))
        read = str if key.startswith("env.") else _value
        made[key] = with_own(recipe, replace(before, values=tuple(map(read, values.split(",")))))
    return tuple(made.values())


def _value(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)
