"""Registries of recipes: their index file, and what a recipe in one is worth before anybody starts it.

An index of ours is `sparkwright-registry.yaml` at the root (docs/guides/registries.md). Registries of sparkrun are read
as they are: `.sparkrun/registry.yaml` names folders, as RECIPES.md of https://github.com/spark-arena/sparkrun says.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field

from sparkwright.domain.codec import to_json
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.power import pointers, powers
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.values import dataclass, field
from sparkwright.engines.mods import touches
from sparkwright.recipes.importers.draft import ImportOptions, recipe_slug
from sparkwright.recipes.importers.importer import import_recipe
from sparkwright.recipes.importers.mods import MOST_BYTES, MOST_FILES, SCRIPT
from sparkwright.recipes.load import load_recipe
from sparkwright.recipes.problems import drop_unset, problems_of, report, valid_keys, validated
from sparkwright.recipes.values import Matching, Part, Text, plain_value
from sparkwright.recipes.yaml_lines import read_yaml

OURS, SPARKRUN, USUAL, MODS = "sparkwright-registry.yaml", ".sparkrun/registry.yaml", "recipes", "mods"
ENGINES = "engines"  # folder of engine files at a registry's root
SUFFIXES = (".yaml", ".yml")
MAX_BYTES = 200_000  # of one recipe: the longest of 243 published ones has 17,000
MAX_RECIPES = 2_000
MAX_FOLDERS = 50
MAX_ENGINES = 200
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}", re.ASCII)
_PLAIN_PATH = re.compile(r"[A-Za-z0-9@+=,._ /-]{1,200}", re.ASCII)
_FOLDER = Matching(r"[A-Za-z0-9._-]{1,60}(/[A-Za-z0-9._-]{1,60}){0,5}", "a folder below the index, as in recipes/chat")
_NAME = Matching(NAME.pattern, "small letters, digits, `.`, `_` and `-`, at most 40")


class IndexPart(Part):
    """`sparkwright-registry.yaml`: registry is the version of this form."""

    registry: Literal[1]
    name: Annotated[Text, _NAME] = ""
    title: Annotated[Text, Matching(r"[^\n]{1,200}", "one line of at most 200 characters")] = ""
    recipes: list[Annotated[Text, _FOLDER]] = Field(default_factory=lambda: [USUAL])


@dataclass(frozen=True, slots=True)
class Index:
    """folders: below the registry's root, where recipe files are looked for, at any depth. mods: likewise, for mods."""

    name: str
    title: str
    folders: tuple[str, ...]
    mods: tuple[str, ...] = (MODS,)


@dataclass(frozen=True, slots=True)
class Around:
    """Files of a registry that one recipe may name.

    beside: name -> text of the recipe files in its folder. mods: name of a mod's folder -> its files. engines: path in
    the registry -> text of the engine files that it names.
    """

    beside: Mapping[str, str] = field(default_factory=dict)
    mods: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    engines: Mapping[str, str] = field(default_factory=dict)

    def mod(self, name: str) -> Mapping[str, str] | None:
        """Files of a mod by the end of its path, as recipes name it."""
        return self.mods.get(name.rpartition("/")[2])


ALONE = Around()


@dataclass(frozen=True, slots=True)
class Entry:
    """One recipe of a registry as it is listed. name: how it is asked for, behind `SOURCE/`.

    path: in the registry. errors: why it cannot be used. powers: its settings that run code or open files.
    """

    name: str
    path: str
    title: str = ""
    model: str = ""
    engine: str = ""
    version: str = ""
    nodes: int = 0
    state: str = ""
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    powers: tuple[str, ...] = ()


def read_index(texts: Mapping[str, str], folders: Iterable[str]) -> Index:
    """The index of a registry. texts: the index files that there are; folders: at the root. Raises RecipeError."""
    if OURS in texts:
        return _ours(texts[OURS])
    if SPARKRUN in texts:
        return _sparkrun(texts[SPARKRUN])
    if USUAL in folders:
        return Index("", "", (USUAL,))
    what = f"no index: neither {OURS} nor {SPARKRUN} nor a folder `{USUAL}` at its root"
    raise RecipeError(
        what, "put the recipes into a folder `recipes` there; `sparkwright recipes import` reads single ones"
    )


def _ours(text: str) -> Index:
    document = read_yaml(text, OURS)
    if not isinstance(document.value, Mapping):
        raise RecipeError(f"{OURS}:1: expected a mapping with `registry: 1`")
    part, found = validated(drop_unset(document.value), IndexPart, valid_keys(IndexPart))
    problems = problems_of(document, found)
    if problems or part is None:
        raise RecipeError(report(problems, OURS), "see `Publishing your own` in docs/guides/registries.md")
    lines = [document.line(("recipes", n)) for n in range(len(part.recipes))]
    return Index(part.name, part.title, _checked(list(zip(lines, part.recipes, strict=True)), OURS))


def _sparkrun(text: str) -> Index:
    """Other keys (tuning, benchmarks, visible) are not needed to read recipes."""
    document = read_yaml(text, SPARKRUN)
    tree = plain_value(document.value)
    rows = tree.get("registries") if isinstance(tree, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise RecipeError(f"{SPARKRUN}:1: expected `registries:` with a list of mappings")
    named = [str(row.get("recipes") or row.get("subpath") or "").strip("/") for row in rows[:MAX_FOLDERS]]
    folders = [(document.line(("registries", n, "recipes")), one) for n, one in enumerate(named) if one]
    title = next((str(row["description"])[:200] for row in rows if row.get("description")), "")
    mods = [(document.line(("registries", n, "mods")), str(row["mods"]).strip("/")) for n, row in enumerate(rows)
            if row.get("mods")][:MAX_FOLDERS]  # fmt: skip
    return Index("", title, _checked(folders, SPARKRUN), (*(_checked(mods, SPARKRUN) if mods else ()), MODS))


def _checked(folders: list[tuple[int, str]], source: str) -> tuple[str, ...]:
    """Folders inside the registry only. folders: with their lines. Raises RecipeError."""
    for line, one in folders:
        if not _PLAIN_PATH.fullmatch(one) or ".." in PurePosixPath(one).parts or one.startswith(("/", "-")):
            raise RecipeError(f"{source}:{line}: folder {one[:80]!r} is not inside the registry")
    if not folders:
        raise RecipeError(f"{source}: it names no folder with recipes")
    return tuple(dict.fromkeys(one for _, one in folders))


def recipe_paths(index: Index, paths: Iterable[str]) -> tuple[str, ...]:
    """The files that are recipes by folder and name. Raises RecipeError for too many, or an odd name."""
    begins = tuple(f"{folder}/" for folder in index.folders)
    found = [path for path in paths if path.startswith(begins) and path.endswith(SUFFIXES)]
    if len(found) > MAX_RECIPES:
        raise RecipeError(f"it holds {len(found):,} recipe files; at most {MAX_RECIPES:,} are taken")
    for path in found:
        if not _PLAIN_PATH.fullmatch(path) or ".." in PurePosixPath(path).parts:
            raise RecipeError(f"the file name {path[:80]!r} is not taken: letters, digits and @+=,._- only")
    return tuple(sorted(found))


def names_of(paths: Iterable[str]) -> dict[str, str]:
    """Name -> path: the file's own name; with its folders where two files have the same."""
    by_stem: dict[str, list[str]] = {}
    for path in paths:
        by_stem.setdefault(PurePosixPath(path).stem, []).append(path)
    found = {}
    for stem, same in by_stem.items():
        for path in same:
            found[stem if len(same) == 1 else path.rpartition(".")[0]] = path
    return dict(sorted(found.items()))


def mods_of(index: Index, sizes: Mapping[str, int]) -> dict[str, dict[str, str]]:
    """Folder of each mod -> its files, path in the mod -> path in the registry; sizes: bytes, -1 for a link.

    A mod with a link, or with more than a recipe may carry, is left out: recipes then name it without its files.
    """
    begins = tuple(f"{folder}/" for folder in (*index.folders, *index.mods))
    found = {path.rpartition("/")[0]: dict[str, str]() for path in sizes
             if path.startswith(begins) and path.endswith(f"/{SCRIPT}")}  # fmt: skip
    for path in sizes if found else ():
        for folder in (parent.as_posix() for parent in PurePosixPath(path).parents):
            if folder in found:
                found[folder][path[len(folder) + 1 :]] = path
    return {
        folder: files for folder, files in sorted(found.items()) if _is_small([sizes[one] for one in files.values()])
    }


def engine_paths(paths: Iterable[str]) -> tuple[str, ...]:
    """The engine files of a registry. Raises RecipeError for too many, or an odd name."""
    found = [path for path in paths if re.fullmatch(rf"{ENGINES}/[^/]+\.toml", path)]
    if len(found) > MAX_ENGINES:
        raise RecipeError(f"it holds {len(found):,} engine files; at most {MAX_ENGINES:,} are taken")
    for path in found:
        if not _PLAIN_PATH.fullmatch(path):
            raise RecipeError(f"the file name {path[:80]!r} is not taken: letters, digits and @+=,._- only")
    return tuple(sorted(found))


def engines_named(text: str, engines: Mapping[str, str]) -> dict[str, str]:
    """The engine files whose engine's name stands in a recipe: path -> text."""
    return {path: one for path, one in engines.items() if PurePosixPath(path).stem in text}


def _is_small(sizes: Sequence[int]) -> bool:
    return min(sizes) >= 0 and sum(sizes) <= MOST_BYTES and len(sizes) <= MOST_FILES


def named_by(path: str, text: str, others: Iterable[str], mods: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Recipe files of the same folder, and folders of mods, whose names stand in a recipe: name -> path.

    Of two mods with one name the one counts whose path has more in common with the recipe's.
    """
    folder = path.rpartition("/")[0]
    names = {PurePosixPath(one).name: one for one in others if one != path and one.rpartition("/")[0] == folder}
    near: dict[str, str] = {}
    for mod in sorted(mods, key=lambda mod: _in_common(mod, path)):
        near[mod.rpartition("/")[2]] = mod
    return ({n: one for n, one in names.items() if n in text}, {n: one for n, one in near.items() if n in text})


def _in_common(one: str, other: str) -> int:
    """Characters that both begin with, so that official-mods goes with official-recipes."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def is_ours(text: str) -> bool:
    """True if a recipe is in our own form, and needs no import: `engine:` and `model:` are mappings."""
    lines = text.splitlines()
    return any(re.match(r"engine:\s*(#|\{|$)", line) for line in lines) and not any(
        re.match(r"(recipe_version|variants|runtime):", line) for line in lines
    )


def own_text(text: str, source: str, name: str, around: Around = ALONE) -> tuple[str, tuple[str, ...]]:
    """The recipe in our own form, and the notes of an import. Raises RecipeError for one that cannot be used."""
    if is_ours(text):
        return text, ()
    named = ImportOptions(name=recipe_slug(PurePosixPath(name).name))
    made = import_recipe(text, source, named, around.beside.get, around.mod)
    if made.errors:
        hint = f"sparkwright recipes import {source} writes it with its notes, for you to edit"
        raise RecipeError("\n".join(made.errors), hint)
    return made.text, made.notes


Check = Callable[[Sequence[Recipe], str], Sequence[str]]  # a recipe with its profiles, its file -> why it cannot start


def judged(name: str, path: str, text: str, check: Check, around: Around = ALONE) -> Entry:
    """The entry of a recipe, read and checked; never raises for its content."""
    try:
        own, notes = own_text(text, path, name, around)
        files = tuple(around.engines.items())
        recipe = load_recipe(own, path, engines=files)
        profiles = [load_recipe(own, path, profile, files) for profile in recipe.profiles]
        errors = tuple(check([recipe, *profiles], path))
    except RecipeError as error:
        return Entry(name, path, errors=tuple(error.message.splitlines()[:20]))
    about = (recipe.title, recipe.model.label, recipe.engine.name, recipe.engine.version)
    return Entry(name, path, *about, recipe.nodes, recipe.state.value, errors, notes, tuple(_powers(recipe, own)))


def _powers(recipe: Recipe, text: str) -> Iterator[str]:
    """Settings that run somebody's code or name files and addresses, each once."""
    found = [*powers(recipe.env, recipe.flags), *pointers(plain_value(read_yaml(text, "").value))]
    yield from dict.fromkeys(f"{power.setting} {power.gives}" for power in found)
    if (definition := recipe.engine.definition) and definition.source.startswith(f"{ENGINES}/"):
        digest = sha256(to_json(definition).encode()).hexdigest()[:12]
        yield f"{definition.source} ({digest}) starts {' '.join(definition.command)[:200]}"
    for mod in recipe.mods:
        if mod.is_code:
            yield f"mods.{mod.name} ({mod.digest}) runs {mod.script} in the container: {touches(mod)}"


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one recipe by an update. kind: new, gone, changed, broken (was valid) or mended."""

    name: str
    kind: str
    lines: tuple[str, ...] = ()


def changes(old: Mapping[str, tuple[Entry, str]], new: Mapping[str, tuple[Entry, str]]) -> tuple[Change, ...]:
    """Name -> (entry, text) before and after."""
    return tuple(change for name in sorted({*old, *new}) if (change := _change(name, old.get(name), new.get(name))))


def _change(name: str, old: tuple[Entry, str] | None, new: tuple[Entry, str] | None) -> Change | None:
    if new is None:
        return Change(name, "gone")
    entry, text = new
    added = tuple(f"gives power: {power}" for power in entry.powers if old is None or power not in old[0].powers)
    if old is None:
        return Change(name, "new", (*entry.errors[:3], *added))
    if old[1] == text and not added and bool(old[0].errors) == bool(entry.errors):
        return None
    kind = "changed"
    if bool(old[0].errors) != bool(entry.errors):
        kind = "broken" if entry.errors else "mended"
    return Change(name, kind, (*entry.errors[:3], *_differences(old[1], text), *added))


_SHOWN = 12


def _differences(old: str, new: str) -> Iterator[str]:
    """`serving.context: 32768 -> 65536`, for the first dozen settings."""
    try:
        was, now = (dict(_flat(plain_value(read_yaml(text, "").value), "")) for text in (old, new))
    except RecipeError:
        return
    differing = [key for key in sorted({*was, *now}) if was.get(key) != now.get(key)]
    for key in differing[:_SHOWN]:
        yield f"{key}: {was.get(key, 'not set')!s:.80} -> {now.get(key, 'not set')!s:.80}"
    if len(differing) > _SHOWN:
        yield f"and {len(differing) - _SHOWN} more settings"


def _flat(value: Any, at: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inside in value.items():
            yield from _flat(inside, f"{at}.{key}" if at else str(key))
    elif isinstance(value, list):
        yield at, ", ".join(map(str, value))
    else:
        yield at, "" if value is None else str(value)
