"""Weights that the engine holds in another format than its files: `--quantization fp8` on a checkpoint in 16 bits."""

from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.values import replace
from sparkwright.engines.catalog import traits
from sparkwright.engines.options import flag_value
from sparkwright.planner.parts import main, missing

_PLAIN = ("bf16", "fp16")
# Which layers stay in 16 bits differs from model to model: one published start (Gemma 4 31B, vLLM 0.17) held 54 %.
LEFT = (0.05, 0.12)


# What a method that is not known here may leave of 16 bits: 4 bits and their scales.
LEAST = 0.25
_NONE = ("", "none", "auto")


def as_loaded(recipe: Recipe, shape: ModelShape) -> ModelShape:
    """The shape in the format in which the engine holds it; the same where it converts nothing."""
    kind = dict(traits(recipe).converts).get(_asked(recipe), "")
    return replace(shape, format=kind) if kind and _is_plain(shape) else shape


def unknown_method(recipe: Recipe, shape: ModelShape) -> str:
    """The method by which files in 16 bits are converted to nobody knows here what; '' for none."""
    asked = _asked(recipe)
    known = asked in _NONE or asked in dict(traits(recipe).converts)
    return "" if known or not _is_plain(shape) else asked


def _asked(recipe: Recipe) -> str:
    return str(flag_value(recipe, "quantization") or "").lower()


def _is_plain(shape: ModelShape) -> bool:
    return shape.format in _PLAIN and not (shape.quantization or shape.expert_format)


def held_share(recipe: Recipe, shape: ModelShape | None) -> float:
    """The share of the files' bytes that the engine holds; 1.0 where it converts nothing."""
    if shape is None or missing(shape) or (loaded := as_loaded(recipe, shape)) is shape:
        return 1.0
    return sum(part.bytes for part in main(loaded)) / sum(part.bytes for part in main(shape))
