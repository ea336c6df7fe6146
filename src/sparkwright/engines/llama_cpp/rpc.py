"""llama.cpp over several nodes: `rpc-server` shares each worker's devices with the head, which alone reads the weights.

The protocol has no authentication (its README: never on an open network), so a worker listens on its node's fabric
address and nowhere else. Read for: tools/rpc and ggml/src/ggml-rpc of the source in the llama-cpp-python sdist 0.3.36,
tested with its binaries.
"""

from dataclasses import replace
from pathlib import PurePosixPath

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.plan import Mount, Placement, RankSpec
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.engines.engine import RenderContext
from sparkwright.engines.findings import ENG
from sparkwright.engines.mounts import CACHE_AT, parse_mount
from sparkwright.engines.options import Options, merge

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


def head_options(recipe: Recipe, placement: Placement) -> Options:
    """All layers go to the devices, its own and the workers'; a recipe's `tensor-split` counts the workers first."""
    if placement.world == 1:
        return {}
    servers = _servers(recipe, placement)
    given = merge({}, recipe.flags)
    says = any(name in given for name in ("gpu-layers", "n-gpu-layers", "ngl"))
    return {"rpc": ",".join(servers), "n-gpu-layers": None if says else ALL_LAYERS}


def patient(head: RankSpec, recipe: Recipe, placement: Placement) -> RankSpec:
    """Rank 0 with workers: it starts its server when all of them listen."""
    if placement.world == 1:
        return head
    words = ("-c", _PATIENT, _WAIT, " ".join(_servers(recipe, placement)), *(head.entrypoint or ()), *head.argv)
    if head.runtime is Runtime.DOCKER:
        return replace(head, argv=words, entrypoint=("sh",), engine_argv=head.argv)
    return replace(head, argv=("sh", *words), engine_argv=head.argv)


def _servers(recipe: Recipe, placement: Placement) -> tuple[str, ...]:
    return tuple(f"{placement.fabric[node].address}:{recipe.serving.master_port}" for node in placement.nodes[1:])


def worker(head: RankSpec, recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> RankSpec:
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
        listens=((address, port),),
        rdma=rdma(placement, context, rank),
        engine_argv=(),
    )


def rdma(placement: Placement, context: RenderContext, rank: int) -> bool:
    """Builds that found libibverbs speak RDMA among themselves without an option."""
    return placement.world > 1 and bool(placement.fabric[placement.nodes[rank]].hcas) and not context.simulated


def _beside(recipe: Recipe) -> str:
    """The folder of the recipe's llama-server, for its rpc-server is in the same folder."""
    program = recipe.engine.entrypoint[0] if recipe.engine.entrypoint else ""
    usual = "/app" if recipe.engine.runtime is Runtime.DOCKER else "/usr/local/bin"
    return str(PurePosixPath(program).parent) if program.startswith("/") else usual


def check_rpc(recipe: Recipe, offloads_nothing: bool) -> tuple[Finding, ...]:
    """ENG023, only for recipes over several nodes."""
    if recipe.nodes == 1:
        return ()
    wheel = recipe.engine.runtime is Runtime.PROCESS and recipe.engine.venv and not recipe.engine.entrypoint
    return (_open(recipe), *((_no_rpc(recipe),) if wheel else ()), *((_useless(),) if offloads_nothing else ()))


def _open(recipe: Recipe) -> Finding:
    return ENG["ENG023"].on(
        "nodes",
        f"every worker's rpc-server listens on its fabric address, port {recipe.serving.master_port}",
        title="llama.cpp's RPC has no authentication and no encryption",
        cause="anyone who reaches that port can read and write the worker's memory through it",
        fix="keep the fabric a cable or a switch of its own, with no way to it from outside",
    )


def _no_rpc(recipe: Recipe) -> Finding:
    return ENG["ENG023"].on(
        "engine.venv",
        f"venv: {recipe.engine.venv}; its server prints `RPC not supported in this build`",
        title="the xllamacpp wheel is built without RPC",
        cause="",
        fix="build llama.cpp with -DGGML_RPC=ON, leave venv out, and have llama-server and rpc-server in PATH, "
        "or name llama-server's full path in engine.entrypoint",
        severity=Severity.BLOCK,
    )


def _useless() -> Finding:
    return ENG["ENG023"].on(
        "flags",
        "the recipe offloads no layer, or names no device",
        title="workers would get nothing to do",
        cause="llama.cpp counts a worker as a device, and without offloading all layers stay with the head's CPU",
        fix="remove n-gpu-layers: 0 and device: none, or set nodes: 1",
        severity=Severity.BLOCK,
    )
