"""Bytes of what one token leaves in one layer's cache, for each way in which engines write it."""

from sparkwright.domain.model import ModelShape

BF16 = 2.0
_FP32 = 4
# Bytes of a cached number with its share of the scales. NVFP4: 4 bits and an FP8 scale for each 16 (vLLM 0.21.0,
# utils/torch_utils.py; SGLang's fp4_e2m1 the same); llama.cpp's formats are blocks of 32 with a 16-bit scale.
_BYTES = {
    **dict.fromkeys(("", "auto", "bf16", "bfloat16", "fp16", "float16", "half", "f16"), BF16),
    **dict.fromkeys(("fp32", "float32", "f32"), 4.0),
    **dict.fromkeys(("fp8", "fp8_e4m3", "fp8_e5m2", "fp8_inc", "int8"), 1.0),
    **dict.fromkeys(("nvfp4", "nvfp4_4over6", "fp4_e2m1", "fp4", "fp4_mx_block16"), 0.5625),
    "turboquant_k8v4": 0.75, "turboquant_4bit_nc": 0.5, "turboquant_k3v4_nc": 0.4375, "turboquant_3bit_nc": 0.375,
    "octave_k3v4": 0.5, "octave_k3v3": 0.4375, "octave_k3v3_compact": 0.375, "ultraquant_4bit": 0.5 + 1 / 32,
    "fp8_per_token_head": 1.0, "int8_per_token_head": 1.0, "int4_per_token_head": 0.5, "mxfp8": 1 + 1 / 32,
    "q8_0": 34 / 32, "q5_1": 24 / 32, "q5_0": 22 / 32, "q4_1": 20 / 32, "q4_0": 18 / 32, "iq4_nl": 18 / 32,
}  # fmt: skip
_PER_HEAD = "_per_token_head"  # these write a 32-bit scale for each token and head, of keys and of values
_PACKED = "_ds_mla"
# Bits of a key's and of a value's number where a head's key and value share one slot (vLLM 0.33.0,
# quantization/turboquant/config.py): keys have a norm of 16 bits, FP8 keys none; values a scale and a zero.
_TURBOQUANT = {
    "turboquant_k8v4": (8, 4), "turboquant_4bit_nc": (4, 4), "turboquant_k3v4_nc": (3, 4), "turboquant_3bit_nc": (3, 3),
}  # fmt: skip
# The same for Octave (attention/ops/rocm_octave.py), for models that rotate the whole head: bits of a value's number,
# and whether keys have 3 bits and one scale instead of 4 bits and a scale for each 64 numbers.
_OCTAVE = {"octave_k3v4": (4, False), "octave_k3v3": (3, False), "octave_k3v3_compact": (3, True)}
_OCTAVE_BLOCK = 64
# Layers at each end of a model without states that vLLM keeps in the model's own type for these (engine/arg_utils.py).
_KEPT_ENDS, _KEEPS_ENDS = 2, (*_TURBOQUANT, "ultraquant_4bit")
_SCALED = 128  # numbers that share a 32-bit scale in FP8 rows of MLA and of the indexer
# One entry of DeepSeek V4: 448 numbers of FP8, 64 of BF16, 8 bytes of scales. nvfp4_ds_mla keeps that width.
V4_ROW = 584
# Pages, in tokens, of what its compressors still need, by how many tokens become one entry (vLLM,
# deepseek_compressor.py); where groups overlap, windows of twice the ratio.
V4_STATE_PAGE, V4_OVERLAP = {4: 4, 128: 8}, 4
# A row of fp8_ds_mla in vLLM, also of a model without a positional part (MLAAttentionSpec, kv_cache_interface.py).
_DS_MLA = 656
# vLLM 0.33.0, mla_attention.py: 512 numbers of NVFP4, and 64 of FP8 padded to whole 16 bytes.
_NVFP4_MLA = 352
_FP4_INDEX = 0.5 + 1 / 32  # MXFP4


def is_known_dtype(dtype: str) -> bool:
    return dtype in _BYTES or dtype.endswith(_PACKED)


def number(dtype: str) -> float:
    """Bytes of one cached number; packed rows have no such thing: their scales and parts differ in width."""
    return _BYTES.get(dtype, 1.0)


def heads_row(dtype: str, heads: int, width: int) -> float:
    """Bytes of one token. width: numbers of a head, keys and values together."""
    if dtype in _TURBOQUANT or dtype in _OCTAVE:
        return heads * (_turboquant_slot if dtype in _TURBOQUANT else _octave_slot)(dtype, width // 2)
    scales = 2 * _FP32 if dtype.endswith(_PER_HEAD) else 0
    return heads * (width * number(dtype) + scales)


def _turboquant_slot(dtype: str, width: int) -> int:
    """Bytes of one head's key and value, of `width` numbers each."""
    keys, values = _TURBOQUANT[dtype]
    slot = (width if keys == 8 else -(-width * keys // 8) + 2) + -(-width * values // 8) + 4
    return slot + slot % 2


def _octave_slot(dtype: str, width: int) -> int:
    values, compact = _OCTAVE[dtype]
    scales = 2 if compact else width // _OCTAVE_BLOCK + 1
    raw, align = width * (3 if compact else 4) // 8 + width * values // 8 + 2 * scales, 4 if compact else 8
    return -(-raw // align) * align


def plain_layers(dtype: str, shape: ModelShape, stages: int) -> int:
    """Layers of the fullest pipeline stage that are written in the model's own type although another is asked for."""
    if dtype not in _KEEPS_ENDS or shape.state_kind:
        return 0
    return 2 * _KEPT_ENDS if stages == 1 else _KEPT_ENDS


def mla_row(dtype: str, shape: ModelShape) -> float:
    """A latent row. With a lightning indexer FP8 means fp8_ds_mla, whose positional part stays BF16 (656 B)."""
    plain = shape.latent - shape.rope_dim
    if dtype == "nvfp4_ds_mla":
        return _NVFP4_MLA
    sparse = shape.index_layers and shape.rope_dim and number(dtype) == 1.0
    if dtype == "fp8_ds_mla":
        return _DS_MLA
    if sparse:
        return plain + plain // _SCALED * _FP32 + shape.rope_dim * BF16
    return shape.latent * number(dtype)


def index_row(shape: ModelShape, fp4: bool = False) -> float:
    """The indexer's row: FP8 with a scale for dsa (132 B of 128), MXFP4 if asked (68 B); others write BF16."""
    if shape.index_kind not in ("", "dsa"):
        return shape.index_dim * BF16
    if fp4:
        return shape.index_dim * _FP4_INDEX
    return shape.index_dim + shape.index_dim // _SCALED * _FP32
