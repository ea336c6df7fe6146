"""Bits of a weight by the name of its packing: EXL3's own figure, GGUF types and mixes, codebooks by their bits."""

import re
import tomllib
from importlib.resources import files

_DATA = tomllib.loads((files("sparkwright.planner") / "packings.toml").read_text(encoding="utf-8"))
_TYPES: dict[str, float] = _DATA["gguf"]
_FAMILIES: dict[str, float] = _DATA["gguf_families"]
_PER_WEIGHT = re.compile(
    r"(?<![\d.])(\d(?:\.\d{1,3})?)[-_ ]?bpw|exl3[-_ ](\d(?:\.\d{1,3})?)(?![\d.]|bpw)", re.IGNORECASE
)
_GGUF = re.compile(r"(?<![a-z0-9])([it]?q\d(?:_[a-z0-9]+){1,2}|mxfp4_moe)(?![a-z0-9])", re.IGNORECASE)
# Codebooks (AQLM, QTIP, QuIP#, VPTQ) are named by bits alone: `AQLM-2Bit-1x16`, `qtip-3bit`.
_CODEBOOK = re.compile(r"(?<![a-z])(?:aqlm|qtip|quip|vptq)[a-z#]*[-_ ]?(?:pv[-_ ])?([1-4])[-_ ]?bit", re.IGNORECASE)


def packed_bits(name: str) -> float:
    """Bits of a weight; 0.0 where the name tells of no packing. Of several figures the largest."""
    if "unquantized" in name.lower():
        return 0.0
    own = [float(one or other) for one, other in _PER_WEIGHT.findall(name)]
    types = [_of_gguf(found.upper()) for found in _GGUF.findall(name)]
    books = [float(found) for found in _CODEBOOK.findall(name)]
    return max([*own, *types, *books], default=0.0)


def _of_gguf(name: str) -> float:
    return _TYPES.get(name) or _FAMILIES.get("_".join(name.split("_")[:2]), 0.0)
