"""`serving.disk_cache`: a folder on each node in which the engine keeps the KV of contexts for its next start."""

import hashlib
from collections.abc import Iterator

from sparkwright.domain.finding import Finding
from sparkwright.domain.plan import Mount
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.domain.units import gib
from sparkwright.domain.values import dataclass
from sparkwright.engines.findings import ENG
from sparkwright.engines.options import lmcache_disk
from sparkwright.engines.traits import Traits

DISK_CACHE_AT = "/kv-cache"
OF_HOST = "it writes what leaves serving.host_cache, and that is not set"


def disk_cache_folder(recipe: Recipe) -> str:
    """The recipe's own folder below the owner's. KV of another model, type or split is never read as its own."""
    model, split = recipe.model, recipe.parallelism
    told = (model.label, model.revision, recipe.engine.label, recipe.serving.kv_dtype, split, recipe.flags)
    mark = hashlib.sha256(repr(told).encode()).hexdigest()[:8]
    return f"{recipe.serving.disk_cache.rstrip('/')}/{recipe.name}-{mark}"


@dataclass(frozen=True, slots=True)
class CacheDisk:
    """The disk of an engine's KV cache. setting, size_setting: the names of what the recipe gives.

    folder: on the node. size: most bytes on one node.
    """

    setting: str
    size_setting: str
    folder: str
    size: int


def disk_of_cache(recipe: Recipe) -> CacheDisk | None:
    """The disk of `serving.disk_cache`, else that of LMCache's variables; None without a folder on the node."""
    serving = recipe.serving
    if serving.disk_cache:
        names = "serving.disk_cache", "serving.disk_cache_size"
        return CacheDisk(*names, serving.disk_cache, serving.disk_cache_size)
    folder, size = lmcache_disk(recipe)
    if recipe.engine.runtime is Runtime.DOCKER:
        folder = _on_node(recipe, folder) if folder else ""
    return CacheDisk("LMCACHE_LOCAL_DISK", "LMCACHE_MAX_LOCAL_DISK_SIZE", folder, size) if folder else None


def _on_node(recipe: Recipe, folder: str) -> str:
    """The node's own path of a folder in the container, '' where none of the recipe's mounts holds it."""
    for text in recipe.mounts:
        host, _, rest = text.partition(":")
        inside = (rest.partition(":")[0] or host).rstrip("/")
        if folder == inside or folder.startswith(f"{inside}/"):
            return f"{host.rstrip('/')}{folder.removeprefix(inside)}"
    return ""


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
