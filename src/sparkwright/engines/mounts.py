"""The places of weights and caches as a rank sees them: folders of the node, or their paths in the container."""

import hashlib
from collections.abc import Mapping
from pathlib import PurePosixPath

from sparkwright.domain.plan import Mount, Placement, RankSpec
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.engines.disk_cache import disk_cache_mounts
from sparkwright.engines.engine import SHM_BYTES, RenderContext

HUB_AT = "/models/hub"
MODELS_AT = "/models"
CACHE_AT = "/cache"


def model_word(recipe: Recipe, node: str, context: RenderContext) -> str:
    """The hub id, or the folder as the engine sees it."""
    folder = context.models.get(node, "") or recipe.model.path
    if context.from_hub or not folder:
        return recipe.model.label
    return container_folder(folder) if recipe.engine.runtime is Runtime.DOCKER else folder


def container_folder(folder: str) -> str:
    return f"{MODELS_AT}/{PurePosixPath(folder).name}"


def caches(recipe: Recipe, node: str, context: RenderContext, folders: Mapping[str, str]) -> dict[str, str]:
    """Compile caches that outlive the rank. One root per image: a stale kernel cache gives garbled text."""
    docker = recipe.engine.runtime is Runtime.DOCKER
    root = CACHE_AT if docker else cache_root(recipe, node, context)
    hub = {"HF_HUB_CACHE": HUB_AT if docker else context.paths[node].hub} if context.from_hub else {}
    return {**hub, **{name: f"{root}/{folder}" for name, folder in folders.items()}}


def cache_root(recipe: Recipe, node: str, context: RenderContext) -> str:
    """`<cache>/vllm-0.21.0-1a2b3c4d`: the last part differs between images (or venvs) of one version."""
    e = recipe.engine
    mark = hashlib.sha256((e.image or e.venv or "path").encode()).hexdigest()[:8]
    return f"{context.paths[node].cache}/{e.name}-{e.version}-{mark}"


def mounts(recipe: Recipe, node: str, context: RenderContext) -> tuple[Mount, ...]:
    """Docker runtime: weights read-only at one place in every container, caches writable, then the recipe's own."""
    if recipe.engine.runtime is not Runtime.DOCKER:
        return disk_cache_mounts(recipe)
    staged = context.models.get(node, "")
    folder = staged or recipe.model.path
    weights: tuple[Mount, ...] = ()
    # Docker would make a missing folder, as root: a simulated model without files has none.
    if context.from_hub and (staged or not recipe.model.simulated):
        weights = (Mount(context.paths[node].hub, HUB_AT, read_only=True),)
    elif folder and not context.from_hub and (staged or not recipe.model.simulated):
        weights = (Mount(folder, container_folder(folder), read_only=True),)
    cache = Mount(cache_root(recipe, node, context), CACHE_AT)
    return (*weights, cache, *disk_cache_mounts(recipe), *(parse_mount(text) for text in recipe.mounts))


def parse_mount(text: str) -> Mount:
    """`host:container` or `host:container:ro`, as Docker writes it."""
    host, _, rest = text.partition(":")
    container, _, mode = rest.partition(":")
    return Mount(host, container or host, read_only=mode == "ro")


def rank_spec(
    recipe: Recipe, placement: Placement, context: RenderContext, rank: int, env: Mapping[str, str]
) -> RankSpec:
    """The rank's common parts for all engines with ranks of their own; the command line is still empty."""
    node = placement.nodes[rank]
    return RankSpec(
        rank=rank,
        node=node,
        argv=(),
        env=env,
        runtime=recipe.engine.runtime,
        image=recipe.engine.image,
        mounts=mounts(recipe, node, context),
        gpu=not context.simulated,
        rdma=uses_rdma(placement, context, rank),
        shm_bytes=recipe.shm_bytes or SHM_BYTES,
    )


def uses_rdma(placement: Placement, context: RenderContext, rank: int) -> bool:
    return placement.world > 1 and bool(placement.fabric[placement.nodes[rank]].hcas) and not context.simulated


def docker_entrypoint(recipe: Recipe, usual: tuple[str, ...]) -> tuple[str, ...]:
    """The recipe's program instead of the usual one. Images differ: `vllm serve`, a shell, nothing."""
    return recipe.engine.program or usual
