"""vLLM with its own multi-node mode: `vllm serve` on every node, `--headless` on the workers, no Ray.

Read for 0.21.0. Ray is another engine.
"""

from sparkwright.domain.deployment import LogEvent
from sparkwright.domain.finding import Finding
from sparkwright.domain.plan import Placement, RankSpec
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.engines.dialect import dialect
from sparkwright.engines.engine import SHM_BYTES, RenderContext, Stop
from sparkwright.engines.environment import check_distributed
from sparkwright.engines.mounts import docker_entrypoint, mounts
from sparkwright.engines.vllm import args
from sparkwright.engines.vllm.releases import TRAITS


class Vllm:
    name = "vllm"
    metrics_page = "metrics"
    stop = Stop("SIGTERM", 30.0)
    traits = TRAITS

    def check(self, recipe: Recipe) -> tuple[Finding, ...]:
        return check_distributed(recipe, args.PER_RANK)

    def render(self, recipe: Recipe, placement: Placement, context: RenderContext) -> tuple[RankSpec, ...]:
        return tuple(self._rank(recipe, placement, context, rank) for rank in range(placement.world))

    def read(self, line: str) -> LogEvent | None:
        return dialect(self.name).read(line)

    def _rank(self, recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> RankSpec:
        node = placement.nodes[rank]
        docker = recipe.engine.runtime is Runtime.DOCKER
        program = () if docker else process_program(recipe)
        rdma = placement.world > 1 and bool(placement.fabric[node].hcas) and not context.simulated
        return RankSpec(
            rank=rank,
            node=node,
            argv=(*program, *args.rank_words(recipe, placement, context, rank)),
            env=args.environment(recipe, placement, context, rank),
            runtime=recipe.engine.runtime,
            image=recipe.engine.image,
            entrypoint=docker_entrypoint(recipe, ("vllm",)) if docker else None,
            mounts=mounts(recipe, node, context),
            secrets={"VLLM_API_KEY": context.api_key} if context.api_key and rank == 0 else {},
            listens=args.listens(recipe, placement, context, rank),
            gpu=not context.simulated,
            rdma=rdma,
            shm_bytes=recipe.shm_bytes or SHM_BYTES,
        )


def process_program(recipe: Recipe) -> tuple[str, ...]:
    """`<venv>/bin/vllm`, or `vllm` from the node's PATH; a recipe's entrypoint takes its place."""
    if recipe.engine.entrypoint:
        return recipe.engine.entrypoint
    venv = recipe.engine.venv.rstrip("/")
    # Through the interpreter: the console script's first line breaks when a venv was moved or its path is long.
    return (f"{venv}/bin/python", "-m", "vllm.entrypoints.cli.main") if venv else ("vllm",)
