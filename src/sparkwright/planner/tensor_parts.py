"""A checkpoint's own tensors -> parts that a split shares out: by what the layers that hold them do with their names.

Read for vLLM 0.21.0 (model_executor/layers/linear.py, vocab_parallel_embedding.py, mla.py, fused_moe/layer.py and the
models of the families in tests/data/models); SGLang shares this code. Scales, zero points and biases lie beside their
weights and are split with them: their names differ in the last word only.
"""

import re
from collections.abc import Iterable, Iterator

from sparkwright.domain.checkpoint import TensorGroup
from sparkwright.domain.model import ModelShape
from sparkwright.planner.parameters import Spread, Weights

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


def tensor_parts(
    groups: Iterable[TensorGroup], shape: ModelShape, drafts: bool, encoder: Spread = Spread.HEADS
) -> tuple[Weights, ...]:
    """What is loaded of them. drafts: the draft layers too; encoder: how its tensors are spread."""
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
