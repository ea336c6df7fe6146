"""What a built image says about itself: labels for `docker image inspect`, and a record kept on each node."""

from collections.abc import Mapping
from datetime import UTC, datetime

from sparkwright.domain.recipe import Build, Recipe
from sparkwright.images.name import content_hash

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
