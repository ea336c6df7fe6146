"""vLLM with its own multi-node mode: `vllm serve` on every node, `--headless` on the workers, no Ray.

Read for 0.21.0; field guide C1. Ray is another engine.
"""

from collections.abc import Mapping

from sparkwright.domain.deployment import LogEvent, Phase
from sparkwright.domain.finding import Finding
from sparkwright.domain.plan import Placement, RankSpec
from sparkwright.domain.recipe import PhaseTime, Recipe, Runtime
from sparkwright.engines.engine import SHM_BYTES, PhaseDefault, RenderContext, Stop, phase_times
from sparkwright.engines.environment import check_distributed
from sparkwright.engines.metrics import VLLM_METRICS
from sparkwright.engines.mounts import docker_entrypoint, mounts
from sparkwright.engines.vllm import args
from sparkwright.engines.vllm.log import read_vllm
from sparkwright.engines.vllm.releases import TRAITS

READ_FOR = "0.21.0"
PHASES = (
    PhaseDefault(Phase.START, 45, 180, "captures: 13-36 s: imports and model config; GB10 cores are slower"),
    PhaseDefault(Phase.RENDEZVOUS, 20, 90, "captures m1, m2: 2-18 s; m3, m4 hang here without a line"),
    PhaseDefault(Phase.DOWNLOAD, 1800, 300, "engines start offline; only for recipes that switch that off"),
    PhaseDefault(Phase.LOAD, 230, 300, "field guide C1: 80-552 s for 160 GB on two nodes; a shard every few seconds"),
    PhaseDefault(Phase.COMPILE, 60, 600, "captures: 4-24 s; 600 s covers a cold cache on GB10 (C1: 12 min in all)"),
    PhaseDefault(Phase.WARMUP, 120, 600, "capture v4-1m: 308 s of DeepGEMM and TileLang, with progress every 2-8 s"),
    PhaseDefault(Phase.GRAPHS, 30, 300, "captures: 4-8 s; E67, E69: a capture without progress is a deadlock"),
    PhaseDefault(Phase.SERVER, 5, 120, "captures: 1-4 s"),
    PhaseDefault(Phase.ANSWER, 10, 300, "first request: Triton compiles kernels (jit_monitor lines in the captures)"),
)
EMITS = (
    "served-model-name", "revision", "host", "port", "tensor-parallel-size", "pipeline-parallel-size",
    "data-parallel-size", "enable-expert-parallel", "distributed-executor-backend", "nnodes", "node-rank",
    "master-addr", "master-port", "headless", "max-model-len", "max-num-seqs", "max-num-batched-tokens",
    "kv-cache-dtype", "gpu-memory-utilization", "kv-cache-memory-bytes", "speculative-config", "tokenizer-mode",
    "tool-call-parser", "enable-auto-tool-choice", "reasoning-parser", "chat-template",
)  # fmt: skip


class Vllm:
    name = "vllm"
    metric_names = VLLM_METRICS
    metrics_page = "metrics"
    emits: Mapping[str, str] = dict.fromkeys(EMITS, READ_FOR)
    stop = Stop("SIGTERM", 30.0)
    traits = TRAITS

    def phases(self) -> Mapping[Phase, PhaseTime]:
        return phase_times(PHASES)

    def check(self, recipe: Recipe) -> tuple[Finding, ...]:
        return check_distributed(recipe, args.PER_RANK)

    def render(self, recipe: Recipe, placement: Placement, context: RenderContext) -> tuple[RankSpec, ...]:
        return tuple(self._rank(recipe, placement, context, rank) for rank in range(placement.world))

    def read(self, line: str) -> LogEvent | None:
        return read_vllm(line)

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
