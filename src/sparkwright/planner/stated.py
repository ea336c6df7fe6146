"""An author's statements about a model, as bytes of weights with a range; and the places where statements disagree.

A statement is worth less than files, model.size or dimensions. How far each kind is off: 60 sparkrun recipes and the
173 of vllm-project/recipes, next to the sizes of the checkpoints that they name.
"""

import re
from collections.abc import Iterator
from math import inf

from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe, Stated
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
CONTRADICTS = 1.25  # statements whose ranges are further apart than this contradict each other
# `550B`, `1.5B` and `8x22B`, but neither `A3B` (active parameters) nor a part of a word.
_COUNT_IN_NAME = re.compile(r"(?<![A-Za-z0-9.])(?:(\d{1,3})x)?(\d{1,4}(?:\.\d{1,3})?)[Bb](?![A-Za-z0-9])")
_OF_EXPERTS = 0.75  # of `8x22B`: its experts share attention and vocabulary (141 of 176, 46.7 of 56)
LEAST_BITS = 1.5
_PACKED_LEAST = 0.8


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


def count_by_name(name: str) -> float:
    """Parameters by a name; the most of those that it has, 0 without one."""
    found = _COUNT_IN_NAME.findall(name)
    return max((float(each) * (float(many) * _OF_EXPERTS if many else 1) * 1e9 for many, each in found), default=0.0)


def least_by_name(name: str) -> tuple[int, str]:
    """Bytes that a model takes at least by its name (`550B`, `BF16`), and the sentence for it; (0, '') without a hint.

    A name proves nothing, so this can only make a verdict worse: the count is rounded down by a tenth (a fifth for a
    packing, whose mixes have less than their name says), of several formats the smallest counts, and a name without a
    format is taken at 1.5 bits per parameter, less than any published quantization (IQ1_S has 1.6).
    """
    count = count_by_name(name)
    if not count:
        return 0, ""
    bits = fewest_bits(name) or LEAST_BITS
    least = int((_PACKED_LEAST if packed_bits(name) else 0.9) * count * bits / 8)
    return least, f"by its name at least {gib(least)} ({count / 1e9:g}B parameters at {bits:g} bits)"


def least_known(recipe: Recipe) -> tuple[int, str]:
    """Bytes that the model takes at least by names and by the number of parameters that its author states."""
    said = recipe.model.stated
    count = said.parameters if said else 0
    least = int(0.9 * count * LEAST_BITS / 8)
    by_count = (least, f"by its {count / 1e9:g}B parameters at least {gib(least)}") if count else (0, "")
    return max(by_count, *map(least_by_name, (recipe.model.label, recipe.name)))


def claims(stated: Stated | None, name: str = "") -> tuple[WeightClaim, ...]:
    """Every statement about the size, the best one first. name: the model's, for its bits where none are stated."""
    return tuple(_claims(stated, name)) if stated else ()


def _claims(said: Stated, name: str) -> Iterator[WeightClaim]:
    by = f" ({said.by})" if said.by else ""
    if said.weights:
        low, high = _WEIGHTS
        yield WeightClaim(said.weights * low, said.weights, said.weights * high, f"{gib(said.weights)}{by}")
    if said.parameters and (bits := bits_of(said.dtype) or bits_of(name)):
        low, high = _BY_FEW_BITS if bits < _FEW else _BY_BITS
        whole = said.parameters * bits / 8
        why = f"{said.parameters / 1e9:g}B parameters in {said.dtype if bits_of(said.dtype) else f'{bits:g} bits'}{by}"
        yield WeightClaim(whole * low, whole * (low + high) / 2, whole * high, why)
    if said.memory:
        most = said.memory * _MOST_SHARE
        why = f"at least {gib(said.memory)} of GPU memory{by}"
        yield WeightClaim(said.memory * _LEAST_SHARE, said.memory * _LIKELY_SHARE, most, why)


def disagreements(stated: Stated | None, shape: ModelShape | None, size: int, name: str = "") -> Iterator[str]:
    """Pairs of figures for the same weights that cannot both be right: of the recipe, its source, its dimensions, its
    name."""
    known = [*claims(stated, name)]
    if size:
        known.insert(0, WeightClaim(size, size, size, f"model.size {gib(size)}"))
    if shape and not missing(shape) and not shape.loose and not shape.tables_unknown:
        counted = sum(part.bytes for part in main(shape))
        why = f"{gib(int(counted))} by the dimensions at {shape.expert_format or shape.format}"
        known.append(WeightClaim(counted * 0.9, counted, counted * 1.3, why))
    least, hint = least_by_name(name)
    if least:
        known.append(WeightClaim(least, least, inf, hint))
    for number, first in enumerate(known):
        for other in known[number + 1 :]:
            if first.low > CONTRADICTS * other.high or other.low > CONTRADICTS * first.high:
                yield f"{first.why}; {other.why}"
