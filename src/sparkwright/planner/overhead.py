"""An engine's memory besides weights and KV pool, line by line, and the part that vLLM pays out of its memory fraction.

vLLM takes its snapshot of free memory once its processes and NCCL are up, so these are outside; what it loads and
computes with afterwards is inside, CUDA graphs since 0.21.0 (v1/worker/gpu_worker.py, read in 0.19.0 to 0.33.0). On a
GB10 it measures with MemAvailable, so what its processes take on the CPU's side while it profiles is inside too.

Activations are the peak that vLLM measures in its profiling run (v1/worker/gpu_model_runner.py profile_run and
_dummy_sampler_run, v1/worker/workspace.py, workspace_shapes of layers/fused_moe, layers/deepseek_v4_attention.py,
sparse_attn_indexer.py; 0.21.0 and 0.33.0): tensors that live at once. The shared workspace stays, the largest of
encoder, layers, drafts and sampler comes on top.
"""

from collections.abc import Iterator

from sparkwright.domain.ledger import (
    ACTIVATIONS,
    COMMUNICATION,
    CONTEXT,
    GRAPHS,
    KEEPER,
    LOADER,
    LOADING,
    OVERHEAD,
    LedgerLine,
    Origin,
)
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import GIB, MIB, gib
from sparkwright.domain.values import dataclass
from sparkwright.engines.catalog import traits
from sparkwright.engines.options import flag_value, number
from sparkwright.engines.tables import loader
from sparkwright.engines.traits import Range, Traits
from sparkwright.engines.version import is_since
from sparkwright.engines.weight_cache import keeps_weights
from sparkwright.planner import limits
from sparkwright.planner.on_load import held_share
from sparkwright.planner.parts import Spread, drafter, drafts, missing, model_parts, part_share

UNKNOWN_NEEDS = "not known: a start shows it; then write engine.memory into the recipe"
_NUMBER = 2  # bytes of a BF16 number
# Of each logit: BF16 as computed, FP32 as sampled from, its probabilities, and the noise that draws from them.
_LOGIT = 2 + 4 + 4 + 4
# Model Runner V2 (v1/worker/gpu/sample, 0.33.0) draws from the FP32 copy itself, and counts words of each sequence for
# penalties from the start: 4 bytes a word, and a bit.
_LOGIT_V2, _COUNTED = 2 + 4, 4 + 1 / 8
_DRAFTED_LOGIT = 4  # more where drafts are checked: the profile makes logits for one draft of each sequence, too
# An encoder sees 4 patches for each token that it makes. Bytes of a patch in its widest layer, for the usual one of
# 1,152 numbers with an MLP of 4,304 (Qwen3-VL's config.json): on every rank the picture in FP32 and BF16 (9 KiB),
# residual streams (7), what the decoder gets (7); split over ranks the MLP before and after its activation. 40 KiB in
# all, as runs with one picture took; those with several in a batch, which are joined, took 64.
_PATCHES = 4
_WHOLE, _SPLIT, _JOINED = 23 * 1024, 17 * 1024, 24 * 1024
_PICTURE = 16384  # tokens of the largest picture that the families with merged patches take; all of it is one batch
_SPARSE_CHUNK = 4  # requests whose compressed entries are gathered at once (PREFILL_CHUNK_SIZE)
_PADDED, _PADDED_DIRECT = (64, 128), (16, 32, 64, 128)  # heads that FlashMLA and FlashInfer's SM120 kernels work on
_SPARSE_LOGITS = 512  # MiB, VLLM_SPARSE_INDEXER_MAX_LOGITS_MB's default
_GATHERED = 5  # times max_model_len, the rows that sparse MLA with an FP8 cache expands for a prefill
_LATENT_ROWS = 64 * 1024  # rows of a latent that plain MLA's chunked prefill expands at once, at most
_STREAMS = 4
_AUXILIARY = 5  # hidden states of the target that a draft model of its own is fed with
_NCCL = Range(COMMUNICATION, 0.5, 0.2, 1.5, "NCCL's channels and buffers, made before the engine looks what is free")
# Not measured on a GB10: CUDA's context and kernels once more, and on one pool what Python and torch take.
KEEPERS = Range(KEEPER, 1.5, 0.5, 4.0, "it keeps the weights, which count once, with a CUDA context of its own")
# On discrete GPUs (our captures): 0.29-0.32 alone, 0.13-0.32 where NCCL loaded most kernels before the snapshot.
# What is gone before anything is loaded: 139.11-139.13 GiB of 139.8 were free on nine starts of SGLang 0.5.12, 138.84
# with NCCL.
_CREATED = {
    False: Range(CONTEXT, 0.67, 0.5, 0.9, "the context of CUDA on a GPU of its own"),
    True: Range(CONTEXT, 0.96, 0.6, 1.3, "the context of CUDA on a GPU of its own, and NCCL"),
}
_KERNELS = {
    False: Range(CONTEXT, 0.30, 0.25, 0.35, "kernels loaded and libraries' workspaces, on five starts of 0.21.0"),
    True: Range(CONTEXT, 0.17, 0.10, 0.35, "as on one GPU, less what NCCL had loaded, on three starts of 0.21.0"),
}
# On a GB10 the tightest of several ranks sets the pool for all, and they differ by 0.5 to 3.2 GiB. What 60 published
# starts took beyond weights and the other lines (scripts/planner/fresh) was in these ranges in 53; below zero the other
# lines were planned too large.
_UNIFIED = {
    False: Range(CONTEXT, 1.5, -1.0, 5.5, "kernels, and what the processes grow by on the CPU's side of the one pool"),
    True: Range(CONTEXT, 1.7, -2.0, 5.0, "as on one node, on the tightest of the ranks: they differ by up to 3.2 GiB"),
}
_GRAPH = (1 * MIB, 0.1 * MIB)  # bytes of a captured graph: at least, and for each layer of the model
# Model Runner V2 estimates from the largest captures: 0.66, 0.67 and 0.81 GiB for 51 sizes of models with 36, 12 and 9
# layers, 0.11 for 4 sizes of one with 64 (0.33.0, one H200).
_GRAPH_V2 = 6 * MIB
# The first capture, with NCCL's buffers where there are ranks. A GB10's own measure of it sees the page cache move too:
# 0.9, 1.4, 2.0, 2.4 and 5.1 GiB in all on five multi-node engines, once nearly all of the budget.
_FIRST = {(False, False): 0.04, (False, True): 0.04, (True, False): 0.24, (True, True): 1.6}
# On one GB10 the engine's line was 0.3 to 1.7 GiB, 1.25 to 1.73 on three starts of one configuration.
_FIRST_MOST = {(False, False): 0.2, (False, True): 1.0, (True, False): 0.2, (True, True): 4.5}
_REPACKED = ("nvfp4", "mxfp4", "int4", "int8", "fp8")


@dataclass(frozen=True, slots=True)
class Peak:
    """Bytes. workspace: kept; encoder, layers, sampler: of which the largest comes on top."""

    workspace: float
    encoder: float
    layers: float
    sampler: float

    @property
    def bytes(self) -> float:
        return max(self.encoder, self.workspace + max(self.layers, self.sampler))

    @property
    def why(self) -> str:
        named = {"encoder": self.encoder, "layers": self.layers, "sampler": self.sampler}
        parts = ", ".join(f"{gib(size)} {name}" for name, size in named.items() if size > MIB)
        kept = f"{gib(self.workspace)} workspace and the largest of " if self.workspace else "the largest of "
        return kept + parts


def rank_peak(recipe: Recipe, shape: ModelShape, unified: bool = True) -> Peak:
    """The peak of the fullest rank, at the batch that the engine profiles with."""
    tokens = limits.batched_tokens(recipe, unified)
    # One buffer for all that need one, as large as the largest wants it, and the sampler's tables
    tables = limits.sequences(recipe, unified) * shape.vocab * _COUNTED if traits(recipe).second_runner(recipe) else 0.0
    return Peak(
        workspace=max(_experts(recipe, shape, tokens), _sparse(recipe, shape, tokens, unified)) + tables,
        encoder=_encoder(recipe, shape, tokens),
        layers=_layers(recipe, shape, tokens) + _streams(recipe, shape, tokens, unified),
        sampler=_sampler(recipe, shape, tokens, unified),
    )


def _sampler(recipe: Recipe, s: ModelShape, tokens: int, unified: bool) -> float:
    """Logits of every sequence over the whole vocabulary, and copies of the last hidden states."""
    rows = min(limits.sequences(recipe, unified), tokens)
    if traits(recipe).second_runner(recipe):
        return rows * s.vocab * _LOGIT_V2 + tokens * s.hidden * _NUMBER
    each = _LOGIT + (_DRAFTED_LOGIT if recipe.speculation.method else 0)
    return rows * s.vocab * each + 2 * tokens * s.hidden * _NUMBER


def _experts(recipe: Recipe, s: ModelShape, tokens: int) -> float:
    """Every token's copy for each of its experts, before and after the activation.

    Marlin takes no more than that (fused_moe/experts/marlin_moe.py, workspace_shapes, 0.26.0).
    """
    if not s.experts:
        return 0.0
    p = recipe.parallelism
    inner = s.expert_intermediate / (1 if p.ep else p.tp * p.dp)
    outer = s.expert_hidden or s.hidden
    wide = inner if s.ungated else 2 * inner
    return tokens * s.experts_per_token * (max(inner, outer) + max(wide, outer)) * _NUMBER


def _sparse(recipe: Recipe, s: ModelShape, tokens: int, unified: bool) -> float:
    """Bytes that sparse attention and MLA's prefill expand from the cache."""
    context = recipe.serving.context or s.positions
    if (s.compress or s.index_layers) and _reads_directly(recipe, unified):
        return 0.0
    if s.compress:
        ratio = min((r for r in s.compress if r > 1), default=1)
        return _SPARSE_CHUNK * (context / ratio + s.window + tokens) * s.head_dim * _NUMBER
    if s.latent and s.index_layers:
        return (_GATHERED * context + tokens * s.heads / recipe.parallelism.tp) * s.latent * _NUMBER
    return min(8 * context, _LATENT_ROWS) * s.latent * _NUMBER if s.latent else 0.0


def _layers(recipe: Recipe, s: ModelShape, tokens: int) -> float:
    """The widest moment of a layer, next to the residual, its input and its output; and a draft's inputs."""
    tp = recipe.parallelism.tp
    heads = s.heads / tp
    kv = s.kv_heads / min(tp, s.kv_heads)
    attention = heads * (s.head_dim + (s.value_dim or s.head_dim)) + 2 * kv * s.head_dim
    dense = 3 * s.intermediate / tp if s.dense_layers > 0 else 0
    shared = 3 * s.shared_experts * s.expert_intermediate / tp
    state = (2 * s.state_conv_width + 3 * s.state_width) / tp if s.state_layers else 0
    width = 3 * s.hidden + max(attention, dense, shared, state)
    return tokens * width * _NUMBER + _indexer(recipe, s) + _drafts(recipe, s, tokens)


def _streams(recipe: Recipe, s: ModelShape, tokens: int, unified: bool) -> float:
    """Hyper-connections: the streams before and after a layer; the padded output of attention.

    In eager mode the frames that call layer and kernel keep the ones before those, too (our capture of V4-Flash).
    """
    if not s.compress:
        return 0.0
    padded = _PADDED_DIRECT if _reads_directly(recipe, unified) else _PADDED
    heads = next((n for n in padded if n >= s.heads / recipe.parallelism.tp), s.heads)
    kept = 4 if limits.is_eager(recipe) else 2
    return tokens * (kept * _STREAMS * s.hidden + heads * s.head_dim) * _NUMBER


def _reads_directly(recipe: Recipe, unified: bool) -> bool:
    """True if FlashInfer attends to a sparse cache directly: the choice for a GB10 since 0.24.0 (its SM120 kernels)."""
    asked = str(flag_value(recipe, "attention-backend") or "").upper()
    return unified and is_since(recipe, 0, 24) and "FLASHMLA" not in asked


def _indexer(recipe: Recipe, s: ModelShape) -> float:
    if not (s.index_layers or s.compress):
        return 0.0
    asked = number(recipe.env.get("VLLM_SPARSE_INDEXER_MAX_LOGITS_MB"))
    return (asked or _SPARSE_LOGITS) * MIB


def _drafts(recipe: Recipe, s: ModelShape, tokens: int) -> float:
    if drafter(recipe, s):
        return tokens * _AUXILIARY * s.hidden * _NUMBER
    kept = (_STREAMS if s.compress else 1) + 1  # the target's states, and beside them the token that they led to
    return tokens * kept * s.hidden * _NUMBER if drafts(recipe, s) else 0.0


def _encoder(recipe: Recipe, s: ModelShape, tokens: int) -> float:
    """vLLM profiles an encoder with as many tokens as it batches, and never less than its largest picture."""
    text_only = flag_value(recipe, "language-model-only") or flag_value(recipe, "skip-mm-profiling")
    if not s.senses or text_only:
        return 0.0
    picture = min(_PICTURE, recipe.serving.context or _PICTURE)
    ranks = 1 if flag_value(recipe, "mm-encoder-tp-mode") == "data" else recipe.parallelism.tp
    each = _WHOLE + _SPLIT / ranks + (_JOINED if tokens > picture else 0)
    return max(tokens, picture) * _PATCHES * each


def spread(found: Peak) -> tuple[float, float]:
    """low, high: kernels differ in what they keep; an encoder's widths are not in a model's dimensions."""
    unsure = max(0.0, found.encoder - found.workspace)
    return 0.85 * found.bytes - 0.3 * unsure, 1.25 * found.bytes + 0.5 * unsure + 0.2 * GIB


def overhead(recipe: Recipe, shape: ModelShape | None, unified: bool = True) -> tuple[LedgerLine, ...]:
    """The lines of one rank. unified: CPU and GPU share the pool, as on a GB10."""
    engine, whole = traits(recipe), traits(recipe).whole
    if engine.opaque:
        rest = recipe.engine.memory
        why = "the rest of engine.memory" if rest else UNKNOWN_NEEDS
        return (LedgerLine(OVERHEAD, 0, Origin.ASSUMED, why, known=bool(rest)),)
    return (whole.line,) if whole else (*_started(recipe, unified), *_inside(recipe, shape, unified))


def before(unified: bool, several: bool = False) -> tuple[int, int, int]:
    """Bytes that an engine's own processes have taken when it looks what is free; the least and the most of it."""
    line = Traits().processes.line if unified else _CREATED[several].line
    return line.bytes, line.low or 0, line.high or 0


def _started(recipe: Recipe, unified: bool) -> Iterator[LedgerLine]:
    """Memory taken before the engine measures free memory."""
    if unified:
        yield traits(recipe).processes.line
    if recipe.parallelism.world_size > 1:
        yield _NCCL.line
    if keeps_weights(recipe):
        yield KEEPERS.line


def _inside(recipe: Recipe, shape: ModelShape | None, unified: bool) -> Iterator[LedgerLine]:
    engine, several = traits(recipe), recipe.parallelism.world_size > 1
    yield (engine.context or (_UNIFIED if unified else _KERNELS)[several]).line
    name = str(flag_value(recipe, "load-format") or "")
    if unified and not engine.context and any(keeps := loader(name).keeps):
        yield Range(LOADER, *keeps, f"kept from loading with {name}, on two pairs of starts").line
    yield _activations(recipe, shape, unified)
    if not limits.is_eager(recipe):
        yield engine.graphs.line if engine.graphs else _graphs(recipe, shape, unified)


def _activations(recipe: Recipe, shape: ModelShape | None, unified: bool) -> LedgerLine:
    tokens = limits.batched_tokens(recipe, unified)
    if shape is None or not shape.hidden or not shape.vocab:
        each = 0.4 * GIB * tokens / 1024
        why = f"{tokens:,} batched tokens; the model's dimensions are not known"
        return LedgerLine(ACTIVATIONS, int(each), Origin.ASSUMED, why, int(each / 3), int(each * 2))
    found = rank_peak(recipe, shape, unified)
    low, high = spread(found)
    rows = limits.sequences(recipe, unified)
    why = f"{tokens:,} batched tokens, {rows:,} sequences, vocabulary {shape.vocab:,}: {found.why}"
    return LedgerLine(ACTIVATIONS, int(found.bytes), Origin.COMPUTED, why, int(low), int(high))


def _graphs(recipe: Recipe, shape: ModelShape | None, unified: bool) -> LedgerLine:
    """Two captures a batch size (whole decoding steps, and pieces between attentions), of the draft model too."""
    sizes, largest = limits.captures(recipe, unified)
    mode = str(limits.compilation(recipe).get("cudagraph_mode", "")).upper()
    kinds = 1 if mode in ("PIECEWISE", "FULL", "FULL_DECODE_ONLY") else 2
    models = 2 if recipe.speculation.method not in ("", "ngram") else 1
    least = _GRAPH_V2 if traits(recipe).second_runner(recipe) else _GRAPH[0]
    each = max(least, _GRAPH[1] * (shape.layers if shape else 0))
    several = recipe.parallelism.world_size > 1
    first = _FIRST[several, unified] * GIB
    size = first + sizes * kinds * models * each
    why = f"{sizes} batch sizes up to {largest}, {kinds * models} kinds, {gib(each)} each + {gib(first)} for the first"
    low, high = size / (4 if unified else 2), size * 2 + _FIRST_MOST[several, unified] * GIB
    return LedgerLine(GRAPHS, int(size), Origin.ASSUMED, why, int(low), int(high))


def load_peak(recipe: Recipe, shape: ModelShape | None, weights: LedgerLine) -> LedgerLine | None:
    """The load peak of the ranks in the line of weights; None if none are read or their size is unknown."""
    if not weights.bytes:
        return None
    name = str(flag_value(recipe, "load-format") or "")
    if name == "dummy":
        return None
    buffers, least, most = (int(size * GIB) for size in loader(name).buffers)
    again = _repacking(recipe, shape)
    why = f"{gib(weights.bytes)} weights + {gib(buffers)} of the loader{f' {name}' if name else ''}" + (
        f" + {gib(again)} repacked" if again else ""
    )
    low = (weights.low or weights.bytes) + least
    # What is converted while it is loaded may be there in 16 bits first.
    high = int((weights.high or weights.bytes) / held_share(recipe, shape)) + most + 2 * again
    return LedgerLine(LOADING, weights.bytes + buffers + again, Origin.ASSUMED, why, low, high)


def _repacking(recipe: Recipe, shape: ModelShape | None) -> int:
    """One layer's share of what kernels want in another order, held twice for a moment."""
    if shape is None or missing(shape) or (shape.expert_format or shape.format) not in _REPACKED:
        return 0
    inner = (part for part in model_parts(shape) if not part.ends and part.spread is not Spread.COPY)
    return int(sum(part.bytes * part_share(part, shape, recipe.parallelism) for part in inner) / shape.layers)
