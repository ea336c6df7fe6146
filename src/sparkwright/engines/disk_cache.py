"""`serving.disk_cache`: a folder on each node in which the engine keeps the KV of contexts for its next start."""

import hashlib
from collections.abc import Iterator

from sparkwright.domain.finding import Finding
from sparkwright.domain.plan import Mount
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.domain.units import gib
from sparkwright.engines.findings import ENG
from sparkwright.engines.traits import Traits

DISK_CACHE_AT = "/kv-cache"
OF_HOST = "it writes what leaves serving.host_cache, and that is not set"


def disk_cache_folder(recipe: Recipe) -> str:
    """The recipe's own folder below the owner's. KV of another model, type or split is never read as its own."""
    model, split = recipe.model, recipe.parallelism
    told = (model.label, model.revision, recipe.engine.label, recipe.serving.kv_dtype, split, recipe.flags)
    mark = hashlib.sha256(repr(told).encode()).hexdigest()[:8]
    return f"{recipe.serving.disk_cache.rstrip('/')}/{recipe.name}-{mark}"


def disk_cache_seen(recipe: Recipe) -> str:
    """The folder as the engine sees it."""
    return DISK_CACHE_AT if recipe.engine.runtime is Runtime.DOCKER else disk_cache_folder(recipe)


def disk_cache_mounts(recipe: Recipe) -> tuple[Mount, ...]:
    """One mount with the folder; for processes, too: a start makes the folders of mounts."""
    if not recipe.serving.disk_cache:
        return ()
    return (Mount(disk_cache_folder(recipe), disk_cache_seen(recipe)),)


def check_disk_cache(recipe: Recipe, traits: Traits) -> Iterator[Finding]:
    """ENG042 where the engine, its version or the recipe has no such tier."""
    serving = recipe.serving
    if serving.disk_cache and (why := traits.disk_cache(recipe)):
        size = gib(serving.disk_cache_size)
        evidence = f"disk_cache: {serving.disk_cache} ({size}); {recipe.engine.label}: {why}"
        yield ENG["ENG042"].on("serving.disk_cache", evidence)
