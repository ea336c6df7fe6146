"""An author's statements about a model, as bytes of weights with a range; and the places where statements disagree.

A statement is worth less than files, model.size or dimensions. How far each kind is off: 60 sparkrun recipes and the
173 of vllm-project/recipes, next to the sizes of the checkpoints that they name.
"""

import re
from collections.abc import Iterator

from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Stated
from sparkwright.domain.units import gib
from sparkwright.domain.values import dataclass
from sparkwright.planner.packings import packed_bits
from sparkwright.planner.parts import main, missing

_BITS_IN_NAME = (
    (r"(?<![a-z0-9])(fp32|float32)(?![a-z0-9])", 32.0),
    (r"(?<![a-z0-9])(bf16|fp16|f16|bfloat16|float16|half)(?![a-z0-9])", 16.0),
    (r"(?<![a-z0-9])(fp8\w*|int8|w8a8|w8a16|q8(_0)?|8bit|mxfp8)(?![a-z0-9])", 8.0),
    (r"(?<![a-z0-9])(nvfp4|mxfp4|fp4|int4|awq|gptq|w4a16|4bit|q4\w*)(?![a-z0-9])", 4.0),
)
_WEIGHTS = (0.95, 1.05)
# Parameters x bits: scales, and what a quantizer leaves in 16 bits. Of 4 bits that is up to two thirds more.
_BY_BITS = (0.95, 1.10)
_BY_FEW_BITS = (0.95, 1.65)
_FEW = 6.0
# Minimum memory is written for weights, cache and buffers, and rounded up to whole GPUs.
_LEAST_SHARE, _LIKELY_SHARE, _MOST_SHARE = 0.4, 0.8, 1.0
_FAR = 1.25  # statements whose ranges are further apart than this contradict each other


@dataclass(frozen=True, slots=True)
class WeightClaim:
    """Bytes of all weights by one statement, and the words for it."""

    low: float
    likely: float
    high: float
    why: str


def bits_of(name: str) -> float:
    """Bits of a weight by a name or format; the most of those that it has, 0 without one."""
    return max(_bits_in(name), default=0.0)


def fewest_bits(name: str) -> float:
    """Bits of a weight at least by a name: the fewest of the formats that it has (`NVFP4-BF16`), 0 without one."""
    return min(_bits_in(name), default=0.0)


def _bits_in(name: str) -> tuple[float, ...]:
    """The bits of each format in a name; a packing decides alone."""
    if packed := packed_bits(name):
        return (packed,)
    return tuple(bits for pattern, bits in _BITS_IN_NAME if re.search(pattern, name, re.IGNORECASE))


def claims(stated: Stated | None) -> tuple[WeightClaim, ...]:
    """Every statement about the size, the best one first."""
    return tuple(_claims(stated)) if stated else ()


def _claims(said: Stated) -> Iterator[WeightClaim]:
    by = f" ({said.by})" if said.by else ""
    if said.weights:
        low, high = _WEIGHTS
        yield WeightClaim(said.weights * low, said.weights, said.weights * high, f"{gib(said.weights)}{by}")
    if said.parameters and (bits := bits_of(said.dtype)):
        low, high = _BY_FEW_BITS if bits < _FEW else _BY_BITS
        whole = said.parameters * bits / 8
        why = f"{said.parameters / 1e9:g}B parameters in {said.dtype}{by}"
        yield WeightClaim(whole * low, whole * (low + high) / 2, whole * high, why)
    if said.memory:
        most = said.memory * _MOST_SHARE
        why = f"at least {gib(said.memory)} of GPU memory{by}"
        yield WeightClaim(said.memory * _LEAST_SHARE, said.memory * _LIKELY_SHARE, most, why)


def disagreements(stated: Stated | None, shape: ModelShape | None, size: int) -> Iterator[str]:
    """Pairs of figures for the same weights that cannot both be right: of the recipe, its source, its dimensions."""
    known = [*claims(stated)]
    if size:
        known.insert(0, WeightClaim(size, size, size, f"model.size {gib(size)}"))
    if shape and not missing(shape) and not shape.loose and not shape.tables_unknown:
        counted = sum(part.bytes for part in main(shape))
        why = f"{gib(int(counted))} by the dimensions at {shape.expert_format or shape.format}"
        known.append(WeightClaim(counted * 0.9, counted, counted * 1.3, why))
    for number, first in enumerate(known):
        for other in known[number + 1 :]:
            if first.low > _FAR * other.high or other.low > _FAR * first.high:
                yield f"{first.why}; {other.why}"
