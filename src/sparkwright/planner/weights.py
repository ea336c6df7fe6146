"""Bytes of weights that a rank holds: by the checkpoint's own tensors, else by the model's shape, else evenly split.

How tensors are shared out follows from the layers that hold them, as in vLLM 0.21.0 (model_executor/layers/linear.py,
vocab_parallel_embedding.py, mla.py, fused_moe/layer.py and the models of the families in tests/data/models); SGLang
shares this code. Scales, zero points and biases are split with their weights: only the last part of the name differs.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from sparkwright.domain.checkpoint import Checkpoint, TensorGroup
from sparkwright.domain.facts import Unknown
from sparkwright.domain.ledger import WEIGHTS, LedgerLine, Origin
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import gib
from sparkwright.domain.values import dataclass, replace
from sparkwright.engines.catalog import traits
from sparkwright.engines.options import flag_value
from sparkwright.engines.traits import Cache
from sparkwright.planner.limits import batched_tokens
from sparkwright.planner.on_load import LEAST, LEFT, as_loaded, held_share, unknown_method
from sparkwright.planner.parts import (
    ENCODER,
    STREAMS,
    UNKNOWN_TABLES,
    Spread,
    Weights,
    draft_layers,
    drafter,
    drafts,
    main,
    missing,
    packed,
    settled,
)
from sparkwright.planner.split_cost import bytes_on_rank
from sparkwright.planner.stated import CONTRADICTS, LEAST_BITS, WeightClaim, bits_of, claims, count_by_name, least_known

DRAFT = "draft model"
# A draft model of its own, in layers of the target's width: DFlash and plain drafts have several, EAGLE one.
_DRAFT_LAYERS = {"eagle": 1.5, "medusa": 1.0}
_DRAFT_OTHERS = 6.0
_WHOLE_DRAFTERS = ("draft_model", "standalone")  # vLLM's and SGLang's words

# The first pattern that a name has decides. Every rank makes the latents of MLA, routes and normalizes for itself.
_SPREADS = (
    (r"\bexperts\.(#\.|gate_up|gate_proj|up_proj|down_proj|w[\d#])|_exps\b", Spread.EXPERTS),
    (r"kv_a_proj|q_a_proj|qkv_a_proj|\bwq_a\b|\bwkv\b|attn_(q|kv)_a\b", Spread.COPY),
    (r"index|compressor|\bhc_|norm|\bgate\.(weight|e_score|bias|tid)|router|e_score_correction", Spread.COPY),
    (r"\b[kv]_proj|attn_[kv]\b|\bw[kv]\b", Spread.KV),
    (r"eh_proj|mtp\.fc\b|latent_proj|_latent_", Spread.COPY),
)
_FUSED = re.compile(r"\b(qkv_proj|query_key_value|wqkv|c_attn|attn_qkv)\b")
_ENCODER = re.compile(r"\b(visual|vision_\w+|vision|audio_\w+|audio|multi_modal_projector|mm_projector|embed_vision)\b")
_LAYER = re.compile(r"\b(layers|blk|h|blocks|block)\.#\.")
_DRAFT = re.compile(r"\b(mtp\w*|nextn\w*|draft\w*)\b")
# In a draft layer that is numbered like the others: its own embedding and head are shared with the model's.
_DRAFT_ONLY = re.compile(r"layers\.#\.(eh_proj|enorm|hnorm|shared_head|embed_tokens|shared_head\.head)\b")
_SHARED_AGAIN = re.compile(r"layers\.#\.(embed_tokens|shared_head\.head)\b")
_EMBEDDING = re.compile(r"embed_tokens|wte\b|token_embd|word_embeddings|\bembed\.weight|\bembeddings\b")
_HEAD = re.compile(r"lm_head|\boutput\.weight|\bhead\.weight")
Found = Checkpoint | Unknown | None
# How far off each way of counting was, as a share: tensors, shape scaled to the files, shape alone, size / ranks.
_TENSORS = (0.01, 0.01)
_SCALED = (0.03, 0.04)
_SHAPE = (0.05, 0.08)
# Makers of 4-bit checkpoints keep different layers in 16 bits: of 45 published starts whose size was not known 11 took
# over 5 % more than counted, three over 5 % less (scripts/planner/fresh).
_MIXED = (0.1, 0.25)
BY_MAKER = {"int4", "nvfp4"}
_EVEN = (0.03, 0.15)
# An architecture that is not known, or an odd dimension: of 27 such classes of transformers 5.24 24 are inside.
_LOOSE = (0.5, 0.6)
_UNREAD = (0.06, 0.10)  # a format that only the files' bytes show
_NAMED = (0.2, 0.15)  # bits by a packing's name: mixes named IQ4_XS have 3.8 to 4.5 of them
_EXPLAINED = 0.95
_FAR = 1.7  # a checkpoint this many times smaller than the count is another thing: a folder without weights
_TABLES = 1.25
_BESIDE = 2**26  # bytes of what lies next to weights
_MORE_DRAFTS = 4.0
# Tables that a config names and nobody can count: n-grams and Engram are 0.7 to 1.3 times the rest of their models.
_UNTOLD = (0.05, 1.5)
REST = "what the dimensions do not explain"
_LESS, _MORE = 0.8, 0.5  # of a part whose dimensions are not known: how much smaller and larger it may be
_NO_DRAFTS = 0.925  # of model and drafts: so small a checkpoint lacks the draft layers, or has lighter ones


def tensor_parts(
    groups: Iterable[TensorGroup], shape: ModelShape, drafts: bool, encoder: Spread = Spread.HEADS
) -> tuple[Weights, ...]:
    """The loaded parts. drafts: True loads the draft layers too; encoder: the spread of its tensors."""
    listed = tuple(groups)
    together = any(_DRAFT_ONLY.search(group.name) for group in listed) and shape.mtp_layers > 0
    kept = shape.layers / (shape.layers + shape.mtp_layers) if together and not drafts else 1.0
    return tuple(part for group in listed for part in _parts(group, shape, drafts, encoder, kept))


def _parts(group: TensorGroup, shape: ModelShape, drafts: bool, encoder: Spread, kept: float) -> Iterator[Weights]:
    name = group.name
    if _SHARED_AGAIN.search(name) or ((_DRAFT.search(name) or _DRAFT_ONLY.search(name)) and not drafts):
        return
    if _ENCODER.search(name):
        yield Weights(name, group.bytes, encoder, ends=True, idle=True)
        return
    inner = bool(_LAYER.search(name)) and not _DRAFT.search(name)
    size = group.bytes * (kept if inner else 1.0)
    if _FUSED.search(name):
        keys = 2 * shape.kv_heads / (shape.heads + 2 * shape.kv_heads)
        yield Weights(name, size * keys, Spread.KV, ends=not inner)
        yield Weights(name, size * (1 - keys), Spread.HEADS, ends=not inner)
        return
    yield Weights(name, size, _spread(name, shape), ends=not inner, idle=bool(_EMBEDDING.search(name)))


def _spread(name: str, shape: ModelShape) -> Spread:
    found = next((spread for pattern, spread in _SPREADS if re.search(pattern, name)), Spread.HEADS)
    # Where experts are few the shared one is named like them; linear attention's keys have heads of their own.
    linear = "linear_attn" in name or "mamba" in name or "mixer" in name
    return Spread.HEADS if found is Spread.KV and (linear and shape.state_layers) else found


@dataclass(frozen=True, slots=True)
class WeightFactors:
    """Factors of the count of the model and of its draft layers, and bytes that the count does not explain."""

    model: float = 1.0
    draft: float = 1.0
    rest: float = 0.0


@dataclass(frozen=True, slots=True)
class _Counted:
    everything: tuple[Weights, ...]
    source: str
    off: tuple[float, float]


def checkpoint_size(recipe: Recipe, checkpoint: Found) -> tuple[int, str]:
    """Bytes of the checkpoint that go into memory and where the figure is from; (0, '') when it is not known.

    An unfinished copy is smaller than the model, and a damaged file shows nothing: then the published size is better.
    """
    size, source, stays = recipe.model.size, "model.size of the recipe", recipe.model.on_disk
    whole = isinstance(checkpoint, Checkpoint) and checkpoint.sound and not holds_too_little(checkpoint)
    if isinstance(checkpoint, Checkpoint) and whole and (checkpoint.weights or _bare(checkpoint)):
        size, source = checkpoint.weights or checkpoint.bytes, f"files at {checkpoint.path}"
    source += f", less {gib(stays)} that stay on disk" if stays else ""
    return (size - stays, source) if size > stays else (0, "")


def _bare(checkpoint: Checkpoint) -> int:
    """Bytes of files of unknown kind; 0 for a configuration and a tokenizer alone."""
    return checkpoint.bytes if checkpoint.bytes > _BESIDE or not isinstance(checkpoint.shape, ModelShape) else 0


def rank_weights(
    recipe: Recipe, shape: ModelShape | None, checkpoint: Found, ranks_here: int = 1, unified: bool = True
) -> LedgerLine:
    """Weights on the `ranks_here` fullest ranks; 0 and ASSUMED if unknown. unified: CPU and GPU share the memory."""
    if isinstance(checkpoint, Checkpoint) and holds_too_little(checkpoint) and not recipe.model.size:
        return _too_little(recipe, checkpoint, ranks_here)
    size, source = checkpoint_size(recipe, checkpoint)
    evenly = traits(recipe).by_layer and size
    counted = _counted(recipe, shape, checkpoint) if shape and not evenly else None
    if shape is None or counted is None:
        return _even(recipe, (size, source), ranks_here, shape)
    p = recipe.parallelism
    text_only = bool(flag_value(recipe, "language-model-only"))
    read = tuple(p for p in counted.everything if not (text_only and (p.name == ENCODER or _ENCODER.search(p.name))))
    beside = uncounted(recipe, shape, unified)
    loaded = (*repacked(read, recipe, shape, unified), *beside)
    each = bytes_on_rank(loaded, shape, p)
    below, above = counted.off
    # Kernels that the engine chooses by itself may be ones that do not pad: gpt-oss-120b took 61 and 66 GiB.
    chosen = flag_value(recipe, "moe-backend") not in (None, "", "auto")
    least = each if chosen else bytes_on_rank((*read, *beside), shape, p)
    unsure = each - bytes_on_rank(
        tuple(part for part in loaded if part.name not in (DRAFT, ENCODER, REST, UNKNOWN_TABLES)), shape, p
    )
    copied = each - bytes_on_rank(tuple(part for part in loaded if part.spread is not Spread.COPY), shape, p)
    line = LedgerLine(
        WEIGHTS,
        int(each * ranks_here),
        Origin.ASSUMED if unsure or counted.off in (_UNTOLD, _LOOSE) else Origin.COMPUTED,
        _why(recipe, each, copied, ranks_here) + counted.source,
        low=int((least * (1 - below) - unsure * _LESS) * ranks_here),
        high=int((each * (1 + above) + unsure * _MORE) * ranks_here),
    )
    return _converted(line, recipe, shape)


def _converted(line: LedgerLine, recipe: Recipe, shape: ModelShape) -> LedgerLine:
    """The line with the weights as the engine converts them while it loads."""
    if method := unknown_method(recipe, shape):
        why = f"{line.why}; --quantization {method} converts them while they load, to what is not known here"
        return replace(line, origin=Origin.ASSUMED, why=why, low=int((line.low or line.bytes) * LEAST))
    if (kept := held_share(recipe, shape)) == 1.0:
        return line
    size = int(line.bytes * kept)
    why = f"{gib(size)} in {as_loaded(recipe, shape).format}, to which they are converted while they load; {line.why}"
    low, high = (int((edge or line.bytes) * kept) for edge in (line.low, line.high))
    return replace(
        line, bytes=size, origin=Origin.ASSUMED, why=why, low=int(low * (1 - LEFT[0])), high=int(high * (1 + LEFT[1]))
    )


def _why(recipe: Recipe, each: float, copied: float, ranks_here: int) -> str:
    p = recipe.parallelism
    split = f", of which {gib(copied)} is whole on every rank" if copied and p.tp > 1 else ""
    draft = f", with what {recipe.speculation.method} drafts with" if recipe.speculation.method else ""
    here = f" x {ranks_here} ranks here" if ranks_here > 1 else ""
    return f"{gib(each)} on the fullest rank of tp {p.tp} x pp {p.pp}{split}{draft}{here}: "


def _counted(recipe: Recipe, shape: ModelShape, checkpoint: Found) -> _Counted | None:
    wanted = drafts(recipe, shape)
    whole = isinstance(checkpoint, Checkpoint) and checkpoint.sound
    if (
        isinstance(checkpoint, Checkpoint)
        and whole
        and checkpoint.tensors
        and not recipe.model.on_disk
        and not _less_than(sum(group.bytes for group in checkpoint.tensors), shape)
    ):
        listed = tensor_parts(checkpoint.tensors, shape, wanted, spread_encoder(recipe))
        return _Counted(listed, f"tensors of {checkpoint.path}", _TENSORS)
    size, source = checkpoint_size(recipe, checkpoint)
    unread = missing(shape) == "format"
    shape = settled(shape, size, recipe.model.on_disk)
    if missing(shape):
        return None
    model, draft = main(shape), draft_layers(shape)
    counted, drafted = (sum(part.bytes for part in parts) for parts in (model, draft))
    fit = fitted(counted, drafted, size, exact=whole and size > 0, rough=recipe.model.on_disk > 0)
    everything = (*_times(model, fit.model), *(_times(draft, fit.draft) if wanted else ()))
    rest = (Weights(REST, fit.rest, Spread.HEADS),) if fit.rest else ()
    said = f", {gib(size)} in all ({source})" if size else ""
    if shape.tables_unknown and not size:
        without = "the model's dimensions, without tables that its config names and nobody can count"
        return _Counted(everything, without, _UNTOLD)
    if unread:
        return _Counted((*everything, *rest), f"the model's dimensions at {shape.format} a number{said}", _UNREAD)
    if size and (model_share := (counted + drafted) / size) < _EXPLAINED:
        said += f", of which the dimensions explain {model_share:.0%}"
    mixed = BY_MAKER & {shape.format, shape.expert_format}
    off = _SCALED if size else _LOOSE if shape.loose else _NAMED if packed(shape) else _MIXED if mixed else _SHAPE
    lacks = drafted * (1 - fit.draft) / size if 0 < fit.draft < 1 else 0.0
    # A size in GiB that is called GB leaves room for all drafts. Where none are loaded, what the files lack may as well
    # be the model's: Nemotron 3 Super's state layers are in 8 bits.
    off = (off[0], off[1] + lacks) if wanted else (off[0] + lacks, off[1])
    return _Counted((*everything, *rest), f"the model's dimensions{said}", off)


def holds_too_little(checkpoint: Checkpoint) -> bool:
    """True if files that are all there are together smaller than the model that their own config.json describes."""
    return checkpoint.sound and 0 < checkpoint.weights < _described_least(checkpoint)


def _described_least(checkpoint: Checkpoint) -> int:
    """Bytes that the model of a folder's config.json takes at least; 0 where its dimensions are not known."""
    return _least_bytes(checkpoint.shape) if isinstance(checkpoint.shape, ModelShape) else 0


def _less_than(size: int, shape: ModelShape) -> bool:
    """True if the dimensions take more than so many bytes in any packing: part of a model, or another's
    configuration."""
    return size < _least_bytes(shape)


def _least_bytes(shape: ModelShape) -> int:
    """Bytes of the model in the smallest packing that is published; 0 where its dimensions are not known."""
    if missing(shape) or shape.loose:
        return 0
    bits = max(bits_of(shape.format), bits_of(shape.expert_format)) or 16.0
    return int(sum(part.bytes for part in main(shape)) * LEAST_BITS / bits)


def _too_little(recipe: Recipe, checkpoint: Checkpoint, ranks_here: int) -> LedgerLine:
    """The line of files that are no whole model, with the command that completes them."""
    p, why = recipe.parallelism, too_little(recipe, checkpoint)
    low = _described_least(checkpoint) * ranks_here // (p.tp * p.pp)
    return LedgerLine(WEIGHTS, 0, Origin.ASSUMED, why, low=low, known=False)


def too_little(recipe: Recipe, checkpoint: Checkpoint) -> str:
    """Files that are smaller than their config.json says, and the command that completes them; '' if they are not."""
    if not holds_too_little(checkpoint):
        return ""
    one_file = checkpoint.path.endswith(".gguf")
    described = "its header describes" if one_file else "their config.json describes"
    where = checkpoint.path.rpartition("/")[0] if one_file else checkpoint.root or checkpoint.path
    return (
        f"the files at {checkpoint.path} hold {checkpoint.weights:,} bytes, and {described} a model of at least "
        f"{gib(_described_least(checkpoint))}: a part of it, an adapter, or another's description; `hf download "
        f"{recipe.model.id or 'ORG/MODEL'} --local-dir {where}` completes them"
    )


def whole_size(recipe: Recipe, shape: ModelShape, checkpoint: Found) -> int:
    """Bytes of the checkpoint; 0 if they are not known, or fewer than the dimensions take in any packing."""
    size = checkpoint_size(recipe, checkpoint)[0]
    return 0 if _less_than(size + recipe.model.on_disk, shape) else size


def fitted(model: float, draft: float, size: int, exact: bool, rough: bool = False) -> WeightFactors:
    """Corrections of the counted model and draft layers by a checkpoint's size.

    What is beyond the count of a model with draft layers is drafts: fewer bytes where they are quantized, too (three
    builds of three sources weigh that), up to a few times as many (DSpark has three stages where a config has one);
    else it is parts left unquantized, anywhere; much beyond are tables that no dimension shows (Engram, per-layer
    embeddings). exact: the size is of files. A published one a little below the count is none: sizes are rounded, and
    GiB are called GB. rough: it is what tables that stay on disk leave, by estimate.
    """
    total, beyond = model + draft, size - model
    if not size > total / _FAR:
        return WeightFactors()
    least = draft if rough else max(0.0, _NO_DRAFTS * total - model)
    if draft and least < beyond < _MORE_DRAFTS * draft:
        return WeightFactors(draft=beyond / draft)
    if size > _TABLES * total:
        return WeightFactors(rest=size - total)
    if draft and size < _NO_DRAFTS * total:
        return WeightFactors(size / model if exact else max(1.0, size / model), 0.0)
    times = size / total if exact else max(1.0, size / total)
    return WeightFactors(times, times)


def _times(parts: Sequence[Weights], factor: float) -> tuple[Weights, ...]:
    return tuple(replace(part, bytes=part.bytes * factor) for part in parts)


def _even(recipe: Recipe, found: tuple[int, str], ranks_here: int, shape: ModelShape | None) -> LedgerLine:
    """Evenly split, by a size and its source; without one by what the recipe's author states, in its range."""
    p, (size, source) = recipe.parallelism, found
    stated, (least, hint) = claims(recipe.model.stated, recipe.model.label), least_known(recipe)
    said = size if size == recipe.model.size else 0  # by a person, not by files
    if not size and stated and least <= CONTRADICTS * stated[0].high:
        return _as_stated(recipe, stated[0], ranks_here)
    if not size or (said and least > CONTRADICTS * said):
        why = "size not known: no complete checkpoint on this node, and the recipe gives no model.size"
        if size or stated:
            why = f"size not known: {f'model.size {gib(size)}' if size else stated[0].why} contradicts its name"
        why += f"; the dimensions lack the {missing(shape)}" if shape and missing(shape) else ""
        low = least * ranks_here // (p.tp * p.pp) if least else None
        return LedgerLine(WEIGHTS, 0, Origin.ASSUMED, f"{why}; {hint}" if hint else why, low=low, known=False)
    here = f" x {ranks_here} ranks here" if ranks_here > 1 else ""
    why = f"{gib(size)} ({source}) / (tp {p.tp} x pp {p.pp}){here}, split evenly: the model's dimensions are not known"
    share = ranks_here / (p.tp * p.pp)
    each, high = int(size * share), int(size * share * (1 + _EVEN[1]))
    larger = [one for one in stated if said and one.low > CONTRADICTS * said]
    if larger:  # nobody knows which of the statements is wrong
        high, why = max(high, *(int(one.high * share) for one in larger)), f"{why}; but {larger[0].why}"
    return LedgerLine(WEIGHTS, each, Origin.ASSUMED, why, low=int(each * (1 - _EVEN[0])), high=high)


def _as_stated(recipe: Recipe, claim: WeightClaim, ranks_here: int) -> LedgerLine:
    p = recipe.parallelism
    share = ranks_here / (p.tp * p.pp)
    low, likely, high = (int(figure * share) for figure in (claim.low, claim.likely, claim.high))
    why = f"as the recipe's source states: {claim.why}; split evenly over tp {p.tp} x pp {p.pp}, not measured"
    return LedgerLine(
        WEIGHTS, likely, Origin.ASSUMED, why, low=int(low * (1 - _EVEN[0])), high=int(high * (1 + _EVEN[1]))
    )


def uncounted(recipe: Recipe, shape: ModelShape, unified: bool = True) -> tuple[Weights, ...]:
    """Weights of the engine outside any checkpoint: tables of positions, buffers, another model's drafts."""
    found = []
    engine = traits(recipe)
    if engine.positions and (not shape.compress or engine.cache is Cache.BLOCKS):  # of SGLang's V4 nothing is read
        found.append(Weights("tables of positions", _positions(shape, engine.positions), Spread.COPY, ends=True))
        if shape.compress:
            rows = batched_tokens(recipe) * (STREAMS * shape.hidden * 2 + shape.index_topk * 4)
            found.append(Weights("buffers of the streams", rows, Spread.COPY, ends=True))
    if engine.loaded and unified:
        found.append(Weights("kernels loaded meanwhile", engine.loaded, Spread.COPY, ends=True))
    if drafter(recipe, shape):
        # Split like the target unless draft_tensor_parallel_size says otherwise (0.21.0, config/speculative.py).
        method, draft = recipe.speculation.method.lower(), recipe.speculation.draft
        if draft and not missing(draft):
            # Its own vocabulary is the target's
            return (*found, *(replace(p, name=f"{DRAFT} {p.name}") for p in main(draft) if not p.ends))
        # A whole model; a drafter made for one bears that model's size in its name.
        name = str(recipe.speculation.options.get("model") or "")
        if method in _WHOLE_DRAFTERS and (count := count_by_name(name)):
            return (*found, Weights(DRAFT, count * (bits_of(name) or 16.0) / 8, Spread.HEADS, ends=True))
        layers = next((n for word, n in _DRAFT_LAYERS.items() if word in method), _DRAFT_OTHERS)
        found.append(Weights(DRAFT, layers * 16 * shape.hidden**2 * 2.0, Spread.HEADS, ends=True))
    return tuple(found)


def _positions(s: ModelShape, each: float) -> float:
    """cos and sin of every position, numbers of so many bytes: FP32 where YaRN makes them, twice for two bases."""
    width = s.rope_dim or min(s.head_dim, 128)
    return s.positions * width * (4.0 if s.latent or s.compress else each) * (2 if s.compress else 1)


def repacked(
    everything: tuple[Weights, ...], recipe: Recipe, shape: ModelShape, unified: bool = True
) -> tuple[Weights, ...]:
    """The parts as the engine's kernels hold them: MXFP4 experts are padded to whole tiles, of each rank's slice."""
    if "mxfp4" not in (shape.expert_format or shape.format) or not shape.expert_intermediate * shape.hidden:
        return everything
    ranks = 1 if recipe.parallelism.ep else recipe.parallelism.tp * recipe.parallelism.dp
    widths = shape.hidden, max(1, shape.expert_intermediate // ranks)
    more = traits(recipe).experts(recipe, unified, shape.architecture, widths)
    return tuple(replace(p, bytes=p.bytes * more) if p.spread is Spread.EXPERTS else p for p in everything)


def spread_encoder(recipe: Recipe) -> Spread:
    """vLLM splits an encoder like the rest unless an option gives every rank the whole and a part of the images."""
    return Spread.COPY if flag_value(recipe, "mm-encoder-tp-mode") == "data" else Spread.HEADS
