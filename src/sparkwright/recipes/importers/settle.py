"""The engine version of an import, and the extra features that the image's own build must have."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from sparkwright.checks.compat.table import rows_with
from sparkwright.domain.check import Context
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.engine import CUSTOM
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.values import dataclass, replace
from sparkwright.engines.catalog import imagined_ranks
from sparkwright.engines.flag_data import versions
from sparkwright.engines.releases import is_plausible, is_release, newest_on, tag_day, tag_version
from sparkwright.engines.tables import DATA_OF, SEPARATE
from sparkwright.engines.variants import EngineVariant, join_names, named_by
from sparkwright.engines.written import unknown_to, unread_by
from sparkwright.recipes.importers.any_server import settle_any_server
from sparkwright.recipes.importers.draft import Draft
from sparkwright.recipes.load import what_is_left

_SHOWN = 12
_SAYS_SO = "runtime_version"  # a key whose meaning is the version


@dataclass(frozen=True, slots=True)
class Told:
    """The source's statements on the version besides the image's tag. asked: by the user. texts: (place, text) to
    read."""

    asked: str = ""
    texts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Chosen:
    version: str
    why: str
    unknown: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def strange(self) -> int:
        return len(self.unknown) + len(self.unread)


@dataclass(frozen=True, slots=True)
class Rendered:
    """recipe: what of the draft can be loaded; words: those that its rank 0 would be started with."""

    words: tuple[str, ...]
    env: Mapping[str, str]
    recipe: Recipe | None = None


def settle(draft: Draft, told: Told) -> None:
    """Write engine.version, engine.extra_flags and engine.extra_env, with a note for what was not simply read."""
    engine, image = str(draft.get("engine.name")), str(draft.get("engine.image", ""))
    if engine == CUSTOM:
        settle_any_server(draft)
    if DATA_OF.get(engine, engine) not in SEPARATE:
        _settle_described(draft, engine, image, told)
        return
    chosen = _choose(engine, image, told, _rendered(draft))
    draft.put("engine.version", chosen.version)
    if chosen.why:
        draft.note(f"engine.version: {chosen.version} is written: {chosen.why}; `up` reads it from the image again")
    if not image and draft.get("engine.runtime") == "process" and chosen.unread:
        draft.put("engine.extra_env", list(chosen.unread))
        shown = ", ".join(chosen.unread[:_SHOWN])
        draft.note(
            f"engine.extra_env: {shown}: variables that {engine} {chosen.version} does not read; which build runs on "
            "the node is not known, so they are kept"
        )
    if not image or is_release(engine, image):
        return
    forks = named_by(engine, chosen.unknown, chosen.unread)
    if forks:
        draft.put("engine.variant", join_names(forks))
        titles = "; ".join(f"{one.name}: {one.title}" for one in forks)
        draft.note(f"engine.variant: {join_names(forks)} is written, after the options and variables ({titles})")
    for key, names, what in (
        ("extra_flags", _others(chosen.unknown, forks), "options, keys or values"),
        ("extra_env", _others(chosen.unread, forks), "variables"),
    ):
        if names:
            draft.put(f"engine.{key}", list(names))
            draft.note(
                f"engine.{key}: {', '.join(names[:_SHOWN])}: {what} that {engine} {chosen.version} does not have; "
                f"{image} is no release of it, so they are passed on unchecked"
            )


def _settle_described(draft: Draft, engine: str, image: str, told: Told) -> None:
    """The version of an engine whose options no data of ours lists: as asked for, or as the image's tag names it."""
    tag = "" if told.asked else tag_version(engine, image)
    draft.put("engine.version", told.asked or tag)
    if tag:
        draft.note(f"engine.version: {tag} is written: the image's tag names it")


def _others(names: Iterable[str], forks: Iterable[EngineVariant]) -> tuple[str, ...]:
    return tuple(name for name in names if not any(one.has_name(name) for one in forks))


def _choose(engine: str, image: str, told: Told, rendered: Rendered) -> Chosen:
    def judged(version: str, why: str) -> Chosen:
        unread = unread_by(engine, version, rendered.env)
        return Chosen(version, why, unknown_to(engine, version, rendered.words), unread)

    if told.asked:
        return judged(told.asked, "")
    if tag := tag_version(engine, image):
        return judged(tag, "" if is_release(engine, image) else "the image's tag names it")
    for place, text in told.texts:
        if found := _version_in(engine, text):
            return judged(found, "" if place == _SAYS_SO else f"{place} of the source names it")
    newest_first = [judged(_spelled(engine, version), "") for version in reversed(versions(engine))]
    least = min(one.strange for one in newest_first)
    best = [one for one in newest_first if one.strange == least]
    if (day := tag_day(image)) and (then := newest_on(engine, day)):
        dated = judged(then, f"the image's tag is of {day}, when this was the newest release")
        if dated.strange == least:
            return dated
    works = next((one for one in best if not _is_blocked(rendered.recipe, one.version)), best[0])
    known = "every option and variable" if not least else f"all but {least} of the options and variables"
    newest = "the newest release whose tables know" if works is best[0] else "not known to fail, and knows"
    return judged(works.version, f"the source names none, and this is {newest} {known}")


def _is_blocked(recipe: Recipe | None, version: str) -> bool:
    """True if the compatibility table lists this combination as one that does not work."""
    if recipe is None:
        return False
    tried = replace(recipe, engine=replace(recipe.engine, version=version))
    return any(rows_with(Context(Cluster("", (), ""), recipe=tried), "blocked"))


def _spelled(engine: str, version: str) -> str:
    """llama.cpp counts builds, and the wheel that was read has its build as the last part."""
    return f"b{version.rpartition('.')[2]}" if DATA_OF.get(engine, engine) == "llama-cpp" else version


def _version_in(engine: str, text: str) -> str:
    """`0.25.1` of a text that is a version or names the engine before one: `vLLM 0.25.1`, `sglang-v0.5.12`."""
    bare = re.fullmatch(r"\s*v?(\d+\.\d+\.\d+\S{0,40}|b\d{4,6})\s*", text)
    name = re.escape(DATA_OF.get(engine, engine)).replace(r"\-", r"[-.]")
    named = bare or re.search(
        rf"(?i){name}(?:-(?:ref|version|release))?[ :=_',-]{{1,4}}v?(\d+\.\d+\.\d+)(?![\d.]*\d)", text[:4000]
    )
    return named[1] if named and is_plausible(engine, named[1]) else ""


def _rendered(draft: Draft) -> Rendered:
    """The words and variables that sparkwright would start rank 0 with; only the variables where it cannot."""
    newest = _spelled(draft.get("engine.name"), versions(draft.get("engine.name"))[-1])
    tree: dict[str, Any] = {"name": "t", "title": "t", **draft.tree}
    tree["engine"] = {**tree["engine"], "version": tree["engine"].get("version") or newest}
    try:
        left: Recipe | None = next(iter(what_is_left(yaml.safe_dump(tree, allow_unicode=True), "t.yaml")), None)
    except (RecipeError, yaml.YAMLError):
        left = None
    if left is None:
        return Rendered((), {str(name): str(value) for name, value in (draft.get("env") or {}).items()})
    ranks = imagined_ranks(left)
    return Rendered(tuple(ranks[0].engine_words) if ranks else (), left.env, left)
