"""TensorRT-LLM: `trtllm-serve` on one node, or under mpirun on several, with an agent of ours in place of sshd.

Read for the 1.3.0 release candidates: commands/serve.py at commit 00209af1, llmapi/trtllm-llmapi-launch, the list of
options behind data/trtllm.json, and published logs of 1.0 to 1.3.
Across nodes, rank 0 runs `mpirun ... trtllm-llmapi-launch trtllm-serve`, and its mpirun reaches rank k's agent
(launchers/mpi_launch.py), which listens on that node's fabric address only and starts nothing but Open MPI's daemon.
Each rank keeps the environment of its own node; nothing is handed over with `mpirun -x`.
A log line is `[12/20/2025-04:21:10] [TRT-LLM] [RANK 0] [I] text` (Python), `[TensorRT-LLM][INFO] text` (C++),
uvicorn's, a tqdm bar, or `mpi: text` (launchers/mpi_launch.py). A worker's log ends with the agent's line: its ranks
print to rank 0's log, so that line counts as the last phase. Facts: version, weights_gib (what it prints as GB is
divided by 2^30), kv_gib, kv_tokens, context, max_concurrency, url.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from sparkwright.domain.deployment import LogEvent, Phase
from sparkwright.domain.finding import Finding
from sparkwright.domain.ledger import OVERHEAD
from sparkwright.domain.plan import Placement, RankFile, RankSpec
from sparkwright.domain.recipe import Parallelism, Recipe, Runtime
from sparkwright.engines.dialect import EXCEPTION, first, most_telling, pieces, progress, rule
from sparkwright.engines.engine import SHM_BYTES, RenderContext, Stop, files_at
from sparkwright.engines.environment import check_distributed
from sparkwright.engines.launchers import script
from sparkwright.engines.metrics import TRTLLM_METRICS
from sparkwright.engines.mounts import mounts
from sparkwright.engines.traits import Cache, Claim, Range, Traits
from sparkwright.engines.trtllm import args
from sparkwright.engines.trtllm.args import check_trtllm

READ_FOR = "1.3.0rc"
LAUNCHER = "mpi_launch.py"
HOSTFILE = "hostfile"
KEY = "SPARKWRIGHT_LAUNCH_KEY"
# What mpirun starts on every node. Its transport's interface is named here, on the node itself, for mpirun hands the
# head's OMPI_MCA_ variables to all.
_ON_THE_NODE = f'unset {KEY}; export OMPI_MCA_btl_tcp_if_include="${args.INTERFACE}"; exec "$@"'
_RESERVE = "one project's reserve for TensorRT-LLM (chenboju/dgx-spark-serving); not measured here"


def _no_replicas(split: Parallelism) -> tuple[str, ...]:
    why = "TensorRT-LLM's data parallelism is of attention and inside tp (enable_attention_dp)"
    return (f"dp {split.dp}: {why}",) if split.dp > 1 else ()


TRAITS = Traits(
    claim=Claim.REST,
    fraction=0.9,  # trtllm-serve's default
    limits=lambda recipe, unified: (8192, 256),
    whole=Range(OVERHEAD, 10.0, 4.0, 10.0, _RESERVE),
    cache=Cache.SEQUENCES,
    block=32,  # tokens_per_block of KvCacheConfig
    refusals=_no_replicas,
    even_experts=True,
    faults=frozenset({"RCP030"}),
    owned_by="tensorrt_llm",
)


class Trtllm:
    name = "trtllm"
    metric_names = TRTLLM_METRICS
    metrics_page = "prometheus/metrics"
    emits: Mapping[str, str] = dict.fromkeys(args.EMITS, READ_FOR)
    stop = Stop("SIGTERM", 30.0)
    traits = TRAITS

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


_N = r"[\d.,]+"
_BEGINS = re.compile(r"\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] \[TRT-LLM\]|\[TensorRT-LLM\]\[\w+\]")
_PREFIX = re.compile(
    r"(?:\[[\d/:-]+\] )?\[TRT-LLM\](?: \[(?:RANK|MPI_Rank) \d+\])? \[(?P<level>[FEWIV])\] "
    r"|\[TensorRT-LLM\]\[(?P<cpp>\w+)\] (?:\[RANK \d+\] )?|(?:INFO|WARNING|ERROR): +"
)
_BARS = ((re.compile(r"[Ll]oading .*weights|^Loading"), Phase.LOAD, "modules"),)
_RULES = (
    rule(Phase.RENDEZVOUS, r"^mpi: agent waits for the head on (?P<a>\S+)", "agent waits for the head on {a}"),
    rule(Phase.SERVER, r"^mpi: agent joined: (?P<a>\S+) starts", "joined; this rank speaks in the log of rank 0"),
    rule(Phase.RENDEZVOUS, r"^mpi: daemon starts on (?P<a>\S+)", "rank on {a} joins"),
    rule(Phase.RENDEZVOUS, r"^[Rr]ank\d+ run mgmn (?P<r>leader|worker) node with mpi_world_size: (?P<w>\d+)",
         "{r} of {w} ranks", facts={"world": "w"}),
    rule(Phase.START, r"^\[TensorRT-LLM\] TensorRT[- ]LLM version: (?P<v>\S+)", "TensorRT-LLM {v}",
         facts={"version": "v"}),
    rule(Phase.START, r"^(?:Starting TensorRT-LLM init|TensorRT-LLM inited|Using LLM with (?P<b>\w+) backend)", ""),
    rule(Phase.LOAD, r"^Prefetching (?P<w>\S+) ", "reading ahead {w}"),
    rule(Phase.LOAD, rf"^Us(?:e|ing) (?P<g>{_N}) GB for model weights", "{g} GB of weights",
         facts={"weights_gib": "g"}),
    rule(Phase.WARMUP, rf"^Model init total -- (?P<s>{_N})s", "model in {s} s", facts={"load_seconds": "s"}),
    rule(Phase.WARMUP, rf"Allocated (?P<g>{_N}) GiB for max tokens in paged KV cache \((?P<n>\d+)\)",
         "KV cache of {n} tokens", facts={"kv_gib": "g", "kv_tokens": "n"}),
    rule(Phase.WARMUP, r"^max_seq_len=(?P<c>\d+), .*max_batch_size=(?P<b>\d+)", "{b} requests of {c} tokens",
         facts={"context": "c", "max_concurrency": "b"}),
    rule(Phase.WARMUP, r"^(?:Running autotuner warmup|Run warmup with|\[Autotuner\])", ""),
    rule(Phase.GRAPHS, r"^Creating CUDA graph instances for (?P<n>\d+) batch sizes", "{n} graphs"),
    rule(Phase.GRAPHS, r"CUDA graph warmup for batch size=(?P<n>\d+)", "graph for batch size {n}"),
    rule(Phase.SERVER, r"^(?:Setting PyTorch memory fraction|Started server process|Waiting for application)", ""),
    rule(Phase.SERVER, r"^Uvicorn running on (?P<u>http\S+)", "server at {u}", facts={"url": "u"}, ready=True),
    rule(Phase.SERVER, r"^Application startup complete", "server is up", ready=True),
)  # fmt: skip
_HEADLINE = re.compile(
    r"^mpi: (?:agent(?: on \S+)?: (?:refused|something|no head|the head is gone|\S+ cannot)|agent on \S+ is gone|"
    r"rank on \S+ cannot be reached|agent refused|SPARKWRIGHT_LAUNCH_KEY)"
    r"|^(?:MPI_ABORT was invoked|ORTE was unable|ORTE has lost communication|Primary job +terminated)"
    r"|mpirun (?:noticed that process|was unable to)|A process or daemon was unable to complete a TCP connection"
    r"|^[Rr]ank\d+ Task exit code: [1-9]|Failed to initialize executor|^Usage: trtllm-serve|^Error: "
)


def read_trtllm(line: str) -> LogEvent | None:
    return most_telling(e for piece in pieces(line, _BEGINS) if (e := _piece(piece)))


def _piece(piece: str) -> LogEvent | None:
    prefix = _PREFIX.match(piece)
    body = piece[prefix.end() :] if prefix else piece
    if _is_error(body, prefix):
        return LogEvent(Phase.START, body.strip()[:500], error=True)
    return progress(_BARS, body) or first(_RULES, body)


def _is_error(body: str, prefix: re.Match[str] | None) -> bool:
    """Its own E and F lines count; C++ ERROR lines do not: a healthy start has some (multicast on one GPU)."""
    loud = prefix is not None and (prefix["level"] or "I") in "EF"
    return loud or bool(_HEADLINE.search(body) or EXCEPTION.match(body))
