"""Images that `sparkwright build` makes: names and labels, and processors as Docker and as `uname -m` call them."""

from collections.abc import Mapping

from sparkwright.domain.recipe import Recipe

# Containers inherit them: none may be one of those by which ranks are found (remote.docker.LABEL + deployment, ...).
PREFIX = "sparkwright.build."
# What `uname -m` says, by what Docker says.
MACHINES = {"arm64": "aarch64", "amd64": "x86_64"}


def own_labels(found: Mapping[str, str]) -> dict[str, str]:
    """Our labels of an image, without the prefix."""
    return {name.removeprefix(PREFIX): value for name, value in found.items() if name.startswith(PREFIX)}


def built_name(recipe: Recipe) -> str:
    """The name, without the tag, that a recipe's own build gives its image."""
    return f"sparkwright/{recipe.name}"


def is_built_here(recipe: Recipe) -> bool:
    """True if the recipe's image is the one that its own build makes, by its name."""
    return recipe.build is not None and recipe.engine.image.rpartition(":")[0] == built_name(recipe)
