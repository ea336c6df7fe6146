"""llama.cpp's server on one node, or with `rpc-server` on others (rpc.py).

Read for the server inside the xllamacpp wheel 2026.10.11549 (`data/llama-cpp.json`) and older builds.
"""

import re
from pathlib import PurePosixPath

from sparkwright.domain.deployment import LogEvent
from sparkwright.domain.finding import Finding
from sparkwright.domain.ledger import OVERHEAD
from sparkwright.domain.plan import Mount, Placement, RankSpec
from sparkwright.domain.recipe import Parallelism, Recipe, Runtime
from sparkwright.engines.dialect import dialect
from sparkwright.engines.engine import SHM_BYTES, RenderContext, Stop, served_name
from sparkwright.engines.environment import OFFLINE, check_distributed
from sparkwright.engines.findings import ENG
from sparkwright.engines.llama_cpp import rpc
from sparkwright.engines.mounts import docker_entrypoint, parse_mount
from sparkwright.engines.options import Options, merge, option_words
from sparkwright.engines.traits import Cache, Claim, Range, Traits

PER_RANK = ("model", "host", "port", "api-key", "api-key-file", "rpc")
LAUNCHER = ("-m", "sparkwright.adapters.llama_server")
DOCKER_PROGRAM = ("/app/llama-server",)  # ghcr.io/ggml-org/llama.cpp:server*, not on the image's PATH
# `--load-mode` took the place of `--no-mmap` before b10114 (ggml-org/llama.cpp#20834); for a while both worked.
LOAD_MODE_SINCE = 10114
KV_OPTIONS = ("cache-type-k", "cache-type-v")


def _layers_only(split: Parallelism) -> tuple[str, ...]:
    only = "llama.cpp over RPC splits layers over nodes (pp) and nothing else"
    return (only,) if split.tp > 1 or split.dp > 1 or split.ep else ()


TRAITS = Traits(
    claim=Claim.NONE,
    limits=lambda recipe, unified: (2048, 4),
    whole=Range(OVERHEAD, 1.0, 0.3, 2.0, "compute buffers of llama.cpp's server"),
    cache=Cache.SEQUENCES,
    refusals=_layers_only,
    by_layer=True,
    # It multiplies quantized weights as they are: 3,670 tokens/s of gpt-oss-20b on GB10, where vLLM reads 8,658.
    prefill=0.5,
    # The head describes the worker's whole graph anew for each token. Nemotron-3-Super Q8_0 and MiniMax-M3 IQ4 on two
    # nodes (10.5 and 10.7 tokens/s) take 25 to 30 ms more than reading and kernels.
    hop=(1e-3, 12e-3, 30e-3),
    batches=False,
    kv_option="cache-type-k",
    gguf=True,
    faults=frozenset({"RCP025"}),
    helpers=frozenset({"rpc"}),
    owned_by="llamacpp",
    property="default_generation_settings",
)


class LlamaCpp:
    name = "llama-cpp"
    metrics_page = "metrics"
    stop = Stop("SIGTERM", 15.0)
    traits = TRAITS

    def check(self, recipe: Recipe) -> tuple[Finding, ...]:
        workers = rpc.check_rpc(recipe, on_cpu(recipe))
        return (*check_distributed(recipe, PER_RANK), *_check_model(recipe), *workers)

    def render(self, recipe: Recipe, placement: Placement, context: RenderContext) -> tuple[RankSpec, ...]:
        head = _head(recipe, placement, context)
        workers = (rpc.worker(head, recipe, placement, context, rank) for rank in range(1, placement.world))
        return (rpc.patient(head, recipe, placement), *workers)

    def read(self, line: str) -> LogEvent | None:
        return dialect(self.name).read(line)


def _head(recipe: Recipe, placement: Placement, context: RenderContext) -> RankSpec:
    node = placement.head
    docker = recipe.engine.runtime is Runtime.DOCKER
    program = () if docker else process_program(recipe)
    return RankSpec(
        rank=0,
        node=node,
        argv=(*program, *option_words(_options(recipe, placement, context))),
        env={**OFFLINE, "LLAMA_ARG_OFFLINE": "1", **{k: str(v) for k, v in recipe.env.items()}},
        runtime=recipe.engine.runtime,
        image=recipe.engine.image,
        entrypoint=docker_entrypoint(recipe, DOCKER_PROGRAM) if docker else None,
        mounts=_mounts(recipe, node, context) if docker else (),
        secrets={"LLAMA_API_KEY": context.api_key} if context.api_key else {},
        listens=((context.bind, context.port),),
        gpu=not (on_cpu(recipe) or context.simulated),
        rdma=rpc.rdma(placement, context, 0),
        shm_bytes=recipe.shm_bytes or SHM_BYTES,
    )


def _check_model(recipe: Recipe) -> tuple[Finding, ...]:
    """ENG017: its server loads one file (the first of several), never a folder."""
    if recipe.model.path.endswith(".gguf"):
        return ()
    return (
        ENG["ENG017"].on(
            "model.path", f"path: {recipe.model.path or '(not given)'}, id: {recipe.model.id or '(not given)'}"
        ),
    )


def process_program(recipe: Recipe) -> tuple[str, ...]:
    """`llama-server` from the node's PATH; with a venv, the server inside its xllamacpp wheel through our launcher."""
    if recipe.engine.entrypoint:
        return recipe.engine.entrypoint
    venv = recipe.engine.venv.rstrip("/")
    return (f"{venv}/bin/python", *LAUNCHER) if venv else ("llama-server",)


def on_cpu(recipe: Recipe) -> bool:
    """A recipe that offloads no layer, or names no device, runs on the CPU."""
    flags = merge({}, recipe.flags)
    layers = flags.get("n-gpu-layers", flags.get("gpu-layers"))
    return str(layers) == "0" or flags.get("device") == "none"


def _options(recipe: Recipe, placement: Placement, context: RenderContext) -> Options:
    s = recipe.serving
    ours: Options = {
        "model": _gguf(recipe, placement.head, context),
        "alias": served_name(recipe),
        "host": context.bind,
        "port": context.port,
        "ctx-size": s.context * max(s.sequences, 1) or None,  # shared by all slots, unlike vLLM's max-model-len
        "parallel": s.sequences or None,
        "batch-size": s.batched_tokens or None,
        **dict.fromkeys(KV_OPTIONS, s.kv_dtype or None),
        **({} if on_cpu(recipe) or _says_how_to_load(recipe) else _unmapped(recipe.engine.version)),
        **rpc.head_options(recipe, placement),
        "jinja": True,
        "metrics": True,
    }
    flags = {name: value for name, value in merge({}, recipe.flags).items() if name not in PER_RANK}
    return merge(ours, flags)


def _unmapped(version: str) -> Options:
    """mmap cache and CUDA buffers are the same memory on GB10: a mapped model counts twice."""
    build = re.fullmatch(r"b(\d+)", version)
    return {"mmap": False} if build and int(build[1]) < LOAD_MODE_SINCE else {"load-mode": "none"}


def _says_how_to_load(recipe: Recipe) -> bool:
    return any(name in merge({}, recipe.flags) for name in ("load-mode", "mmap", "no-mmap"))


def _gguf(recipe: Recipe, node: str, context: RenderContext) -> str:
    path = context.models.get(node, "") or recipe.model.path
    if recipe.engine.runtime is not Runtime.DOCKER:
        return path
    root, inside = _mounted(node, path, context)
    return f"{inside}/{PurePosixPath(path).relative_to(root)}"


def _mounted(node: str, path: str, context: RenderContext) -> tuple[str, str]:
    """(host folder, its place in the container). A hub snapshot links into blobs: all of the cache is shown."""
    if context.from_hub:
        return context.paths[node].hub, "/models/hub"
    return str(PurePosixPath(path).parent), "/models"


def _mounts(recipe: Recipe, node: str, context: RenderContext) -> tuple[Mount, ...]:
    host, inside = _mounted(node, context.models.get(node, "") or recipe.model.path, context)
    return (Mount(host, inside, read_only=True), *(parse_mount(text) for text in recipe.mounts))
