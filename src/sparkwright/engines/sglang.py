"""SGLang over its own multi-node mode: the same command on every node, distinguished by `--node-rank`.

Read for 0.5.10, 0.5.12, 0.5.16, 0.5.20 and 0.5.23: sglang/srt/server_args.py (later arg_groups/), launch_server.py,
entrypoints/engine.py.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from sparkwright.domain.command import Secret
from sparkwright.domain.deployment import LogEvent
from sparkwright.domain.engine import EngineDefinition
from sparkwright.domain.finding import Finding
from sparkwright.domain.ledger import Counts
from sparkwright.domain.plan import Placement, RankFile, RankSpec
from sparkwright.domain.recipe import ModelKind, Parallelism, Recipe, Runtime, Speculation
from sparkwright.engines.definitions import FromFile, read_definition
from sparkwright.engines.dialect import dialect
from sparkwright.engines.disk_cache import OF_HOST, disk_cache_seen
from sparkwright.engines.engine import PAGE, STOP, RenderContext, files_at, served_name
from sparkwright.engines.environment import LOOPBACK, OFFLINE, check_distributed, fabric
from sparkwright.engines.findings import ENG
from sparkwright.engines.launchers import script
from sparkwright.engines.mounts import caches, docker_entrypoint, model_word, rank_spec
from sparkwright.engines.mxfp4 import sglang_experts
from sparkwright.engines.options import Options, merge_options, option_words
from sparkwright.engines.sglang_pools import host_tier, windows
from sparkwright.engines.traits import Traits
from sparkwright.engines.traits_data import told_traits
from sparkwright.engines.version import is_since
from sparkwright.engines.weight_cache import PORT, keeper, keeps_weights, socket_folder

KEY_FILE = "sglang.yaml"
TIMEOUT = 1800  # seconds; the defaults (300) end a rank that still loads or compiles
ATTN_DP_SINCE = (0, 5, 23)  # before: --dp-size with --enable-dp-attention, which 0.5.23 calls deprecated
# Our words for a method (vLLM's) -> SGLang's algorithm. Others go through in capitals, as SGLang writes its names.
ALGORITHMS = {"mtp": "NEXTN", "draft_model": "STANDALONE"}
CHAINS = ("NEXTN", "EAGLE", "EAGLE3", "STANDALONE")
MODULE = ("-m", "sglang.launch_server")
KEEPER = ("-m", "sglang.srt.weight_cache.daemon")
_READY = "weight cache daemons on node"
KEEPS_SECRETS = "sglang_server.py"


def _no_replicas(split: Parallelism) -> tuple[str, ...]:
    why = "SGLang spans nodes with data parallelism only inside tp (--enable-dp-attention)"
    return (f"dp {split.dp}: {why}",) if split.dp > 1 else ()


def _no_disk_cache(recipe: Recipe) -> str:
    """The file backend of HiCache is in all lists of options from 0.5.12 on; it writes what leaves host memory."""
    if not is_since(recipe, 0, 5, 12):
        return "its file backend was not read before 0.5.12"
    return "" if recipe.serving.host_cache else OF_HOST


def _traits(made: EngineDefinition) -> Traits:
    return Traits(
        **told_traits(made),
        tier=host_tier,
        disk_cache=_no_disk_cache,
        windows=windows,
        experts=sglang_experts,
        choose=lambda texts: {"regex": f"({'|'.join(texts)})"},
        # psutil's available where CPU and GPU share memory (0.5.10 to 0.5.23); before it torch.cuda.mem_get_info
        counts=lambda recipe: Counts.AVAILABLE if is_since(recipe, 0, 5, 10) else Counts.FREE,
        refusals=_no_replicas,
    )


class Sglang:
    name = "sglang"
    metrics_page, stop, traits = PAGE, STOP, FromFile(_traits)

    def check(self, recipe: Recipe) -> Iterator[Finding]:
        yield from check_distributed(recipe, read_definition(self.name).per_rank)
        yield from _check_own(recipe)

    def render(self, recipe: Recipe, placement: Placement, context: RenderContext) -> tuple[RankSpec, ...]:
        return tuple(self._rank(recipe, placement, context, rank) for rank in range(placement.world))

    def read(self, line: str) -> LogEvent | None:
        return dialect(self.name).read(line)

    def _rank(self, recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> RankSpec:
        node = placement.nodes[rank]
        keyed = rank == 0 and context.api_key is not None
        words = rank_words(recipe, placement, context, rank)
        program = _program(recipe, node, context, files_at(recipe, context, node, rank) if keyed else "")
        spec = replace(
            rank_spec(recipe, placement, context, rank, environment(recipe, placement, context, rank)),
            argv=(*program, *words),
            entrypoint=docker_entrypoint(recipe, ("python3",)) if recipe.engine.runtime is Runtime.DOCKER else None,
            files=(script(KEEPS_SECRETS), key_file(context)) if keyed else (),
            listens=listens(recipe, placement, context, rank),
            engine_argv=words,
        )
        return _kept(spec, recipe, placement, context) if keeps_weights(recipe) else spec


def _kept(spec: RankSpec, recipe: Recipe, placement: Placement, context: RenderContext) -> RankSpec:
    """The rank as a client of a weight cache, and that: both find its sockets by the same variables."""
    folder, many = socket_folder(recipe, context, spec.node), placement.world > 1
    ends = {"SOCKET": "sock", "READY": "ready"}
    env = {f"SGLANG_WEIGHT_CACHE_{name}_TEMPLATE": f"{folder}/{{device_uuid}}.{end}" for name, end in ends.items()}
    head, port = placement.fabric[placement.head].address if many else "", recipe.serving.master_port + PORT
    meet = {"dist-init-method": f"tcp://{head}:{port}" if many else None, "timeout": TIMEOUT, "force": True}
    options = rank_options(recipe, placement, context, spec.rank) | {"config": None}
    spec = replace(spec, env={**spec.env, **env})
    met = ((head, port),) if many and spec.is_head else ()
    argv = (context.python(recipe, spec.node), *KEEPER, *option_words(options | meet))
    client = ("--weight-cache-mode", "client")
    words = (*spec.engine_words, *client)
    return replace(spec, argv=(*spec.argv, *client), engine_argv=words, keeper=keeper(spec, argv, _READY, folder, met))


def _program(recipe: Recipe, node: str, context: RenderContext, files: str) -> tuple[str, ...]:
    """The module, or with a key our wrapper around it; files: where that lies. A recipe's entrypoint is left alone."""
    docker = recipe.engine.runtime is Runtime.DOCKER
    if recipe.engine.entrypoint:
        return () if docker else recipe.engine.program
    python = () if docker else (context.python(recipe, node),)
    return (*python, *((f"{files}/{KEEPS_SECRETS}",) if files else MODULE))


def _check_own(recipe: Recipe) -> Iterator[Finding]:
    p, method, serving = recipe.parallelism, recipe.speculation.method, recipe.serving
    # check_server_args (0.5.10) and check_pipeline_parallel_compat (0.5.23)
    if p.pp > 1 and method:
        yield ENG["ENG024"].on(
            "parallelism.pp",
            f"pp {p.pp} with speculation.method {method}",
            fix=f"set tp: {p.tp * p.pp} and pp: 1, or leave speculation out",
        )
    if serving.kv_cache_bytes:
        yield ENG["ENG025"].on("serving.kv_cache_bytes", f"kv_cache_bytes: {serving.kv_cache_bytes}")
    # A variable that 0.5.12 does not read was taken for the switch.
    flags = merge_options({}, recipe.flags)
    off = any(name.startswith("disable-") and "cuda-graph" in name for name in flags)
    if recipe.nodes > 1 and not off and not any(name.startswith("cuda-graph-") for name in flags):
        yield ENG["ENG026"].on(
            "flags.disable-cuda-graph",
            "github.com/sgl-project/sglang/issues/19991; al-engr.com/minimax-sglang-debug.html: at 0 of 36 "
            "graphs for 34 minutes, SMs at 96 %, memory idle",
        )
    if serving.api_key_env and recipe.engine.entrypoint:
        yield ENG["ENG027"].on("engine.entrypoint", f"entrypoint: {' '.join(recipe.engine.entrypoint)}")


def rank_words(recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> tuple[str, ...]:
    return option_words(rank_options(recipe, placement, context, rank))


def rank_options(recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> Options:
    """All options of one rank: the same on all but for node rank, host, port and the head's key."""
    ours: Options = {
        "model-path": model_word(recipe, placement.nodes[rank], context),
        "served-model-name": served_name(recipe),
        "revision": recipe.model.revision or None,
    }
    ours |= _listening(recipe, placement, context, rank) | _sizes(recipe)
    ours |= _many_nodes(recipe, placement, rank) | _limits(recipe) | _speculation(recipe.speculation) | _parsers(recipe)
    own = read_definition("sglang").per_rank
    flags = {name: value for name, value in merge_options({}, recipe.flags).items() if name not in own}
    kind = {"enable-metrics": True, "is-embedding": recipe.model.kind is ModelKind.EMBEDDING or None}
    return merge_options(ours | kind, flags)


def key_file(context: RenderContext) -> RankFile:
    """SGLang reads no key from its environment; a file that its --config names keeps it out of argv."""
    key = context.api_key.reveal() if context.api_key else ""
    return RankFile(KEY_FILE, secret=Secret(json.dumps({"api-key": key})))


def listens(recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> tuple[tuple[str, int], ...]:
    """Addresses and ports that must be free on this rank's node."""
    if rank:
        return ((LOOPBACK, context.port),)
    api = ((context.bind, context.port),)
    many = placement.world > 1
    return (*api, (placement.fabric[placement.head].address, recipe.serving.master_port)) if many else api


def environment(recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> dict[str, str]:
    """Ours, then the recipe's over it; what identifies the rank stays ours."""
    node, many = placement.nodes[rank], placement.world > 1
    # Peers reach this rank at its fabric address, not at the default route's (srt/utils/network.py).
    address = {"SGLANG_HOST_IP": placement.fabric[node].address if many else LOOPBACK}
    return {
        **address,
        "HOST_IP": address["SGLANG_HOST_IP"],  # the same for what SGLang imports
        **(fabric(placement.fabric[node]) if many else {}),
        **OFFLINE,
        **caches(recipe, node, context, read_definition("sglang").caches),
        **({"SGLANG_HICACHE_FILE_BACKEND_STORAGE_DIR": disk_cache_seen(recipe)} if recipe.serving.disk_cache else {}),
        **{k: str(v) for k, v in recipe.env.items()},
        **address,
    }


def _listening(recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> Options:
    """A worker, too, opens a port: it answers /health with 200 whatever happens. Nobody but its own node needs that."""
    if rank:
        return {"host": LOOPBACK, "port": context.port}
    files = files_at(recipe, context, placement.head, rank)
    config = f"{files}/{KEY_FILE}" if context.api_key else None
    return {"host": context.bind, "port": context.port, "config": config}


def _sizes(recipe: Recipe) -> Options:
    """SGLang's tp counts all GPUs of a stage; data parallelism divides the attention inside it, EP the experts."""
    p = recipe.parallelism
    gpus = p.tp * p.dp
    attention: Options = {"dp-size": p.dp, "enable-dp-attention": True}
    if release(recipe.engine.version) >= ATTN_DP_SINCE:
        attention = {"attn-dp-size": p.dp}
    sizes: Options = {"tp-size": gpus if gpus > 1 else None, "pp-size": p.pp if p.pp > 1 else None}
    return sizes | (attention if p.dp > 1 else {}) | ({"ep-size": gpus} if p.ep else {})


def release(version: str) -> tuple[int, ...]:
    """`v0.5.12.post1` -> (0, 5, 12)."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _many_nodes(recipe: Recipe, placement: Placement, rank: int) -> Options:
    if placement.world == 1:
        return {}
    return {
        "nnodes": placement.world,
        "node-rank": rank,
        "dist-init-addr": f"{placement.fabric[placement.head].address}:{recipe.serving.master_port}",
        "dist-timeout": TIMEOUT,
        "watchdog-timeout": TIMEOUT,
    }


def _limits(recipe: Recipe) -> Options:
    """Zero and empty mean: leave it to the engine."""
    s = recipe.serving
    return {
        "context-length": s.context or None,
        "max-running-requests": s.sequences or None,
        "max-queued-requests": s.queue or None,
        "chunked-prefill-size": s.batched_tokens or None,
        "kv-cache-dtype": s.kv_dtype or None,
        "mem-fraction-static": s.memory_fraction or None,
        "enable-hierarchical-cache": True if s.host_cache else None,
        "hicache-size": max(1, s.host_cache // 10**9) if s.host_cache else None,  # GB of a rank
        "hicache-storage-backend": "file" if s.disk_cache else None,
    }


def _speculation(spec: Speculation) -> Options:
    """tokens: drafts a step. The recipe's options are SGLang's own without `speculative-`; `model` is the drafter."""
    if not spec.method:
        return {}
    algorithm = ALGORITHMS.get(spec.method, spec.method.upper())
    given = {f"speculative-{name}": value for name, value in merge_options({}, spec.options).items() if name != "model"}
    drafter = {"speculative-draft-model-path": spec.options.get("model")}
    return merge_options({"speculative-algorithm": algorithm} | drafter | _drafts(algorithm, spec.tokens), given)


def _drafts(algorithm: str, tokens: int) -> Options:
    """A chain of k drafts is k steps and k + 1 tokens to verify; n-grams and DFlash count the verified tokens."""
    if not tokens:
        return {}
    if algorithm in CHAINS:
        steps = {"speculative-num-steps": tokens, "speculative-eagle-topk": 1}
        return steps | {"speculative-num-draft-tokens": tokens + 1}
    if algorithm == "DSPARK":
        return {"speculative-dspark-block-size": tokens}
    return {"speculative-num-draft-tokens": tokens}


def _parsers(recipe: Recipe) -> Options:
    p = recipe.parsers
    return {
        "tokenizer-mode": p.tokenizer_mode or None,
        "tool-call-parser": p.tool or None,
        "reasoning-parser": p.reasoning or None,
        "chat-template": p.chat_template or None,
    }
