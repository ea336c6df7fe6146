"""The name of a built image: the hash of all that it is built from, so that the same recipe finds it again."""

import hashlib
from dataclasses import replace

from sparkwright.domain.recipe import Build, Recipe, Runtime
from sparkwright.images.dockerfile import context

NOTE = "built by `sparkwright build` from pinned parts; the tag is the hash of all of them"


def content_hash(recipe: Recipe, build: Build) -> str:
    """64 hex digits over the Dockerfile and the files beside it, and the platform that they are built for."""
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
