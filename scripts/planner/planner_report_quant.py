"""The stated number format of a row, put into the model's shape: the config of that checkpoint is not here.

A row calls a checkpoint `nvfp4`; whether its attention is too, only its config reports. Where the row or the facts know
how large the checkpoint is, the way of writing that comes nearest to it is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from sparkwright.domain.model import ModelShape
from sparkwright.planner import parts as model_parts
from sparkwright.planner.packings import packed_bits

# Word -> our name of the format. GGUF's mixed formats by their bulk; those below 4 bits and EXL3 have no name here.
_FORMATS = (
    (r"nvfp4|modelopt_fp4|w4a16_nvfp4", "nvfp4"), (r"mxfp4|fp4", "mxfp4"), (r"fp8|mxfp8|fp8_\w+", "fp8"),
    (r"int4|awq|gptq|gptq_marlin|autoround|4bit", "int4"), (r"int8|w8a\d+", "int8"),
    (r"bf16|fp16|f16", "bf16"),
)  # fmt: skip
_ODD = re.compile(r"exl3|i?q\d(_\w+|k)?|nf3|quant|\d(\.\d+)?bpw")
_GROUPS = {"nvfp4": 16, "mxfp4": 32, "int4": 128, "int8": 128}
_ROUNDED = 1.03  # published sizes are rounded, and the count of parts is not exact either
_BLOCK = 128  # of FP8 with scales by block
_FOUR = ("nvfp4", "mxfp4", "int4")
_TABLES = ("bf16", "fp8", "nvfp4")
# The format's name -> the method that configs name for it, most often.
_METHODS = {"nvfp4": "modelopt", "mxfp4": "mxfp4", "fp8": "fp8", "int4": "gptq", "int8": "gptq"}
_GROUP = re.compile(r"\bgroups? of (\d{2,3})\b")
_ALL = re.compile(r"qkv|attention|attn")


def formats(text: str) -> tuple[str, ...]:
    """The formats that a text names, in order, each once; the cache's own is none of the weights'."""
    bare = re.sub(r"\w+ kv\b|\(.*?kv.*?\)", " ", text.lower())
    words = re.split(r"[\s/+,;()-]+", bare)
    found = (_format(word) for word in words)
    return ("bf16",) if "unquantized" in words else tuple(dict.fromkeys(one for one in found if one))


def is_odd_packing(text: str) -> bool:
    """True if it names a packing whose bytes a number nothing here knows."""
    words = re.split(r"[\s/+,;()-]+", text.lower())
    if "unquantized" in words:
        return False
    return any(_ODD.fullmatch(word) for word in words) or ("gguf" in words and not formats(text))


def packing(text: str) -> str:
    """Its bits of a weight as a format; '' where it names none, and only the files' bytes would tell."""
    bits = packed_bits(text)
    return f"{bits:.3f}bit" if bits else ""


def everything(text: str) -> bool:
    """True if attention has the smaller format, too."""
    return bool(_ALL.search(text.lower()))


def written(shape: ModelShape, named: tuple[str, ...], size: int, attention: bool = False) -> ModelShape:
    """The shape in the row's formats; as it is when they state nothing else than its own config.

    size: bytes of the checkpoint, 0 when nobody reports. attention: it is in the smaller format, too.
    """
    own = {shape.format, shape.expert_format} - {""}
    if not named or (shape.quantization and set(named) <= own and not attention):
        return shape
    ways = tuple(each for way in _ways(shape, named, attention) for each in _with_tables(way))
    return min(ways, key=lambda way: abs(weight(way) - size)) if size and all(map(weight, ways)) else ways[0]


def _with_tables(way: ModelShape) -> tuple[ModelShape, ...]:
    """Tools leave tables as they are, or write them in a format of their own: where no config reports, any."""
    if not way.tables or way.table_format:
        return (way,)
    return tuple(replace(way, table_format=each) for each in _TABLES)


def in_groups(shape: ModelShape, text: str) -> ModelShape:
    """The shape with as many inputs to a scale of its integers as the text says.

    cyankiwi's have 32: four builds of three sources weigh 5 to 16 % more than is planned with groups of 128.
    """
    said = _GROUP.search(text.lower())
    size = int(said[1]) if said else 32 if "cyankiwi" in text.lower() else 0
    if not size:
        return shape
    group, experts = shape.format == "int4", shape.expert_format == "int4"
    return replace(shape, group=size if group else shape.group, expert_group=size if experts else shape.expert_group)


def weight(shape: ModelShape) -> float:
    """Bytes of all parts that are counted, without draft layers; 0 when a dimension is missing."""
    return 0.0 if model_parts.missing(shape) else sum(part.bytes for part in model_parts.main(shape))


def in_bytes(size: int, shape: ModelShape) -> int:
    """Bytes of a size that a page gives in GB, where it can only mean GiB: its own dimensions weigh more than that."""
    if model_parts.packed(shape):
        return size  # bits by a packing's name are not that exact
    least, larger = weight(shape), int(size * (1 << 30) / 1e9)
    return larger if least > size * _ROUNDED and abs(larger - least) < least - size else size


def _format(word: str) -> str:
    return next((name for pattern, name in _FORMATS if re.fullmatch(pattern, word)), "")


def _ways(shape: ModelShape, named: tuple[str, ...], attention: bool) -> Iterator[ModelShape]:
    """The first is the usual one. Two formats: the smaller is the experts'. One of 4 bits: the rest may be larger."""
    experts = next((one for one in named if one in _FOUR), named[0])
    others = [one for one in named if one != experts]
    native = shape.format if shape.quantization and shape.format not in _FOUR and experts in _FOUR else ""
    if not shape.experts or attention:
        yield _with(shape, others[0] if others and experts == "bf16" else experts, "")
    elif others or native:
        yield _with(shape, others[0] if others else native, experts)
    elif experts in _FOUR:
        # Published NVFP4 and MXFP4 checkpoints mostly leave attention as it was, but NVFP4 not the plain one of Qwen3
        # and GLM-4.7 (four builds of four sources weigh that much). Integers take it along.
        whole, rest = _with(shape, experts, ""), (_with(shape, "bf16", experts), _with(shape, "fp8", experts))
        plain = not (shape.latent or shape.state_layers or shape.window_layers)
        along = experts == "int4" or (experts == "nvfp4" and plain)
        yield from (whole, *rest) if along else (*rest, whole)
    else:
        yield _with(shape, experts, "")


def _with(shape: ModelShape, rest: str, experts: str) -> ModelShape:
    return replace(
        shape,
        quantization=_METHODS.get(experts or rest, ""),
        format=rest,
        rows=_BLOCK if rest == "fp8" else 0,
        group=_BLOCK if rest == "fp8" else _GROUPS.get(rest, 0),
        expert_format=experts,
        expert_group=_GROUPS.get(experts, 0),
    )
