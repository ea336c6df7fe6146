"""SGLang's command line and environment per rank. Read for 0.5.10 to 0.5.23: see __init__.py."""

import json
import re

from sparkwright.domain.command import Secret
from sparkwright.domain.plan import Placement, RankFile
from sparkwright.domain.recipe import Recipe, Speculation
from sparkwright.engines.engine import RenderContext, files_at, served_name
from sparkwright.engines.environment import LOOPBACK, OFFLINE, fabric
from sparkwright.engines.mounts import caches, model_word
from sparkwright.engines.options import Options, merge, option_words

KEY_FILE = "sglang.yaml"
TIMEOUT = 1800  # seconds; the defaults (300) end a rank that still loads or compiles
ATTN_DP_SINCE = (0, 5, 23)  # before: --dp-size with --enable-dp-attention, which 0.5.23 calls deprecated
CACHES = {
    "SGLANG_CACHE_DIR": "sglang",
    "SGLANG_DG_CACHE_DIR": "deep_gemm",
    "TRITON_CACHE_DIR": "triton",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "FLASHINFER_WORKSPACE_BASE": "flashinfer",
    "TILELANG_CACHE_DIR": "tilelang",
    "CUDA_CACHE_PATH": "cuda",
}
# Set per rank by sparkwright. config: it is how the key gets to the engine, and SGLang takes one such file only.
PER_RANK = (
    *("nnodes", "node-rank", "dist-init-addr", "nccl-init-addr", "host", "port", "api-key", "admin-api-key"),
    *("config", "use-ray"),
)
# Our words for a method (vLLM's) -> SGLang's algorithm. Others go through in capitals, as SGLang writes its names.
ALGORITHMS = {"mtp": "NEXTN", "draft_model": "STANDALONE"}
_CHAINS = ("NEXTN", "EAGLE", "EAGLE3", "STANDALONE")


def rank_words(recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> tuple[str, ...]:
    """All options of one rank: the same on all but for node rank, host, port and the head's key."""
    model = {"model-path": model_word(recipe, placement.nodes[rank], context)}
    ours = model | _identity(recipe) | _listening(recipe, placement, context, rank) | _sizes(recipe)
    ours |= _many_nodes(recipe, placement, rank) | _limits(recipe) | _speculation(recipe.speculation) | _parsers(recipe)
    flags = {name: value for name, value in merge({}, recipe.flags).items() if name not in PER_RANK}
    return option_words(merge(ours | {"enable-metrics": True}, flags))


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
        **caches(recipe, node, context, CACHES),
        **{k: str(v) for k, v in recipe.env.items()},
        **address,
    }


def _identity(recipe: Recipe) -> Options:
    return {"served-model-name": served_name(recipe), "revision": recipe.model.revision or None}


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
        "chunked-prefill-size": s.batched_tokens or None,
        "kv-cache-dtype": s.kv_dtype or None,
        "mem-fraction-static": s.memory_fraction or None,
    }


def _speculation(spec: Speculation) -> Options:
    """tokens: drafts a step. The recipe's options are SGLang's own without `speculative-`; `model` is the drafter."""
    if not spec.method:
        return {}
    algorithm = ALGORITHMS.get(spec.method, spec.method.upper())
    given = {f"speculative-{name}": value for name, value in merge({}, spec.options).items() if name != "model"}
    drafter = {"speculative-draft-model-path": spec.options.get("model")}
    return merge({"speculative-algorithm": algorithm} | drafter | _drafts(algorithm, spec.tokens), given)


def _drafts(algorithm: str, tokens: int) -> Options:
    """A chain of k drafts is k steps and k + 1 tokens to verify; n-grams and DFlash count the verified tokens."""
    if not tokens:
        return {}
    if algorithm in _CHAINS:
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
