"""A dimension that nobody published, found from one that everybody does: how many parameters the model has."""

from __future__ import annotations

from dataclasses import replace

from sparkwright.domain.model import ModelShape
from sparkwright.planner import parts as model_parts

_STEP = 64  # widths of today's models are multiples of it


def solved(shape: ModelShape, total: float) -> ModelShape:
    """The shape with the width of the dense FFN, if that alone is missing and `total` parameters leave room for it."""
    if not total or model_parts.missing(shape) != "intermediate":
        return shape
    one = _count(replace(shape, intermediate=1))
    each = 3 * shape.hidden * shape.dense_layers
    width = round((total - one) / each / _STEP) * _STEP
    return replace(shape, intermediate=width) if width > 0 else shape


def _count(shape: ModelShape) -> float:
    """Parameters of the parts that are counted; a number of BF16 has two bytes."""
    plain = replace(shape, format="bf16", group=0, rows=0, expert_format="", expert_group=0)
    return sum(part.bytes for part in model_parts.model_parts(plain)) / 2
