"""SGLang over its own multi-node mode: the same command on every node, distinguished by `--node-rank`.

Read for 0.5.10, 0.5.12, 0.5.16, 0.5.20 and 0.5.23: sglang/srt/server_args.py (later arg_groups/), launch_server.py,
entrypoints/engine.py.
"""

from sparkwright.domain.deployment import LogEvent
from sparkwright.domain.finding import Finding
from sparkwright.domain.ledger import ACTIVATIONS, COMMUNICATION, CONTEXT, GRAPHS, PROCESSES
from sparkwright.domain.plan import Placement, RankSpec
from sparkwright.domain.recipe import Parallelism, Recipe, Runtime
from sparkwright.domain.units import GIB
from sparkwright.engines.dialect import dialect
from sparkwright.engines.engine import SHM_BYTES, RenderContext, Stop, files_at
from sparkwright.engines.environment import check_distributed
from sparkwright.engines.findings import ENG
from sparkwright.engines.launchers import script
from sparkwright.engines.mounts import docker_entrypoint, mounts
from sparkwright.engines.options import merge
from sparkwright.engines.sglang import args
from sparkwright.engines.traits import Cache, Claim, Range, Traits

MODULE = ("-m", "sglang.launch_server")
KEEPS_SECRETS = "sglang_server.py"
_OUTSIDE = (PROCESSES, COMMUNICATION, CONTEXT, ACTIVATIONS, GRAPHS)


def _no_replicas(split: Parallelism) -> tuple[str, ...]:
    why = "SGLang spans nodes with data parallelism only inside tp (--enable-dp-attention)"
    return (f"dp {split.dp}: {why}",) if split.dp > 1 else ()


TRAITS = Traits(
    claim=Claim.FREE,
    # Computed from the GPU's memory at start (0.5.23, arg_groups/memory_hook.py); near this on a GB10.
    fraction=0.85,
    limits=lambda recipe, unified: (8192, 48),  # near these on a GB10 (0.5.23, arg_groups)
    # On a GB10 with Qwen2.5-1.5B: 62.1-62.9 GiB free after start with graphs, 65.0 without, of 67.2 after the pools;
    # larger models took 5-14 GiB in all.
    context=Range(CONTEXT, 1.5, 0.5, 4.0, "kernels and attention workspaces, outside the fraction"),
    graphs=Range(GRAPHS, 2.5, 0.5, 6.0, "CUDA graphs, outside the fraction"),
    outside=lambda recipe: _OUTSIDE,
    # It calls weights what free memory fell by while it loaded them: 0.35-0.44 GiB more on ten of eleven GB10 logs.
    loaded=0.38 * GIB,
    cache=Cache.TOKENS,
    eagle_inside=True,
    convolutions=True,
    exact_states=True,
    refusals=_no_replicas,
    one_stage="SGLang drafts",
    even_experts=True,
    blocks=True,
    eager_flag="disable-cuda-graph",
    faults=frozenset({"MODEL013", "RCP005", "RCP007", "RCP011", "RCP014", "RCP016", "RCP017", "RCP018"}),
    timeout=("dist-timeout", 1800),
    proven=(0.75, 0.80),
    fa3=("attention-backend", "prefill-attention-backend", "decode-attention-backend"),
    media="files",
    owned_by="sglang",
)


class Sglang:
    name = "sglang"
    metrics_page = "metrics"
    # A worker ignores SIGTERM until rank 0 tells it to stop (0.5.20 and later): all ranks are stopped together.
    stop = Stop("SIGTERM", 30.0)
    traits = TRAITS

    def check(self, recipe: Recipe) -> tuple[Finding, ...]:
        return (*check_distributed(recipe, args.PER_RANK), *check_sglang(recipe))

    def render(self, recipe: Recipe, placement: Placement, context: RenderContext) -> tuple[RankSpec, ...]:
        return tuple(self._rank(recipe, placement, context, rank) for rank in range(placement.world))

    def read(self, line: str) -> LogEvent | None:
        return dialect(self.name).read(line)

    def _rank(self, recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> RankSpec:
        node = placement.nodes[rank]
        keyed = rank == 0 and context.api_key is not None
        words = args.rank_words(recipe, placement, context, rank)
        program = _program(recipe, node, context, files_at(recipe, context, node, rank) if keyed else "")
        return RankSpec(
            rank=rank,
            node=node,
            argv=(*program, *words),
            env=args.environment(recipe, placement, context, rank),
            runtime=recipe.engine.runtime,
            image=recipe.engine.image,
            entrypoint=docker_entrypoint(recipe, ("python3",)) if recipe.engine.runtime is Runtime.DOCKER else None,
            mounts=mounts(recipe, node, context),
            files=(script(KEEPS_SECRETS), args.key_file(context)) if keyed else (),
            listens=args.listens(recipe, placement, context, rank),
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


def check_sglang(recipe: Recipe) -> tuple[Finding, ...]:
    return (*_stages(recipe), *_pinned_bytes(recipe), *_graphs(recipe), *_key(recipe))


def _stages(recipe: Recipe) -> tuple[Finding, ...]:
    """ENG024; check_server_args (0.5.10) and check_pipeline_parallel_compat (0.5.23)."""
    p, method = recipe.parallelism, recipe.speculation.method
    if p.pp == 1 or not method:
        return ()
    return (
        ENG["ENG024"].on(
            "parallelism.pp",
            f"pp {p.pp} with speculation.method {method}",
            fix=f"set tp: {p.tp * p.pp} and pp: 1, or leave speculation out",
        ),
    )


def _pinned_bytes(recipe: Recipe) -> tuple[Finding, ...]:
    size = recipe.serving.kv_cache_bytes
    if not size:
        return ()
    return (ENG["ENG025"].on("serving.kv_cache_bytes", f"kv_cache_bytes: {size}"),)


def _graphs(recipe: Recipe) -> tuple[Finding, ...]:
    """ENG026. A variable that 0.5.12 does not read was taken for the switch."""
    flags = merge({}, recipe.flags)
    off = [name for name in flags if name.startswith("disable-") and "cuda-graph" in name]
    if recipe.nodes == 1 or off or any(name.startswith("cuda-graph-") for name in flags):
        return ()
    return (
        ENG["ENG026"].on(
            "flags.disable-cuda-graph",
            "github.com/sgl-project/sglang/issues/19991; al-engr.com/minimax-sglang-debug.html: at 0 of 36 "
            "graphs for 34 minutes, SMs at 96 %, memory idle",
        ),
    )


def _key(recipe: Recipe) -> tuple[Finding, ...]:
    if not (recipe.serving.api_key_env and recipe.engine.entrypoint):
        return ()
    return (ENG["ENG027"].on("engine.entrypoint", f"entrypoint: {' '.join(recipe.engine.entrypoint)}"),)
