"""Recipe text -> domain Recipe: profile laid over, defaults filled, all checked; every error with file and line."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import PurePath
from typing import Any

from sparkwright.domain.engine import CUSTOM, WORKERS_FIRST
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.recipe import ModelKind, PhaseTime, Recipe, Speculation
from sparkwright.domain.values import asdict, dataclass, replace
from sparkwright.engines.catalog import ENGINES
from sparkwright.recipes.checks import cross_check
from sparkwright.recipes.dockerfile import served
from sparkwright.recipes.engine_file import Texts, find_engine
from sparkwright.recipes.engine_schema import DescribedPart
from sparkwright.recipes.former import with_names_of_today
from sparkwright.recipes.problems import Complaint, drop_unset, overlay, problems_of, report, valid_keys, validated
from sparkwright.recipes.schema import RecipeFile, RecipePart
from sparkwright.recipes.values import Matching, domain_value, plain_value, shown_value
from sparkwright.recipes.yaml_lines import Document, Path, Problem, read_yaml

PROSE = {"title", "notes", "published", "license_note", "phases", "loading", "source", "conditions", "references"}
PROSE |= {"state", "state_reason", "instead", "profile", "profiles", "hash", "gates"}
_DEFINITION_PROSE = (
    *("title", "see", "tried", "source", "serial"),
    *("words", "renamed", "closed", "variables", "prefixes", "tune", "release"),
)
# Keys of a definition that came later: a recipe from before, which has none of them, has the same hash.
_NEWER_KEYS = ("start_order", "websockets", "caches", "per_rank", "traits", "values")
_SAYS_NOTHING: tuple[Any, ...] = (WORKERS_FIRST, (), [], {})
_BEFORE_THE_ENGINE = (
    *("gateway", "coherence", "replicas", "on_demand", "idle_minutes", "wait_seconds"),
    *("remember", "remember_hours"),
)
PROSE |= {"build"}  # an image that is built from it carries the hash of it in its name
"""Fields that describe a recipe without changing what is served."""


@dataclass(frozen=True, slots=True)
class RecipeVariant:
    """The recipe as one profile ('' for the base) makes it; recipe is None where there are problems with it.

    rest: the recipe without what the complaints are about, None where too much is missing.
    """

    profile: str
    recipe: Recipe | None
    complaints: tuple[Complaint, ...]
    rest: Recipe | None = None


@dataclass(frozen=True, slots=True)
class _File:
    """A good file: the profile that serves where none is asked for, every variant, the line of `profiles`."""

    default: str
    variants: tuple[RecipeVariant, ...]
    line: int


def load_recipe(text: str, source: str, profile: str = "", engines: Texts = ()) -> Recipe:
    """The recipe in `text` with a profile laid over it ('': the file's default_profile, or the base).

    source: the file's name as messages show it. engines: the user's own engine files. Every profile of the file is
    checked, not only the chosen one. Raises RecipeError: one line per mistake, each beginning with `FILE:LINE:`.
    """
    file = _file(text, source, engines)
    wanted = profile or file.default
    for variant in file.variants:
        if variant.profile == wanted and variant.recipe:
            return variant.recipe
    names = (v.profile for v in file.variants)
    raise RecipeError(f"{source}:{file.line}: profile {shown_value(wanted)} does not exist; {existing(names)}")


def what_is_left(text: str, source: str) -> tuple[Recipe, ...]:
    """The variants of a file with mistakes, without the wrong keys, to be checked further. Raises RecipeError."""
    document = with_names_of_today(read_yaml(text, source))
    base, profiles, _ = split_profiles(_top(document, source))
    made = (_variant(base, profiles, name, source).rest for name in ("", *profiles))
    return tuple(recipe for recipe in made if recipe)


@lru_cache(maxsize=256)
def _file(text: str, source: str, engines: Texts = ()) -> _File:
    """All of a file: a caller that asks for its profiles one after the other has it read once. Raises RecipeError."""
    document = with_names_of_today(read_yaml(text, source))
    tree = _top(document, source)
    base, profiles, wrong = split_profiles(tree)
    default = str(tree.get("default_profile") or "")
    names = tuple(profiles) if default in profiles else ("", *profiles)
    variants = tuple(_variant(base, profiles, name, source, engines) for name in names)
    if problems := [*problems_of(document, wrong), *_problems(variants, document)]:
        hint = "`sparkwright recipes show --reference` explains every key"
        if "model" in tree and not {"engine", "title"} & set(tree):
            hint = f"if another tool's file: `sparkwright recipes import {source}` makes a recipe of it; {hint}"
        raise RecipeError(report(problems, source), hint=hint)
    return _File(default, variants, document.line(("profiles",)))


def _top(document: Document, source: str) -> Mapping[str, Any]:
    if isinstance(document.value, Mapping):
        return document.value
    raise RecipeError(
        f"{source}:1: found {shown_value(document.value)}; a recipe is a mapping, one `key: value` a line"
    )


def _variant(
    base: dict[str, Any], profiles: Mapping[str, Any], name: str, source: str, engines: Texts = ()
) -> RecipeVariant:
    tree = drop_unset(overlay(base, profiles[name]) if name else base)
    tree.setdefault("name", _stem(source))
    part, broken = validated(tree, RecipePart, valid_keys(RecipeFile))
    if part is None:
        return RecipeVariant(name, None, broken)
    recipe = with_engine(to_recipe(part, source), engines)
    recipe = served(replace(recipe, profile=name, profiles=tuple(profiles)))
    found = () if recipe.name else ((("name",), _NO_NAME),)
    found = (*broken, *found, *cross_check(recipe, frozenset(path for path, _ in broken)))
    return RecipeVariant(name, None if found else replace(recipe, hash=digest(recipe)), found, recipe)


def with_engine(recipe: Recipe, engines: Texts) -> Recipe:
    """The recipe with a file's definition of its engine, also in place of one that ships as a file. Raises
    RecipeError."""
    if recipe.engine.name in (CUSTOM, *ENGINES) or recipe.engine.definition:
        return recipe
    return replace(recipe, engine=replace(recipe.engine, definition=find_engine(recipe.engine.name, engines)))


def to_recipe(part: RecipePart, source: str) -> Recipe:
    """The recipe without profile and hash."""
    tree = part.model_dump(exclude={"phases", "speculation"})
    tree["engine"] |= _described(tree["engine"], part.engine.definition)
    given = part.speculation
    made: Recipe = domain_value(
        Recipe,
        tree
        | {
            "license_note": tree.pop("license"),
            "shm_bytes": tree.pop("shm"),
            "flags": plain_value(part.flags),
            "phases": {name: PhaseTime(**value) for name, value in part.phases.model_dump(exclude_unset=True).items()},
            "speculation": Speculation(given.method, given.tokens, plain_value(given.options))
            if given
            else Speculation(),
            "source": source,
        },
    )
    if made.engine.version:
        return made
    return replace(made, engine=replace(made.engine, version=version_of_tag(made.engine.image)))


def _described(engine: dict[str, Any], part: DescribedPart | None) -> dict[str, Any]:
    """The definition that a recipe of a custom engine brings along; None for the others."""
    command, more = engine.pop("command"), engine.pop("definition")
    said = part is not None and part != DescribedPart()
    if not (command or said or engine["name"] == CUSTOM):
        return {"definition": None}
    return {"definition": {"name": engine["name"], "command": command, "source": "engine", **plain_value(more or {})}}


def version_of_tag(image: str) -> str:
    """`0.34.0` of vllm/vllm-openai:v0.34.0-aarch64, `b10269` of a llama.cpp server; '' where the tag has no release."""
    tag = image.partition("@")[0].rpartition("/")[2].partition(":")[2]
    found = re.search(r"(?:^|[-_])(?:v?(\d+\.\d+\.\d+(?:(?:rc|a|b|\.post|\.dev)\d+)?)|(b\d{4,6}))(?![\d.])", tag)
    return (found[1] or found[2]) if found else ""


def _stem(source: str) -> str:
    """The default name: the file's, where it can be one."""
    stem = PurePath(source).stem if source.endswith((".yaml", ".yml")) else ""
    try:
        return next(m for m in RecipePart.model_fields["name"].metadata if isinstance(m, Matching)).check(stem)
    except ValueError:
        return ""


def _problems(variants: tuple[RecipeVariant, ...], document: Document) -> list[Problem]:
    """Complaints with their lines; what concerns only some of the variants names them."""
    where: dict[Problem, list[str]] = {}
    for variant in variants:
        for path, text in variant.complaints:
            where.setdefault(Problem(_line(document, variant.profile, path), text), []).append(variant.profile)
    found = []
    for problem, names in where.items():
        every = len(set(names)) == len(variants) or "" in names
        found.append(problem if every else Problem(problem.line, f"{problem.text} (profile {', '.join(names)})"))
    return found


def _line(document: Document, profile: str, path: Path) -> int:
    """The line of a key of the resolved recipe: in the profile if it is there, else in the base."""
    for n in range(len(path), 0, -1):
        for place in (("profiles", profile, *path[:n]), path[:n]):
            if place in document.lines:
                return document.lines[place]
    return 1


def digest(recipe: Recipe) -> str:
    """12 hex digits that change when what is served changes, and not with prose: sha256 of the canonical JSON."""
    facts = {k: v for k, v in asdict(recipe).items() if k not in PROSE}
    for name in ("image_note", "extra_env", "extra_flags", "variant", "memory"):  # said of the build, not given to it
        facts["engine"].pop(name)
    definition = facts["engine"].pop("definition")
    if definition:  # its texts and places are prose
        told = {k: v for k, v in definition.items() if k not in _DEFINITION_PROSE}
        facts["engine"]["definition"] = {
            k: v for k, v in told.items() if k not in _NEWER_KEYS or v not in _SAYS_NOTHING
        }
    for name in ("shape", "on_disk", "stated"):  # what is planned with
        facts["model"].pop(name)
    facts["speculation"].pop("draft")
    for name in ("host_cache", "disk_cache"):  # as before there was one
        if not facts["serving"][name]:
            facts["serving"].pop(name)
    facts["serving"].pop("disk_cache_size")
    for name in _BEFORE_THE_ENGINE:  # no rank knows of it
        facts["serving"].pop(name)
    for mod in facts["mods"]:  # who has read it, and where it came from
        del mod["approved"], mod["origin"]
    _drop_defaults(facts)
    if recipe.loading.weight_cache:  # other words for the ranks
        facts["weight_cache"] = True
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _drop_defaults(facts: dict[str, Any]) -> None:
    """Removes keys that say nothing, so that recipes from before those keys were known have the same hash."""
    if facts["model"]["kind"] == ModelKind.CHAT:
        del facts["model"]["kind"]
    for table, name in ((facts, "mods"), (facts["model"], "aliases"), (facts["serving"], "queue")):
        if not table[name]:
            del table[name]


_NO_NAME = (
    "`name` is missing, and the file's name cannot serve as one; "
    "allowed: small letters, digits, `.`, `_` and `-`, at most 63"
)
_OUTSIDE = ("profiles", "default_profile")
_NOT_IN_PROFILE = frozenset((*_OUTSIDE, "name"))
_NAME = Matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", "letters, digits, `.`, `_` and `-`, as in 256k")

Tree = Mapping[str, Any]


def split_profiles(tree: Tree) -> tuple[dict[str, Any], dict[str, dict[str, Any]], list[Complaint]]:
    """The base, the usable profiles by name, and what is wrong with the profiles as such (not with their keys)."""
    base = {k: v for k, v in tree.items() if k not in _OUTSIDE}
    found, default = tree.get("profiles"), tree.get("default_profile")
    wrong: list[Complaint] = []
    if found is not None and not isinstance(found, Mapping):
        wrong += [(("profiles",), f"`profiles`: found {shown_value(found)}; expected a mapping of profiles by name")]
    written = {k: v for k, v in found.items() if not k.startswith("x-")} if isinstance(found, Mapping) else {}
    for name, over in written.items():
        wrong += _profile(name, over)
    if default not in (None, "", *written):
        wrong += [(("default_profile",), f"`default_profile`: found {shown_value(default)}; {existing(written)}")]
    profiles = {name: over for name, over in written.items() if isinstance(over, Mapping)}
    own = {name: {k: v for k, v in over.items() if k not in _NOT_IN_PROFILE} for name, over in profiles.items()}
    return base, own, wrong


def _profile(name: str, over: Any) -> Iterable[Complaint]:
    path = ("profiles", name)
    try:
        _NAME.check(name or " ")
    except ValueError as error:
        yield path, f"`profiles`: name of a profile: {error}"
    if not isinstance(over, Mapping):
        wanted = "a mapping of the keys that differ from the base"
        yield path, f"`profiles.{name}`: found {shown_value(over)}; expected {wanted}"
        return
    for key in sorted(set(over) & _NOT_IN_PROFILE):
        yield (*path, key), f"`profiles.{name}.{key}` is outside the profiles; a profile cannot change it"


def existing(names: Iterable[str]) -> str:
    """`profiles of this recipe: 1m, 256k`."""
    listed = ", ".join(n for n in names if n)
    return f"profiles of this recipe: {listed}" if listed else "this recipe has no profiles"
