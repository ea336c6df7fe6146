"""vLLM with its own multi-node mode: `vllm serve` on every node, `--headless` on the workers, no Ray.

Read for 0.21.0. Ray is another engine.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sparkwright.domain.deployment import LogEvent
from sparkwright.domain.finding import Finding
from sparkwright.domain.plan import Placement, RankSpec
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.domain.units import GIB
from sparkwright.engines.definitions import FromFile, read_definition
from sparkwright.engines.dialect import dialect
from sparkwright.engines.disk_cache import disk_cache_seen
from sparkwright.engines.engine import PAGE, STOP, RenderContext, served_name
from sparkwright.engines.environment import LOOPBACK, OFFLINE, check_distributed, fabric
from sparkwright.engines.mounts import caches, docker_entrypoint, model_word, rank_spec
from sparkwright.engines.options import Options, compact_json, merge_options, option_name, option_words
from sparkwright.engines.vllm.releases import vllm_traits
from sparkwright.engines.weight_cache import PORT, keeper, keeps_weights, socket_folder

DP_RPC_PORT = 29550  # ParallelConfig.data_parallel_rpc_port, vLLM 0.21.0
# Options of `vllm preload` that decide which weights there are and in which layout (weight_cache/protocol.py, 0.33.0),
# and those without which the same configuration is not made. Options of the server are none of it.
_OF_WEIGHTS = (
    *("attention-backend", "attention-config", "block-size", "config-format", "dtype", "enable-eplb", "enforce-eager"),
    *("expert-placement-strategy", "hf-config-path", "hf-overrides", "kernel-config", "kv-cache-dtype-skip-layers"),
    *("language-model-only", "linear-backend", "load-format", "max-model-len", "model-impl"),
    *("model-loader-extra-config", "moe-backend", "quantization", "quantization-config", "safetensors-load-strategy"),
    *("skip-tokenizer-init", "tokenizer", "trust-remote-code"),
)
_LOADER = ("load-format", "model-loader-extra-config")
_LIMITS_OF_WEIGHTS = ("max-model-len", "kv-cache-dtype", "speculative-config")
_READY = "Weight cache daemon READY"


class Vllm:
    name = "vllm"
    metrics_page, stop, traits = PAGE, STOP, FromFile(lambda made: vllm_traits(made.name))

    def check(self, recipe: Recipe) -> Iterator[Finding]:
        return check_distributed(recipe, read_definition(self.name).per_rank)

    def render(self, recipe: Recipe, placement: Placement, context: RenderContext) -> tuple[RankSpec, ...]:
        return tuple(self._rank(recipe, placement, context, rank) for rank in range(placement.world))

    def read(self, line: str) -> LogEvent | None:
        return dialect(self.name).read(line)

    def _rank(self, recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> RankSpec:
        docker = recipe.engine.runtime is Runtime.DOCKER
        program = () if docker else process_program(recipe)
        spec = replace(
            rank_spec(recipe, placement, context, rank, environment(recipe, placement, context, rank)),
            argv=(*program, *rank_words(recipe, placement, context, rank)),
            entrypoint=docker_entrypoint(recipe, ("vllm",)) if docker else None,
            secrets={"VLLM_API_KEY": context.api_key} if context.api_key and rank == 0 else {},
            listens=listens(recipe, placement, context, rank),
        )
        if not keeps_weights(recipe):
            return spec
        words = preload_words(recipe, placement, context, rank)
        folder, met = socket_folder(recipe, context, spec.node), () if rank else _meets(recipe, placement)
        return replace(spec, keeper=keeper(spec, (*program, *words), _READY, folder, met))


def preload_words(recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> tuple[str, ...]:
    """`preload --model MODEL --flags...`: the same weights as the rank's own, in the same layout."""
    node, many = placement.nodes[rank], placement.world > 1
    flags = {
        name: value for name, value in merge_options({}, recipe.flags).items() if name.partition(".")[0] in _OF_WEIGHTS
    }
    ours: Options = {"model": model_word(recipe, node, context), "revision": recipe.model.revision or None}
    ours |= topology(recipe, placement, rank) | {"headless": None}
    ours |= {name: value for name, value in limits(recipe).items() if name in _LIMITS_OF_WEIGHTS}
    ours |= {"weight-cache-socket-dir": socket_folder(recipe, context, node)}
    ours |= {"weight-cache-master-port": recipe.serving.master_port + PORT if many else None}
    return ("preload", *option_words(merge_options(ours, flags)))


def _meets(recipe: Recipe, placement: Placement) -> tuple[tuple[str, int], ...]:
    """Ports of the head's keeper: of the model, and of a draft model."""
    port = recipe.serving.master_port + PORT
    address = placement.fabric[placement.head].address if placement.world > 1 else ""
    return ((address, port), (address, port + 1)) if address else ()


def process_program(recipe: Recipe) -> tuple[str, ...]:
    """`<venv>/bin/vllm`, or `vllm` from the node's PATH; a recipe's entrypoint takes its place."""
    if recipe.engine.entrypoint:
        return recipe.engine.program
    venv = recipe.engine.venv.rstrip("/")
    # Through the interpreter: the console script's first line breaks when a venv was moved or its path is long.
    return (f"{venv}/bin/python", "-m", "vllm.entrypoints.cli.main") if venv else ("vllm",)


def rank_words(recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> tuple[str, ...]:
    """`serve MODEL --flags...` of one rank: the same on all but for node rank, headless, host and port."""
    node = placement.nodes[rank]
    ours = identity(recipe) | listening(context, rank) | topology(recipe, placement, rank)
    return serve_words(_mapping(recipe, context, node), model_word(recipe, node, context), ours)


def _mapping(recipe: Recipe, context: RenderContext, node: str) -> Recipe:
    """The recipe with the loader that maps weights which are kept; without the process it reads files."""
    if not keeps_weights(recipe):
        return recipe
    own = {name: value for name, value in recipe.flags.items() if option_name(name).partition(".")[0] not in _LOADER}
    maps = {
        "load-format": "ipc_cache",
        "model-loader-extra-config": {"socket_dir": socket_folder(recipe, context, node)},
    }
    return replace(recipe, flags=own | maps)


def serve_words(recipe: Recipe, model: str, ours: Options) -> tuple[str, ...]:
    """ours: who the rank is and where the others are; limits, parsers and the recipe's flags follow."""
    own = read_definition("vllm").per_rank
    flags = {name: value for name, value in merge_options({}, recipe.flags).items() if name not in own}
    return ("serve", model, *option_words(merge_options(ours | limits(recipe) | parsers(recipe), flags)))


def identity(recipe: Recipe) -> Options:
    names = [served_name(recipe), *recipe.model.aliases]
    return {"served-model-name": names, "revision": recipe.model.revision or None}


def topology(recipe: Recipe, placement: Placement, rank: int) -> Options:
    return size_options(recipe) | (_many_nodes(recipe, placement, rank) if placement.world > 1 else {})


def size_options(recipe: Recipe) -> Options:
    parallel = recipe.parallelism
    return {
        "tensor-parallel-size": parallel.tp if parallel.tp > 1 else None,
        "pipeline-parallel-size": parallel.pp if parallel.pp > 1 else None,
        "data-parallel-size": parallel.dp if parallel.dp > 1 else None,
        "enable-expert-parallel": True if parallel.ep else None,
    }


def _many_nodes(recipe: Recipe, placement: Placement, rank: int) -> Options:
    return {
        "distributed-executor-backend": "mp",
        "nnodes": placement.world,
        "node-rank": rank,
        "master-addr": placement.fabric[placement.head].address,
        "master-port": recipe.serving.master_port,
        "headless": True if rank else None,
    }


def limits(recipe: Recipe) -> Options:
    """Zero and empty mean: leave it to the engine."""
    s = recipe.serving
    memory = s.host_cache if not s.disk_cache else 0
    return {
        "max-model-len": s.context or None,
        "max-num-seqs": s.sequences or None,
        "max-num-batched-tokens": s.batched_tokens or None,
        "max-num-queued-reqs": _in_flight(recipe) if s.queue else None,
        "kv-cache-dtype": s.kv_dtype or None,
        "gpu-memory-utilization": s.memory_fraction or None,
        "kv-cache-memory-bytes": s.kv_cache_bytes or None,
        # GiB of all ranks together, each of which is a node
        "kv-offloading-size": round(memory * recipe.nodes / GIB, 3) if memory else None,
        "kv-transfer-config": _tiers(recipe) if s.disk_cache else None,
        "speculative-config": speculative_config(recipe),
    }


def _tiers(recipe: Recipe) -> str:
    """Host memory, and files below it; blocks that a disk does not give back are computed again (0.33.0)."""
    files = {"type": "fs", "root_dir": disk_cache_seen(recipe)}
    memory = recipe.serving.host_cache * recipe.nodes
    extra = {"spec_name": "TieringOffloadingSpec", "cpu_bytes_to_use": memory, "secondary_tiers": [files]}
    return compact_json(
        {
            "kv_connector": "OffloadingConnector",
            "kv_role": "kv_both",
            "kv_load_failure_policy": "recompute",
            "kv_connector_extra_config": extra,
        }
    )


def _in_flight(recipe: Recipe) -> int:
    """Requests that wait or run, which is what vLLM's limit counts (config/scheduler.py, 0.33.0)."""
    places = recipe.serving.sequences or vllm_traits().limits(recipe, True)[1]
    return recipe.parallelism.dp * places + recipe.serving.queue


def speculative_config(recipe: Recipe) -> str | None:
    spec = recipe.speculation
    if not spec.method:
        return None
    config: dict[str, Any] = {"method": spec.method}
    config |= {"num_speculative_tokens": spec.tokens} if spec.tokens else {}
    return compact_json(config | dict(spec.options))


def parsers(recipe: Recipe) -> Options:
    p = recipe.parsers
    return {
        "tokenizer-mode": p.tokenizer_mode or None,
        "tool-call-parser": p.tool or None,
        "enable-auto-tool-choice": True if p.tool else None,
        "reasoning-parser": p.reasoning or None,
        "chat-template": p.chat_template or None,
    }


def listening(context: RenderContext, rank: int) -> Options:
    """Address and port of the API, which only the head has."""
    return {} if rank else {"host": context.bind, "port": context.port}


def listens(recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> tuple[tuple[str, int], ...]:
    """Addresses and ports that must be free on this rank's node."""
    if rank:
        return ()
    api = ((context.bind, context.port),)
    if placement.world == 1:
        return api
    master = placement.fabric[placement.head].address
    rpc = ((master, DP_RPC_PORT),) if recipe.parallelism.dp > 1 else ()
    return (*api, (master, recipe.serving.master_port), *rpc)


def environment(recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> dict[str, str]:
    """Ours, then the recipe's over it; what identifies the rank stays ours."""
    node, many = placement.nodes[rank], placement.world > 1
    # Peers reach this rank at its fabric address, not at the default route's; without peers nothing beyond loopback.
    address = {"VLLM_HOST_IP": placement.fabric[node].address if many else LOOPBACK}
    return {
        **address,
        **(fabric(placement.fabric[node]) if many else {}),
        **OFFLINE,
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_ENGINE_READY_TIMEOUT_S": "3600",  # 600 s are less than a cold start of a 1M profile
        **caches(recipe, node, context, read_definition("vllm").caches),
        **{k: str(v) for k, v in recipe.env.items()},
        **address,
    }
