"""The simulator: vLLM's flags, environment and log lines without a model or a device. Always marked simulated."""

from collections.abc import Iterator
from dataclasses import replace

from sparkwright.domain.deployment import LogEvent
from sparkwright.domain.finding import Finding
from sparkwright.domain.plan import Placement, RankSpec
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.engines.definitions import FromFile, read_definition
from sparkwright.engines.dialect import dialect
from sparkwright.engines.engine import PAGE, STOP, RenderContext
from sparkwright.engines.environment import check_distributed
from sparkwright.engines.mounts import CACHE_AT, docker_entrypoint
from sparkwright.engines.vllm import Vllm
from sparkwright.engines.vllm.releases import vllm_traits

SHM_BYTES = 64 * 1024**2
MODULE = ("-m", "sparkwright.simulator")


class Simulator:
    name = "simulator"
    # vLLM as it was measured, but for what the simulator itself takes.
    metrics_page, stop, traits = PAGE, STOP, FromFile(lambda made: vllm_traits(made.name))

    def check(self, recipe: Recipe) -> Iterator[Finding]:
        return check_distributed(recipe, read_definition(self.name).per_rank)

    def render(self, recipe: Recipe, placement: Placement, context: RenderContext) -> tuple[RankSpec, ...]:
        """vLLM's ranks with another program, no devices, and nothing compiled that would want a cache."""
        ranks = Vllm().render(recipe, placement, replace(context, simulated=True))
        return tuple(_as_simulated(spec, recipe, context) for spec in ranks)

    def read(self, line: str) -> LogEvent | None:
        return dialect(Vllm.name).read(line)


def _as_simulated(spec: RankSpec, recipe: Recipe, context: RenderContext) -> RankSpec:
    arguments = spec.argv[next(at for at, word in enumerate(spec.argv) if word in ("serve", "preload")) :]
    shm = recipe.shm_bytes or SHM_BYTES
    compiled = read_definition(Vllm.name).caches
    env = {name: value for name, value in spec.env.items() if name not in compiled}
    mounts = tuple(m for m in spec.mounts if m.container != CACHE_AT)
    spec = replace(spec, env=env, mounts=mounts, shm_bytes=shm, labels={**spec.labels, "simulated": "true"})
    if spec.keeper:
        kept = replace(spec.keeper, spec=_as_simulated(spec.keeper.spec, recipe, context))
        spec = replace(spec, keeper=kept)
    if recipe.engine.runtime is Runtime.DOCKER:
        return replace(spec, argv=arguments, entrypoint=docker_entrypoint(recipe, ("python3", *MODULE)))
    program = recipe.engine.program or (context.python(recipe, spec.node), *MODULE)
    return replace(spec, argv=(*program, *arguments))
