"""SGLang over its own multi-node mode: the same command on every node, told apart by `--node-rank`.

Read for 0.5.10, 0.5.12, 0.5.16, 0.5.20 and 0.5.23: sglang/srt/server_args.py (later arg_groups/), launch_server.py,
entrypoints/engine.py. Field guide C3.
"""

from collections.abc import Mapping

from sparkwright.domain.deployment import LogEvent, Phase
from sparkwright.domain.finding import Finding
from sparkwright.domain.plan import Placement, RankSpec
from sparkwright.domain.recipe import PhaseTime, Recipe, Runtime
from sparkwright.engines import sglang_args
from sparkwright.engines.checks import check_distributed
from sparkwright.engines.engine import SHM_BYTES, PhaseDefault, RenderContext, Stop, files_at, phase_times
from sparkwright.engines.launchers import script
from sparkwright.engines.metrics import SGLANG_METRICS
from sparkwright.engines.sglang_checks import check_sglang
from sparkwright.engines.sglang_log import read_sglang
from sparkwright.engines.vllm import docker_entrypoint
from sparkwright.engines.vllm_args import mounts

READ_FOR = "0.5.23"
MODULE = ("-m", "sglang.launch_server")
KEEPS_SECRETS = "sglang_server.py"
PHASES = (
    PhaseDefault(Phase.START, 60, 300, "imports of torch and kernels; GB10 cores are slow"),
    PhaseDefault(Phase.RENDEZVOUS, 20, 120, "seed 000: a rank on the wrong interface waits here without a line"),
    PhaseDefault(Phase.DOWNLOAD, 1800, 300, "engines start offline; only for recipes that switch that off"),
    PhaseDefault(Phase.LOAD, 300, 300, "field guide C3: 508-604 s in all on four nodes; a shard every few seconds"),
    PhaseDefault(Phase.COMPILE, 60, 600, "kernels built on first use"),
    PhaseDefault(Phase.WARMUP, 60, 600, "KV pool and attention backend; FlashInfer tunes itself"),
    PhaseDefault(Phase.GRAPHS, 60, 180, "seed 001: a capture that stood at 0 of 36 was dead, seen after 34 minutes"),
    PhaseDefault(Phase.SERVER, 10, 300, "one warm-up request through all ranks"),
    PhaseDefault(Phase.ANSWER, 10, 300, "first request: kernels for its shape are compiled"),
)


class Sglang:
    name = "sglang"
    metric_names = SGLANG_METRICS
    metrics_page = "metrics"
    emits: Mapping[str, str] = dict.fromkeys(sglang_args.EMITS, READ_FOR)
    # A worker ignores SIGTERM until rank 0 tells it to stop (0.5.20 and later): all ranks are stopped together.
    stop = Stop("SIGTERM", 30.0)

    def phases(self) -> Mapping[Phase, PhaseTime]:
        return phase_times(PHASES)

    def check(self, recipe: Recipe) -> tuple[Finding, ...]:
        return (*check_distributed(recipe, sglang_args.PER_RANK), *check_sglang(recipe))

    def render(self, recipe: Recipe, placement: Placement, context: RenderContext) -> tuple[RankSpec, ...]:
        return tuple(self._rank(recipe, placement, context, rank) for rank in range(placement.world))

    def read(self, line: str) -> LogEvent | None:
        return read_sglang(line)

    def _rank(self, recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> RankSpec:
        node = placement.nodes[rank]
        keyed = rank == 0 and context.api_key is not None
        words = sglang_args.rank_words(recipe, placement, context, rank)
        program = _program(recipe, node, context, files_at(recipe, context, node, rank) if keyed else "")
        return RankSpec(
            rank=rank,
            node=node,
            argv=(*program, *words),
            env=sglang_args.environment(recipe, placement, context, rank),
            runtime=recipe.engine.runtime,
            image=recipe.engine.image,
            entrypoint=docker_entrypoint(recipe, ("python3",)) if recipe.engine.runtime is Runtime.DOCKER else None,
            mounts=mounts(recipe, node, context),
            files=(script(KEEPS_SECRETS), sglang_args.key_file(context)) if keyed else (),
            listens=sglang_args.listens(recipe, placement, context, rank),
            gpu=not context.simulated,
            rdma=placement.world > 1 and bool(placement.fabric[node].hcas) and not context.simulated,
            shm_bytes=recipe.shm_bytes or SHM_BYTES,
            engine_argv=words,
        )


def _program(recipe: Recipe, node: str, context: RenderContext, files: str) -> tuple[str, ...]:
    """The module, or with a key our wrapper around it; files: where that lies. A recipe's entrypoint is left alone."""
    docker = recipe.engine.runtime is Runtime.DOCKER
    if recipe.engine.entrypoint:
        return () if docker else recipe.engine.entrypoint
    python = () if docker else (context.python(recipe, node),)
    return (*python, *((f"{files}/{KEEPS_SECRETS}",) if files else MODULE))
