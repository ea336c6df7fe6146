"""vLLM on Ray: a Ray cluster of all nodes, checked, then one `vllm serve` on the head that spreads its workers over it.

Read for vLLM 0.19.0 to 0.33.0 (vllm/ray/ray_env.py, vllm/v1/executor/ray_*.py) and Ray 2.60.0; field guide C2.
"""

from collections.abc import Mapping
from dataclasses import replace

from sparkwright.domain.deployment import LogEvent, Phase
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.plan import Placement, RankSpec
from sparkwright.domain.recipe import PhaseTime, Recipe, Runtime
from sparkwright.engines import ray_args, vllm_args
from sparkwright.engines.checks import check_distributed
from sparkwright.engines.engine import PhaseDefault, RenderContext, Stop, phase_times
from sparkwright.engines.environment import as_env
from sparkwright.engines.metrics import VLLM_METRICS
from sparkwright.engines.options import option_name
from sparkwright.engines.ray_log import read_vllm_ray
from sparkwright.engines.vllm import EMITS, PHASES, READ_FOR, Vllm, process_program

# What belongs to vLLM's own way to span nodes.
NATIVE = ("nnodes", "node-rank", "master-addr", "master-port", "headless")
PER_RANK = (*(name for name in vllm_args.PER_RANK if name not in NATIVE), "distributed-executor-backend")
START = PhaseDefault(Phase.START, 75, 300, "Ray's cluster (measured: 6 s a node), then vLLM's imports")


class VllmRay:
    name = "vllm-ray"
    metric_names = VLLM_METRICS
    metrics_page = "metrics"
    emits: Mapping[str, str] = dict.fromkeys((name for name in EMITS if name not in NATIVE), READ_FOR)
    stop = Stop("SIGTERM", 30.0)

    def phases(self) -> Mapping[Phase, PhaseTime]:
        return phase_times((*PHASES, START))

    def check(self, recipe: Recipe) -> tuple[Finding, ...]:
        return (*check_distributed(recipe, PER_RANK), *_native(recipe), *_replicas(recipe), *_alone(recipe))

    def render(self, recipe: Recipe, placement: Placement, context: RenderContext) -> tuple[RankSpec, ...]:
        """vLLM's ranks with a launcher before the program, and that only on the head."""
        ranks = Vllm().render(recipe, placement, context)
        return tuple(_on_ray(spec, recipe, placement, context) for spec in ranks)

    def read(self, line: str) -> LogEvent | None:
        return read_vllm_ray(line)


def _on_ray(spec: RankSpec, recipe: Recipe, placement: Placement, context: RenderContext) -> RankSpec:
    words = () if spec.rank else _serve(recipe, placement, context)
    env = {**as_env(ray_args.variables(recipe, placement, context, spec.rank)), **spec.env}
    launcher = ray_args.launcher_words(recipe, placement, context, spec.rank)
    return replace(
        spec,
        argv=(*launcher, *(("--", *_program(recipe), *words) if words else ())),
        env=env,
        entrypoint=("python3",) if recipe.engine.runtime is Runtime.DOCKER else None,
        secrets={**spec.secrets, **ray_args.secrets(context)},
        files=ray_args.rank_files(tuple(env), spec.rank),
        listens=(*_api(spec, context), *ray_args.listens(recipe, placement, spec.rank)),
        engine_argv=words,
    )


def _serve(recipe: Recipe, placement: Placement, context: RenderContext) -> tuple[str, ...]:
    ours = vllm_args.identity(recipe) | vllm_args.listening(context, 0) | vllm_args.sizes(recipe)
    model = vllm_args.model_word(recipe, placement.head, context)
    return vllm_args.serve_words(recipe, model, ours | {"distributed-executor-backend": "ray"})


def _program(recipe: Recipe) -> tuple[str, ...]:
    if recipe.engine.runtime is Runtime.DOCKER:
        return recipe.engine.entrypoint or ("vllm",)
    return process_program(recipe)


def _api(spec: RankSpec, context: RenderContext) -> tuple[tuple[str, int], ...]:
    return () if spec.rank else ((context.bind, context.port),)


def _native(recipe: Recipe) -> tuple[Finding, ...]:
    """ENG028."""
    return tuple(
        Finding(
            "ENG028", Severity.BLOCK, f"flags.{name}", f"--{option_name(name)} has no place on Ray",
            evidence=f"{name}: {value}",
            cause="it belongs to vLLM's own multi-node mode; on Ray one `vllm serve` starts the workers of all nodes",
            remedy="remove it, or set engine.name: vllm",
        )
        for name, value in recipe.flags.items() if option_name(name) in NATIVE
    )  # fmt: skip


def _replicas(recipe: Recipe) -> tuple[Finding, ...]:
    """ENG029."""
    dp = recipe.parallelism.dp
    if dp == 1:
        return ()
    return (
        Finding(
            "ENG029", Severity.BLOCK, "parallelism.dp", "data parallelism over Ray is not driven by sparkwright",
            evidence=f"dp: {dp}",
            cause="vLLM gives it a backend and placement of its own (--data-parallel-backend ray)",
            remedy="set engine.name: vllm, which spreads replicas without Ray, or use tp",
        ),
    )  # fmt: skip


def _alone(recipe: Recipe) -> tuple[Finding, ...]:
    """ENG031."""
    if recipe.nodes > 1:
        return ()
    return (
        Finding(
            "ENG031", Severity.BLOCK, "nodes", "Ray on one node has nothing to spread",
            evidence="nodes: 1",
            cause="it would only take memory and open ports",
            remedy="set engine.name: vllm",
        ),
    )  # fmt: skip
