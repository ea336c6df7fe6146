"""The engines that sparkwright drives, by the name a recipe gives. A plain table: nothing registers itself."""

import re
from collections.abc import Iterator, Mapping, Sequence

from sparkwright.domain.cluster import NodePaths
from sparkwright.domain.command import Secret
from sparkwright.domain.deployment import Phase
from sparkwright.domain.engine import CUSTOM, HEAD_FIRST, LAST_TO_FIRST, EngineDefinition
from sparkwright.domain.errors import RecipeError, SparkwrightError
from sparkwright.domain.facts import FabricChoice
from sparkwright.domain.finding import Finding
from sparkwright.domain.plan import Placement, RankSpec
from sparkwright.domain.recipe import EngineChoice, PhaseTime, Recipe, Runtime
from sparkwright.domain.units import gib
from sparkwright.engines.data_engine import USUAL_ROUTES, DataEngine, phase_times_of, traits_of
from sparkwright.engines.definitions import shipped_definitions
from sparkwright.engines.disk_cache import check_disk_cache
from sparkwright.engines.engine import Engine, RenderContext
from sparkwright.engines.environment import check_rdma
from sparkwright.engines.findings import ENG
from sparkwright.engines.flag_data import SHIPPED, FlagLibrary
from sparkwright.engines.flags import check_flags, check_variables
from sparkwright.engines.llama_cpp import LlamaCpp
from sparkwright.engines.sglang import Sglang
from sparkwright.engines.simulator import Simulator
from sparkwright.engines.tables import Routes, metric_names, phase_times, routes
from sparkwright.engines.traits import Traits
from sparkwright.engines.trtllm import Trtllm
from sparkwright.engines.variants import build_flags, build_variables
from sparkwright.engines.vllm import Vllm
from sparkwright.engines.vllm.ray import VllmRay
from sparkwright.engines.weight_cache import check_weight_cache

ENGINES: Mapping[str, Engine] = {
    "vllm": Vllm(),
    "vllm-ray": VllmRay(),
    "sglang": Sglang(),
    "trtllm": Trtllm(),
    "llama-cpp": LlamaCpp(),
    "simulator": Simulator(),
}
_UNKNOWN = Traits()
_PASSED_ON = re.compile(r"\$(?:[@*1-9]|\{[@*1-9])")
_HOME = NodePaths("/home/user/models", "/home/user/hub", "/home/user/cache", "/home/user/state")


def traits(recipe: Recipe) -> Traits:
    """The traits of the recipe's engine; of an engine that nothing is known of, the most usual ones."""
    found = ENGINES.get(recipe.engine.name)
    if found:
        return found.traits
    described = definition_of(recipe)
    return traits_of(described) if described else _UNKNOWN


def definition_of(recipe: Recipe) -> EngineDefinition | None:
    """The definition of the recipe's engine as data: its own, or one that ships; None for the others."""
    choice = recipe.engine
    return None if choice.name in ENGINES else choice.definition or shipped_definitions().get(choice.name)


def engine_of(recipe: Recipe) -> Engine:
    """The recipe's engine. Raises RecipeError that lists the known ones."""
    described = definition_of(recipe)
    return DataEngine(described) if described else engine(recipe.engine.name)


def figures_of(recipe: Recipe) -> Mapping[str, str]:
    """Our vocabulary -> the name on its engine's page of figures; nothing for one whose figures are not known."""
    described = definition_of(recipe)
    return described.metrics if described else metric_names(recipe.engine.name)


def routes_of(recipe: Recipe) -> Routes:
    """Calls that the gateway passes on; the usual ones where the engine's own are not known."""
    described = definition_of(recipe)
    if described is None:
        return routes(recipe.engine.name)
    calls = described.routes or USUAL_ROUTES
    return Routes((*calls, *(f"GET {path}" for path in described.websockets)), described.websockets)


def phases_of(recipe: Recipe) -> Mapping[Phase, PhaseTime]:
    """Usual seconds of each start-up phase, and the silence after which it counts as stuck."""
    described = definition_of(recipe)
    return phase_times_of(described) if described else phase_times(recipe.engine.name)


def start_groups(recipe: Recipe, specs: Sequence[RankSpec]) -> tuple[tuple[RankSpec, ...], ...]:
    """The ranks in the order of their engine; those of one group are started at once.

    The head is last where the engine does not mind: one whose workers wait already meets no stale rendezvous.
    """
    order, (head, *workers) = traits(recipe).start_order, specs
    if order == LAST_TO_FIRST:
        return tuple((spec,) for spec in reversed(specs))
    groups = ((head,), tuple(workers)) if order == HEAD_FIRST else (tuple(workers), (head,))
    return tuple(group for group in groups if group)


def simulator(recipe: Recipe) -> bool:
    return bool(traits(recipe).plays)


def engine(name: str) -> Engine:
    """The engine of that name. Raises RecipeError that lists the known ones."""
    described = shipped_definitions().get(name)
    found = ENGINES.get(name) or (DataEngine(described) if described else None)
    if found is None:
        raise RecipeError(
            f"engine.name: {name!r} is not an engine that sparkwright drives; known: {', '.join(known_names())}",
            hint="write one of the known names, or describe the engine: docs/guides/adding-an-engine.md",
        )
    return found


def leavings(label: str) -> str:
    """Traits.leaves of the engine of this label (`vllm 0.33.0`); '' for one that is not known."""
    found = ENGINES.get(label.partition(" ")[0])
    return found.traits.leaves if found else ""


def known_names() -> tuple[str, ...]:
    return (*ENGINES, *shipped_definitions(), CUSTOM)


def review(recipe: Recipe, specs: Sequence[RankSpec], library: FlagLibrary = SHIPPED) -> tuple[Finding, ...]:
    """Findings ENG001 to ENG042 without repetition, in the order found. Raises RecipeError for an unknown engine."""
    choice = recipe.engine
    found = [*engine_of(recipe).check(recipe), *check_weight_cache(recipe)]
    if recipe.serving.queue and not traits(recipe).queue:
        found.append(ENG["ENG039"].on("serving.queue", f"queue: {recipe.serving.queue} with {choice.label}"))
    for spec in specs if choice.name in ENGINES else ():
        words = spec.engine_words
        if spec.runtime is Runtime.PROCESS and spec.engine_argv is None:
            words = words[len(choice.program) :]  # options of an own entrypoint are none of the engine's
        found += check_flags(choice.name, choice.version, words, build_flags(choice), library)
    if choice.shell_text and not _PASSED_ON.search(choice.shell_text):
        found.append(ENG["ENG040"].on("engine.entrypoint", f"entrypoint: {' '.join(choice.entrypoint or ())}"))
    found += check_rdma(specs)
    found += _check_tag(choice)
    found += _check_host_cache(recipe)
    found += check_disk_cache(recipe, engine_of(recipe).traits)
    if choice.name not in ENGINES:
        return tuple(dict.fromkeys(found))
    own = build_variables(choice, recipe.env)
    found += check_variables(choice.name, choice.version, recipe.env, own, library)
    return tuple(dict.fromkeys(found))


def _check_host_cache(recipe: Recipe) -> Iterator[Finding]:
    if (size := recipe.serving.host_cache) and not engine_of(recipe).traits.host_cache:
        yield ENG["ENG041"].on("serving.host_cache", f"host_cache: {gib(size)}; engine: {recipe.engine.name}")


def _check_tag(choice: EngineChoice) -> Iterator[Finding]:
    if choice.runtime is Runtime.DOCKER and choice.image and not choice.image_note and "@sha256:" not in choice.image:
        yield ENG["ENG034"].on("engine.image", f"image: {choice.image}", title=f"the tag of {choice.image} can move")


def rehearse(recipe: Recipe, library: FlagLibrary = SHIPPED) -> tuple[Finding, ...]:
    """All findings about the recipe's engine, version, flags and variables. Raises RecipeError: unknown engine."""
    return review(recipe, imagined_ranks(recipe), library)


def imagined_ranks(recipe: Recipe) -> tuple[RankSpec, ...]:
    """The ranks on imagined nodes; none where the recipe cannot be rendered: `check` gives the reason."""
    if recipe.parallelism.world_size != recipe.nodes:
        return ()
    nodes = tuple(f"node-{i + 1}" for i in range(recipe.nodes))
    fabric = {node: FabricChoice(f"192.0.2.{i + 1}", "eth0", ("mlx5_0",)) for i, node in enumerate(nodes)}
    context = RenderContext(
        dict.fromkeys(nodes, _HOME),
        dict.fromkeys(nodes, recipe.model.path or f"{_HOME.hub}/models--x/snapshots/y"),
        from_hub=not recipe.model.path,
        api_key=Secret("made-up") if recipe.serving.api_key_env else None,
        simulated=recipe.model.simulated,
        deployment="rehearsal",
        launch_key=Secret("made-up"),
    )
    try:
        return engine_of(recipe).render(recipe, Placement(nodes, fabric), context)
    except SparkwrightError:
        return ()
