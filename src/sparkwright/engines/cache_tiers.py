"""Tiers of an engine's KV cache beside the GPU's, from the figures that the engine gives of them."""

from collections.abc import Mapping

from sparkwright.domain.live import LiveCacheTier, LiveDiskCache
from sparkwright.domain.recipe import Recipe

HOST, DISK = "host", "disk"
# Field of LiveCacheTier -> end of the vocabulary's word (engines/data/engines): `tier_host_hits_total`.
_WORDS = {
    "used": "used_bytes",
    "hits": "hits_total",
    "written": "written_bytes_total",
    "read": "read_bytes_total",
}
WORDS = frozenset(
    {"tier_queries_total", "tier_hits_total", "tier_host_used_tokens", "tier_host_size_tokens"}
    | {f"tier_{tier}_{word}" for tier in (HOST, DISK) for word in _WORDS.values()}
)


def cache_tiers(
    recipe: Recipe,
    counted: Mapping[str, float],
    disks: tuple[LiveDiskCache, ...] = (),
    restored: float | None = None,
) -> tuple[LiveCacheTier, ...]:
    """The tiers that the recipe names, and those that the engine uses without it.

    counted: word of the vocabulary -> figure. disks: what the nodes' folders hold; it stands for a figure that the
    engine does not give. restored: tokens that its slots had after the start.
    """
    serving = recipe.serving
    named = {HOST: serving.host_cache, DISK: serving.disk_cache_size if serving.disk_cache else 0}
    found = []
    for tier, size in named.items():
        values = {field: counted.get(f"tier_{tier}_{word}") for field, word in _WORDS.items()}
        if not size and not any(values.values()):
            continue
        part = _part(tier, counted)
        if values["hits"] is None:
            alone = size and sum(map(bool, named.values())) == 1
            values["hits"] = _hits_of_all(counted, part) if alone else None
        if tier == DISK and disks and values["used"] is None:
            values["used"] = float(sum(one.used for one in disks))
        queried, back = counted.get("tier_queries_total"), restored if tier == DISK else None
        found.append(LiveCacheTier(tier, size, part=part, queried=queried, restored=back, **values))
    return tuple(found)


def _hits_of_all(counted: Mapping[str, float], part: float | None) -> float | None:
    """Hits of the only tier where no source is told: vLLM before 0.32, or SGLang, whose counter begins at a hit."""
    return counted.get("tier_hits_total", None if part is None else 0.0)


def _part(tier: str, counted: Mapping[str, float]) -> float | None:
    used, size = counted.get(f"tier_{tier}_used_tokens"), counted.get(f"tier_{tier}_size_tokens")
    return used / size if used is not None and size else None
