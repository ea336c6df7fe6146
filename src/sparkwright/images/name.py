"""The name of a built image: the hash of all that it is built from, so that the same recipe finds it again."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from sparkwright.domain.recipe import Build, Recipe, Runtime
from sparkwright.images.dockerfile import context

NOTE = "built by `sparkwright build` from pinned parts; the tag is the hash of all of them"


def content_hash(recipe: Recipe, build: Build) -> str:
    """64 hex digits over the Dockerfile and the files with it, and the platform that they are built for."""
    digest = hashlib.sha256(build.platform.encode())
    for name, text in context(recipe, build).items():
        digest.update(f"\0{name}\0{text}".encode())
    return digest.hexdigest()


def image_name(recipe: Recipe, build: Build) -> str:
    """`sparkwright/NAME:HASH`."""
    return f"sparkwright/{recipe.name}:{content_hash(recipe, build)[:12]}"


def served(recipe: Recipe) -> Recipe:
    """The recipe with the built image as its image, where it names no other."""
    engine = recipe.engine
    if recipe.build is None or engine.image or engine.runtime is not Runtime.DOCKER:
        return recipe
    note = engine.image_note or NOTE
    return replace(recipe, engine=replace(engine, image=image_name(recipe, recipe.build), image_note=note))


# Containers inherit them: none may be one of those by which ranks are found (remote.docker.LABEL + deployment, ...).
PREFIX = "sparkwright.build."


def labels(recipe: Recipe, build: Build, version: str, at: float) -> dict[str, str]:
    """version: of sparkwright; at: seconds since the epoch. They change nothing of the image's content."""
    return {
        f"{PREFIX}recipe": recipe.name,
        f"{PREFIX}recipe-hash": recipe.hash,
        f"{PREFIX}content": content_hash(recipe, build),
        f"{PREFIX}base": build.base,
        f"{PREFIX}sources": " ".join(f"{s.name}={s.repository}@{s.commit}" for s in build.sources),
        f"{PREFIX}unpinned": " ".join(build.unpinned.split()),
        f"{PREFIX}engine": f"{recipe.engine.name} {recipe.engine.version}",
        f"{PREFIX}by": f"sparkwright {version}",
        f"{PREFIX}date": datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds"),
    }


def own(found: Mapping[str, str]) -> dict[str, str]:
    """Our labels of an image, without the prefix."""
    return {name.removeprefix(PREFIX): value for name, value in found.items() if name.startswith(PREFIX)}
