"""MXFP4 experts as the engines' kernels hold them, in times of the bytes that a checkpoint has for them."""

from sparkwright.domain.recipe import Recipe
from sparkwright.engines.options import flag_value
from sparkwright.engines.version import is_since

# Bytes of a number with its share of a scale: half a byte, and one for each 32.
_SCALE = 1 / 32
_EACH = 1 / 2 + _SCALE
# SGLang: FusedMoE rounds the hidden width for FlashInfer, its kernels the inner one (mxfp4.py, 0.5.23).
_FLASHINFER = (256, 128)
_SM120 = ("marlin", "flashinfer_mxfp4")
_UNASKED = ("None", "", "auto")


def padded(widths: tuple[int, int], tile: tuple[int, int]) -> float:
    """Times of experts of a hidden and an inner width that are padded to whole tiles of such widths."""
    (hidden, inner), (high, wide) = widths, tile
    return _whole(hidden, high) / hidden * _whole(inner, wide) / inner


def sglang_experts(recipe: Recipe, unified: bool, architecture: str, widths: tuple[int, int]) -> float:
    """Times of SGLang's experts: on a GB10 gpt-oss goes through FlashInfer's kernels for SM120, on a Hopper GPU through
    triton_kernels (arg_groups/model_overrides/gpt_oss.py, read in 0.5.23; before that nothing was read)."""
    if not is_since(recipe, 0, 5, 23):
        return 1.0
    backend, ours = str(flag_value(recipe, "moe-runner-backend") or ""), architecture == "GptOssForCausalLM"
    if backend in _SM120 or (ours and unified and backend in _UNASKED):
        return padded(widths, _FLASHINFER)
    if ours and not unified and backend in (*_UNASKED, "triton_kernel"):
        return _swizzled(*widths)
    return 1.0


def _swizzled(hidden: int, inner: int) -> float:
    """triton_kernels' order for Hopper, and what the allocator cannot give back.

    Gate and up are swizzled first, in temporaries as large as their result; their scales stay in one of those, which
    therefore is kept, and down goes in there, too. The scales of the checkpoint are not deleted.
    """
    gate_up = _whole(-(-hidden // 2), 64) * _whole(2 * inner, 256)
    scales = 3 * hidden * inner * _SCALE
    return (2 * gate_up + scales) / (3 * hidden * inner * _EACH)


def _whole(width: int, tile: int) -> int:
    return -(-width // tile) * tile
