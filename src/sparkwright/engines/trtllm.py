"""TensorRT-LLM: `trtllm-serve` on one node, or under mpirun on several, with an agent of ours in place of sshd.

Read for the 1.3.0 release candidates: commands/serve.py at commit 00209af1, llmapi/trtllm-llmapi-launch, and the
list of options behind data/trtllm-1.3.0rc.json; field guide C4.
Across nodes, rank 0 runs `mpirun ... trtllm-llmapi-launch trtllm-serve`, and its mpirun reaches rank k's agent
(launchers/mpi_launch.py), which listens on that node's fabric address only and starts nothing but Open MPI's daemon.
Each rank keeps the environment of its own node; nothing is handed over with `mpirun -x`.
"""

from collections.abc import Mapping
from dataclasses import replace

from sparkwright.domain.deployment import LogEvent, Phase
from sparkwright.domain.finding import Finding
from sparkwright.domain.plan import Placement, RankFile, RankSpec
from sparkwright.domain.recipe import PhaseTime, Recipe, Runtime
from sparkwright.engines import trtllm_args as args
from sparkwright.engines.checks import check_distributed
from sparkwright.engines.engine import SHM_BYTES, PhaseDefault, RenderContext, Stop, files_at, phase_times
from sparkwright.engines.launchers import script
from sparkwright.engines.metrics import TRTLLM_METRICS
from sparkwright.engines.trtllm_checks import check_trtllm
from sparkwright.engines.trtllm_log import read_trtllm
from sparkwright.engines.vllm_args import mounts

READ_FOR = "1.3.0rc"
LAUNCHER = "mpi_launch.py"
HOSTFILE = "hostfile"
KEY = "SPARKWRIGHT_LAUNCH_KEY"
# What mpirun starts on every node. Its transport's interface is named here, on the node itself, for mpirun hands the
# head's OMPI_MCA_ variables to all.
_ON_THE_NODE = f'unset {KEY}; export OMPI_MCA_btl_tcp_if_include="${args.INTERFACE}"; exec "$@"'
PHASES = (
    PhaseDefault(Phase.START, 60, 300, "imports of torch and kernels; GB10 cores are slow"),
    PhaseDefault(Phase.RENDEZVOUS, 10, 120, "mpirun reaches the agents, then MPI_Init"),
    PhaseDefault(Phase.LOAD, 300, 600, "published logs: a bar over modules; prefetching shards prints little"),
    PhaseDefault(Phase.WARMUP, 60, 900, "published logs: autotuner 28 s on one GPU; 15 minutes on a cold cache"),
    PhaseDefault(Phase.GRAPHS, 60, 600, "published logs: 10 s for the largest batch, then less"),
    PhaseDefault(Phase.SERVER, 5, 120, "uvicorn"),
    PhaseDefault(Phase.ANSWER, 10, 300, "first request"),
)


class Trtllm:
    name = "trtllm"
    metric_names = TRTLLM_METRICS
    metrics_page = "prometheus/metrics"
    emits: Mapping[str, str] = dict.fromkeys(args.EMITS, READ_FOR)
    stop = Stop("SIGTERM", 30.0)

    def phases(self) -> Mapping[Phase, PhaseTime]:
        return phase_times(PHASES)

    def check(self, recipe: Recipe) -> tuple[Finding, ...]:
        return (*check_distributed(recipe, args.PER_RANK), *check_trtllm(recipe))

    def render(self, recipe: Recipe, placement: Placement, context: RenderContext) -> tuple[RankSpec, ...]:
        if placement.world == 1:
            return (_alone(recipe, placement, context),)
        workers = (_worker(recipe, placement, context, rank) for rank in range(1, placement.world))
        return (_head(recipe, placement, context), *workers)

    def read(self, line: str) -> LogEvent | None:
        return read_trtllm(line)


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
    mpirun = _mpirun(recipe, placement, files)
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


def _mpirun(recipe: Recipe, placement: Placement, files: str) -> tuple[str, ...]:
    """Daemons stay in the foreground: the agent's connection is what ends them."""
    rsh = f"{_python(recipe)} {files}/{LAUNCHER} rsh --port {recipe.serving.master_port}"
    return (
        *("mpirun", "--hostfile", f"{files}/{HOSTFILE}", "-np", str(placement.world), "--map-by", "ppr:1:node"),
        *("--leave-session-attached", "--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "plm_rsh_agent", rsh),
        *("sh", "-c", _ON_THE_NODE, "sh"),
    )


def _rank(recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> RankSpec:
    node = placement.nodes[rank]
    return RankSpec(
        rank=rank,
        node=node,
        argv=(),
        env=args.environment(recipe, placement, context, rank),
        runtime=recipe.engine.runtime,
        image=recipe.engine.image,
        mounts=mounts(recipe, node, context),
        gpu=not context.simulated,
        rdma=placement.world > 1 and bool(placement.fabric[node].hcas) and not context.simulated,
        shm_bytes=recipe.shm_bytes or SHM_BYTES,
    )


def _serve(recipe: Recipe, many: bool = False) -> tuple[str, ...]:
    """The program of every MPI rank; a recipe's entrypoint takes the place of all of it."""
    if recipe.engine.entrypoint:
        return recipe.engine.entrypoint
    folder = f"{venv}/bin/" if (venv := _venv(recipe)) else ""
    launch = (f"{folder}trtllm-llmapi-launch",) if many else ()
    return (*launch, f"{folder}trtllm-serve")


def _python(recipe: Recipe) -> str:
    return f"{venv}/bin/python" if (venv := _venv(recipe)) else "python3"


def _venv(recipe: Recipe) -> str:
    return "" if recipe.engine.runtime is Runtime.DOCKER else recipe.engine.venv.rstrip("/")
