"""llama.cpp's server on one node, or over several: `rpc-server` shares each worker's devices with the head.

The head alone reads the weights. The protocol has no authentication (its README: never on an open network), so a worker
listens on its node's fabric address and nowhere else. Read for the server inside the xllamacpp wheel 2026.10.11549
(`data/llama-cpp.json`) and older builds; tools/rpc and ggml/src/ggml-rpc in the llama-cpp-python sdist 0.3.36, tested
with its binaries.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath

from sparkwright.domain.deployment import LogEvent
from sparkwright.domain.engine import EngineDefinition
from sparkwright.domain.finding import BLOCK, Finding
from sparkwright.domain.plan import Mount, Placement, RankSpec
from sparkwright.domain.recipe import ModelKind, Parallelism, Recipe, Runtime
from sparkwright.domain.units import MIB, gib
from sparkwright.engines.definitions import FromFile, read_definition
from sparkwright.engines.dialect import dialect
from sparkwright.engines.disk_cache import disk_cache_mounts, disk_cache_seen
from sparkwright.engines.engine import PAGE, SHM_BYTES, STOP, RenderContext, files_at, served_name
from sparkwright.engines.environment import OFFLINE, check_distributed
from sparkwright.engines.findings import ENG
from sparkwright.engines.launchers import script
from sparkwright.engines.mounts import CACHE_AT, docker_entrypoint, parse_mount, uses_rdma
from sparkwright.engines.options import Options, amount, flag_value, merge_options, option_words
from sparkwright.engines.traits import Traits
from sparkwright.engines.traits_data import told_traits

LAUNCHER = "llama_server.py"
DOCKER_PROGRAM = ("/app/llama-server",)  # ghcr.io/ggml-org/llama.cpp:server*, not on the image's PATH
# `--load-mode` took the place of `--no-mmap` before b10114 (ggml-org/llama.cpp#20834); for a while both worked.
LOAD_MODE_SINCE = 10114
KV_OPTIONS = ("cache-type-k", "cache-type-v")
ALL_LAYERS = 99
# $0: where the image keeps its programs. The program was renamed in June 2026 (b9824).
_FIND = (
    'PATH="$0:$PATH"; for p in ggml-rpc-server rpc-server; do command -v $p >/dev/null && exec $p "$@"; done; '
    'echo "error: no rpc-server here: it comes with a llama.cpp that was built with GGML_RPC=ON" >&2; exit 127'
)

# llama-server ends at once where nobody listens, and a worker's program has a device to open before it does. Only bash
# can ask a port without a tool of its own; the images have it.
_PATIENT = 'if command -v bash >/dev/null; then exec bash -c "$0" bash "$@"; fi; shift; exec "$@"'
_WAIT = (
    "trap 'exit 143' TERM; for a in $1; do n=0; until (exec 3<>/dev/tcp/${a%:*}/${a##*:}) 2>/dev/null; do "
    '[ $((n += 1)) -lt 100 ] || { echo "error: no rpc-server listens at $a for 20 s" >&2; exit 1; }; sleep 0.2; '
    'done; done; shift; exec "$@"'
)


def _layers_only(split: Parallelism) -> tuple[str, ...]:
    only = "llama.cpp over RPC splits layers over nodes (pp) and nothing else"
    return (only,) if split.tp > 1 or split.dp > 1 or split.ep else ()


def _prompt_cache(recipe: Recipe, pool: int) -> tuple[float, str]:
    """Bytes of the prompts that the server keeps in host memory, where the recipe asks for them."""
    size = recipe.serving.host_cache or amount(flag_value(recipe, "cache-ram")) * MIB
    return float(size), f"llama.cpp's prompt cache in host memory: {gib(int(size))}" if size else ""


def _reader(recipe: Recipe) -> str:
    """Mapped files unless an option reads them: --no-mmap of older builds, --load-mode of newer ones."""
    mode = str(flag_value(recipe, "load-mode") or "")
    return "gguf-read" if flag_value(recipe, "no-mmap") or mode in ("none", "mlock", "dio") else "gguf"


def _traits(made: EngineDefinition) -> Traits:
    return Traits(
        **told_traits(made),
        choose=lambda texts: {"grammar": "root ::= " + " | ".join(f'"{text}"' for text in texts)},
        tier=_prompt_cache,
        disk_cache=lambda recipe: "" if recipe.nodes == 1 else "over RPC its slots were not tried",
        refusals=_layers_only,
        reader=_reader,
    )


class LlamaCpp:
    name = "llama-cpp"
    metrics_page, stop, traits = PAGE, STOP, FromFile(_traits)

    def check(self, recipe: Recipe) -> Iterator[Finding]:
        yield from check_distributed(recipe, read_definition(self.name).per_rank)
        model = recipe.model
        if not model.path.endswith(".gguf"):  # its server loads one file (the first of several), never a folder
            yield ENG["ENG017"].on(
                "model.path", f"path: {model.path or '(not given)'}, id: {model.id or '(not given)'}"
            )
        if recipe.nodes > 1:
            yield from _check_rpc(recipe)

    def render(self, recipe: Recipe, placement: Placement, context: RenderContext) -> tuple[RankSpec, ...]:
        head = _head(recipe, placement, context)
        workers = (_worker(head, recipe, placement, context, rank) for rank in range(1, placement.world))
        return (_patient(head, recipe, placement), *workers)

    def read(self, line: str) -> LogEvent | None:
        return dialect(self.name).read(line)


def _head(recipe: Recipe, placement: Placement, context: RenderContext) -> RankSpec:
    node = placement.head
    docker = recipe.engine.runtime is Runtime.DOCKER
    program = () if docker else process_program(recipe, files_at(recipe, context, node, 0))
    return RankSpec(
        rank=0,
        node=node,
        argv=(*program, *option_words(_options(recipe, placement, context))),
        env={**OFFLINE, "LLAMA_ARG_OFFLINE": "1", **{k: str(v) for k, v in recipe.env.items()}},
        runtime=recipe.engine.runtime,
        image=recipe.engine.image,
        files=(script(LAUNCHER),) if not docker and recipe.engine.venv and not recipe.engine.entrypoint else (),
        entrypoint=docker_entrypoint(recipe, DOCKER_PROGRAM) if docker else None,
        mounts=_mounts(recipe, node, context) if docker else disk_cache_mounts(recipe),
        secrets={"LLAMA_API_KEY": context.api_key} if context.api_key else {},
        listens=((context.bind, context.port),),
        gpu=not (runs_on_cpu(recipe) or context.simulated),
        rdma=uses_rdma(placement, context, 0),
        shm_bytes=recipe.shm_bytes or SHM_BYTES,
    )


def process_program(recipe: Recipe, files: str) -> tuple[str, ...]:
    """`llama-server` from the node's PATH; with a venv, the server inside its xllamacpp wheel through our launcher.

    files: the folder of the rank's files, where the launcher is.
    """
    if recipe.engine.entrypoint:
        return recipe.engine.program
    venv = recipe.engine.venv.rstrip("/")
    return (f"{venv}/bin/python", f"{files}/{LAUNCHER}") if venv else ("llama-server",)


def runs_on_cpu(recipe: Recipe) -> bool:
    """A recipe that offloads no layer, or names no device, runs on the CPU."""
    flags = merge_options({}, recipe.flags)
    layers = flags.get("n-gpu-layers", flags.get("gpu-layers"))
    return str(layers) == "0" or flags.get("device") == "none"


def _options(recipe: Recipe, placement: Placement, context: RenderContext) -> Options:
    s, flags = recipe.serving, merge_options({}, recipe.flags)
    ours: Options = {
        "model": _gguf(recipe, placement.head, context),
        "alias": served_name(recipe),
        "host": context.bind,
        "port": context.port,
        "ctx-size": s.context * max(s.sequences, 1) or None,  # shared by all slots, unlike vLLM's max-model-len
        "parallel": s.sequences or None,
        "batch-size": s.batched_tokens or None,
        "cache-ram": s.host_cache // MIB if s.host_cache else None,
        "slot-save-path": f"{disk_cache_seen(recipe)}/" if s.disk_cache else None,
        **dict.fromkeys(KV_OPTIONS, s.kv_dtype or None),
        **({} if runs_on_cpu(recipe) or flags.keys() & {"load-mode", "mmap", "no-mmap"} else _unmapped(recipe)),
        **_remote_options(recipe, placement),
        "embedding": recipe.model.kind is ModelKind.EMBEDDING or None,
        "rerank": recipe.model.kind is ModelKind.RERANK or None,
        "jinja": True,
        "metrics": True,
    }
    own = read_definition("llama-cpp").per_rank
    return merge_options(ours, {name: value for name, value in flags.items() if name not in own})


def _unmapped(recipe: Recipe) -> Options:
    """mmap cache and CUDA buffers are the same memory on GB10: a mapped model counts twice."""
    build = re.fullmatch(r"b(\d+)", recipe.engine.version)
    return {"mmap": False} if build and int(build[1]) < LOAD_MODE_SINCE else {"load-mode": "none"}


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
    own = (Mount(host, inside, read_only=True), *disk_cache_mounts(recipe))
    return (*own, *(parse_mount(text) for text in recipe.mounts))


def _remote_options(recipe: Recipe, placement: Placement) -> Options:
    """All layers go to the devices, its own and the workers'; a recipe's `tensor-split` counts the workers first."""
    if placement.world == 1:
        return {}
    says = merge_options({}, recipe.flags).keys() & {"gpu-layers", "n-gpu-layers", "ngl"}
    return {"rpc": ",".join(_servers(recipe, placement)), "n-gpu-layers": None if says else ALL_LAYERS}


def _patient(head: RankSpec, recipe: Recipe, placement: Placement) -> RankSpec:
    """Rank 0 with workers: it starts its server when all of them listen."""
    if placement.world == 1:
        return head
    words = ("-c", _PATIENT, _WAIT, " ".join(_servers(recipe, placement)), *(head.entrypoint or ()), *head.argv)
    if head.runtime is Runtime.DOCKER:
        return replace(head, argv=words, entrypoint=("sh",), engine_argv=head.argv)
    return replace(head, argv=("sh", *words), engine_argv=head.argv)


def _servers(recipe: Recipe, placement: Placement) -> tuple[str, ...]:
    return tuple(f"{placement.fabric[node].address}:{recipe.serving.master_port}" for node in placement.nodes[1:])


def _worker(head: RankSpec, recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> RankSpec:
    """Rank k. It needs no weights: the head sends them, and `-c` keeps large tensors on its disk for the next time."""
    node = placement.nodes[rank]
    docker = recipe.engine.runtime is Runtime.DOCKER
    cache = f"{context.paths[node].cache}/llama.cpp"
    address, port = placement.fabric[node].address, recipe.serving.master_port
    words = ("-c", _FIND, _beside(recipe), "-H", address, "-p", str(port), "-c")
    env = {**head.env, "LLAMA_CACHE": CACHE_AT if docker else cache}
    return replace(
        head,
        rank=rank,
        node=node,
        argv=words if docker else ("sh", *words),
        env=env,
        entrypoint=("sh",) if docker else None,
        mounts=(Mount(cache, CACHE_AT), *(parse_mount(text) for text in recipe.mounts)) if docker else (),
        secrets={},
        files=(),
        listens=((address, port),),
        rdma=uses_rdma(placement, context, rank),
        engine_argv=(),
    )


def _beside(recipe: Recipe) -> str:
    """The folder of the recipe's llama-server, for its rpc-server is in the same folder."""
    program = recipe.engine.entrypoint[0] if recipe.engine.entrypoint else ""
    usual = "/app" if recipe.engine.runtime is Runtime.DOCKER else "/usr/local/bin"
    return str(PurePosixPath(program).parent) if program.startswith("/") else usual


def _check_rpc(recipe: Recipe) -> Iterator[Finding]:
    yield ENG["ENG023"].on(
        "nodes",
        f"every worker's rpc-server listens on its fabric address, port {recipe.serving.master_port}",
        title="llama.cpp's RPC has no authentication and no encryption",
        cause="anyone who reaches that port can read and write the worker's memory through it",
        fix="keep the fabric a cable or a switch of its own, with no way to it from outside",
    )
    if recipe.engine.runtime is Runtime.PROCESS and recipe.engine.venv and not recipe.engine.entrypoint:
        yield ENG["ENG023"].on(
            "engine.venv",
            f"venv: {recipe.engine.venv}; its server prints `RPC not supported in this build`",
            title="the xllamacpp wheel is built without RPC",
            cause="",
            fix="build llama.cpp with -DGGML_RPC=ON, leave venv out, and have llama-server and rpc-server in PATH, "
            "or name llama-server's full path in engine.entrypoint",
            severity=BLOCK,
        )
    if runs_on_cpu(recipe):
        yield ENG["ENG023"].on(
            "flags",
            "the recipe offloads no layer, or names no device",
            title="workers would get nothing to do",
            cause="llama.cpp counts a worker as a device, and without offloading all layers stay with the head's CPU",
            fix="remove n-gpu-layers: 0 and device: none, or set nodes: 1",
            severity=BLOCK,
        )
