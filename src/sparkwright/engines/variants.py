"""Known forks of an engine, as data: what `engine.variant` adds to its options and variables."""

import tomllib
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

from sparkwright.domain.codec import from_tree
from sparkwright.domain.recipe import EngineChoice
from sparkwright.domain.values import dataclass
from sparkwright.engines.tables import DATA_OF

_JOIN = "+"


@dataclass(frozen=True, slots=True)
class EngineVariant:
    """engine: whose options it has besides. env: variables, `*` for any end. flags: options, and keys of JSON options.

    also: options and variables that it has and that do not tell it from other builds.
    """

    name: str
    engine: str
    title: str
    env: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    see: tuple[str, ...] = ()

    def has_name(self, name: str) -> bool:
        """True for an option or a variable of its builds."""
        return _fits(name, (*self.env, *self.flags, *self.also))


def _fits(name: str, forms: Iterable[str]) -> bool:
    return any(fnmatchcase(name, form) for form in forms)


@cache
def shipped_variants() -> Mapping[str, EngineVariant]:
    text = (files("sparkwright.engines") / "data" / "variants.toml").read_text(encoding="utf-8")
    return {name: from_tree(EngineVariant, {"name": name, **row}) for name, row in tomllib.loads(text).items()}


def variant_names(choice: EngineChoice) -> tuple[str, ...]:
    """The names in `b12x+dspark`: a build may be of several forks."""
    return tuple(name for name in choice.variant.split(_JOIN) if name)


def variants_for(engine: str) -> tuple[EngineVariant, ...]:
    return tuple(one for one in shipped_variants().values() if one.engine == DATA_OF.get(engine, engine))


def build_flags(choice: EngineChoice) -> tuple[str, ...]:
    """Options that the image's build has besides those of its version: the recipe's own and its variants'."""
    return (*choice.extra_flags, *(flag for one in _chosen(choice) for flag in (*one.flags, *one.also)))


def build_variables(choice: EngineChoice, env: Iterable[str]) -> tuple[str, ...]:
    """The variables of `env` that the image's build reads besides those of its version."""
    return (*choice.extra_env, *(name for name in env if any(one.has_name(name) for one in _chosen(choice))))


def _chosen(choice: EngineChoice) -> tuple[EngineVariant, ...]:
    known = shipped_variants()
    return tuple(known[name] for name in variant_names(choice) if name in known)


def named_by(engine: str, flags: Iterable[str], env: Iterable[str]) -> tuple[EngineVariant, ...]:
    """The variants that one of these options or variables tells; none of them is in a release."""
    given = (*flags, *env)
    return tuple(one for one in variants_for(engine) if any(_fits(name, (*one.env, *one.flags)) for name in given))


def join_names(found: Iterable[EngineVariant]) -> str:
    return _JOIN.join(one.name for one in found)
