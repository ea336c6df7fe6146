"""TensorRT-LLM: `trtllm-serve` on one node, or under mpirun on several, with an agent of ours in place of sshd.

Read for the 1.3.0 release candidates: commands/serve.py at commit 00209af1, llmapi/trtllm-llmapi-launch, the list of
options behind data/trtllm.json, and published logs of 1.0 to 1.3.
Across nodes, rank 0 runs `mpirun ... trtllm-llmapi-launch trtllm-serve`, and its mpirun reaches rank k's agent
(launchers/mpi_launch.py), which listens on that node's fabric address only and starts nothing but Open MPI's daemon.
Each rank keeps the environment of its own node; nothing is handed over with `mpirun -x`.
"""

from collections.abc import Iterator
from dataclasses import replace

from sparkwright.domain.deployment import LogEvent
from sparkwright.domain.engine import EngineDefinition
from sparkwright.domain.finding import Finding
from sparkwright.domain.ledger import Counts
from sparkwright.domain.plan import Placement, RankFile, RankSpec
from sparkwright.domain.recipe import Parallelism, Recipe, Runtime
from sparkwright.engines.definitions import FromFile, read_definition
from sparkwright.engines.dialect import dialect
from sparkwright.engines.engine import PAGE, STOP, RenderContext, files_at
from sparkwright.engines.environment import check_distributed
from sparkwright.engines.launchers import script
from sparkwright.engines.mounts import rank_spec
from sparkwright.engines.traits import Traits
from sparkwright.engines.traits_data import told_traits
from sparkwright.engines.trtllm import args

LAUNCHER = "mpi_launch.py"
HOSTFILE = "hostfile"
KEY = "SPARKWRIGHT_LAUNCH_KEY"
# What mpirun starts on every node. Its transport's interface is named here, on the node itself, for mpirun hands the
# head's OMPI_MCA_ variables to all.
_ON_THE_NODE = f'unset {KEY}; export OMPI_MCA_btl_tcp_if_include="${args.INTERFACE}"; exec "$@"'


def _no_replicas(split: Parallelism) -> tuple[str, ...]:
    why = "TensorRT-LLM's data parallelism is of attention and inside tp (enable_attention_dp)"
    return (f"dp {split.dp}: {why}",) if split.dp > 1 else ()


def _traits(made: EngineDefinition) -> Traits:
    return Traits(
        **told_traits(made),
        counts=lambda recipe: Counts.FREE,  # cudaMemGetInfo, which is MemFree on a GB10 (unsloth 10705)
        refusals=_no_replicas,
    )


class Trtllm:
    name = "trtllm"
    metrics_page, stop, traits = PAGE, STOP, FromFile(_traits)

    def check(self, recipe: Recipe) -> Iterator[Finding]:
        yield from check_distributed(recipe, read_definition(self.name).per_rank)
        yield from args.check_trtllm(recipe)

    def render(self, recipe: Recipe, placement: Placement, context: RenderContext) -> tuple[RankSpec, ...]:
        if placement.world == 1:
            return (_alone(recipe, placement, context),)
        workers = (_worker(recipe, placement, context, rank) for rank in range(1, placement.world))
        return (_head(recipe, placement, context), *workers)

    def read(self, line: str) -> LogEvent | None:
        return dialect(self.name).read(line)


def _alone(recipe: Recipe, placement: Placement, context: RenderContext) -> RankSpec:
    spec = _rank(recipe, placement, context, 0)
    docker = recipe.engine.runtime is Runtime.DOCKER
    program, words = _serve(recipe), args.serve_words(recipe, placement, context)
    return replace(
        spec,
        argv=words if docker else (*program, *words),
        entrypoint=program if docker else None,
        files=(args.options_file(recipe),),
        listens=((context.bind, context.port),),
        engine_argv=words,
    )


def _head(recipe: Recipe, placement: Placement, context: RenderContext) -> RankSpec:
    spec = _rank(recipe, placement, context, 0)
    files = files_at(recipe, context, spec.node, 0)
    words = args.serve_words(recipe, placement, context)
    # Daemons stay in the foreground: the agent's connection is what ends them
    rsh = f"{_python(recipe)} {files}/{LAUNCHER} rsh --port {recipe.serving.master_port}"
    mpirun = (
        *("mpirun", "--hostfile", f"{files}/{HOSTFILE}", "-np", str(placement.world), "--map-by", "ppr:1:node"),
        *("--leave-session-attached", "--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "plm_rsh_agent", rsh),
        *("sh", "-c", _ON_THE_NODE, "sh"),
    )
    hosts = "".join(f"{placement.fabric[node].address} slots=1\n" for node in placement.nodes)
    return replace(
        _launched(spec, recipe, context, ("head", "--", *mpirun, *_serve(recipe, many=True), *words)),
        files=(script(LAUNCHER), RankFile(HOSTFILE, hosts), args.options_file(recipe)),
        listens=((context.bind, context.port),),
        engine_argv=words,
    )


def _worker(recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> RankSpec:
    spec = _rank(recipe, placement, context, rank)
    address, port = placement.fabric[spec.node].address, recipe.serving.master_port
    words = ("agent", "--listen", address, "--port", str(port))
    return replace(
        _launched(spec, recipe, context, words),
        files=(script(LAUNCHER),),
        listens=((address, port),),
        engine_argv=(),
    )


def _launched(spec: RankSpec, recipe: Recipe, context: RenderContext, words: tuple[str, ...]) -> RankSpec:
    """The rank as one that begins with our launcher, which alone learns the key of this launch."""
    program = (_python(recipe), f"{files_at(recipe, context, spec.node, spec.rank)}/{LAUNCHER}", *words)
    docker = recipe.engine.runtime is Runtime.DOCKER
    return replace(
        spec,
        argv=program[1:] if docker else program,
        entrypoint=program[:1] if docker else None,
        secrets={KEY: context.launch_key} if context.launch_key else {},
    )


def _rank(recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> RankSpec:
    return rank_spec(recipe, placement, context, rank, args.environment(recipe, placement, context, rank))


def _serve(recipe: Recipe, many: bool = False) -> tuple[str, ...]:
    """The program of every MPI rank; a recipe's entrypoint takes the place of all of it."""
    if recipe.engine.entrypoint:
        return recipe.engine.program
    folder = f"{venv}/bin/" if (venv := _venv(recipe)) else ""
    launch = (f"{folder}trtllm-llmapi-launch",) if many else ()
    return (*launch, f"{folder}trtllm-serve")


def _python(recipe: Recipe) -> str:
    return f"{venv}/bin/python" if (venv := _venv(recipe)) else "python3"


def _venv(recipe: Recipe) -> str:
    return "" if recipe.engine.runtime is Runtime.DOCKER else recipe.engine.venv.rstrip("/")
