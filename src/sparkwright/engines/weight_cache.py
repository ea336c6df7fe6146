"""A process of its own that keeps a rank's weights in GPU memory: a relaunch of the rank maps them and reads no file.

Read in the wheels of vLLM 0.33.0 (entrypoints/cli/preload.py, model_loader/weight_cache) and SGLang 0.5.23
(srt/weight_cache): CUDA IPC handles over a Unix socket, whose owner must be the rank's own user. Where the process is
not there the engines read files. vLLM goes on serving when it ends, SGLang ends with it.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace

from sparkwright.domain.finding import Finding
from sparkwright.domain.plan import Keeper, RankSpec
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.engines.engine import RenderContext
from sparkwright.engines.findings import ENG
from sparkwright.engines.mounts import CACHE_AT
from sparkwright.engines.version import is_since

# The versions whose source was read, or whose parser was asked; older ones of these engines may have it, too.
SINCE: Mapping[str, tuple[int, ...]] = {"vllm": (0, 32), "sglang": (0, 5, 23), "simulator": (0,)}
# The process meets its peers at a port of its own while it loads; that of a draft model is the next.
PORT = 500


def keeps_weights(recipe: Recipe) -> bool:
    """True if the recipe asks for it and the engine can do it; `check_weight_cache` says why one cannot."""
    return recipe.loading.weight_cache and not _obstacle(recipe)


def check_weight_cache(recipe: Recipe) -> Iterator[Finding]:
    if recipe.loading.weight_cache and (why := _obstacle(recipe)):
        yield ENG["ENG038"].on("loading.weight_cache", f"weight_cache: true; {why}")


def _obstacle(recipe: Recipe) -> str:
    """The reason why no process can keep the weights, '' if one can."""
    engine, split, method = recipe.engine, recipe.parallelism, recipe.speculation.method
    first = SINCE.get(engine.name)
    if first is None:
        return f"{engine.name} has none"
    obstacles = {
        f"{engine.label}; known for {'.'.join(map(str, first))} and newer": not is_since(recipe, *first),
        "engine.entrypoint takes the place of the program that would start it": engine.entrypoint,
        "mods change the rank's container alone": recipe.mods,
        "serving.on_demand: a model that is stopped would keep its memory": recipe.serving.on_demand,
        f"parallelism.dp: {split.dp}, which was not tried": split.dp > 1,
        f"speculation.method: {method}; SGLang keeps no draft model": engine.name == "sglang" and method,
        "runtime docker: SGLang watches the process by its number, which another container does not see": (
            engine.name == "sglang" and engine.runtime is Runtime.DOCKER
        ),
    }
    return next((why for why, there in obstacles.items() if there), "")


def socket_folder(recipe: Recipe, context: RenderContext, node: str) -> str:
    """A folder whose path leaves room for the sockets' names: 107 bytes are the limit of all.

    In a container it is in the mounted cache, which both see and where it belongs to the container's own user.
    """
    place = f"{context.paths[node].state}/{context.deployment}"
    mark = hashlib.sha256(place.encode()).hexdigest()[:8]
    return (
        f"{CACHE_AT}/weights-{mark}" if recipe.engine.runtime is Runtime.DOCKER else f"/tmp/sparkwright-weights-{mark}"
    )


def keeper(
    spec: RankSpec, argv: tuple[str, ...], ready: str, folder: str, listens: tuple[tuple[str, int], ...]
) -> Keeper:
    """The keeper of a rank: its environment, image and devices, and another program."""
    own = replace(spec, argv=argv, secrets={}, files=(), listens=listens, engine_argv=(), keeper=None)
    return Keeper(own, ready, "" if spec.runtime is Runtime.DOCKER else folder)
