"""How a model's numbers are written, from its config.json: method, format, and how many of them share a scale."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

Config = Mapping[str, Any]

_PLAIN = {"bfloat16": "bf16", "float16": "bf16", "float32": "fp32", "bf16": "bf16", "fp16": "bf16"}
_ALGORITHMS = {
    "nvfp4": "nvfp4", "w4a16_nvfp4": "nvfp4", "mxfp4": "mxfp4", "w4a16_awq": "int4",
    "fp8": "fp8", "fp8_pb_wo": "fp8", "fp8_block_scales": "fp8", "mxfp8": "fp8",
}  # fmt: skip
_METHODS = {"fp8": "fp8", "mxfp4": "mxfp4", "nvfp4": "nvfp4", "modelopt_fp4": "nvfp4", "deepseek_v4_fp8": "fp8"}
_INTEGERS = ("gptq", "awq", "auto-round", "auto_round", "inc", "gptq_marlin", "awq_marlin", "intel/auto-round")
_BLOCKS = {"nvfp4": 16, "mxfp4": 32}  # fixed by the formats themselves (OCP MX: 32; NVFP4: 16)
_LEFT_OUT = ("ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers")
_MIXERS = r"attn|attention|mixer\.\w+_proj"  # Nemotron-H calls attention and Mamba `mixer`
# DeepSeek-V4 writes `expert_dtype: fp4` beside quant_method fp8: MXFP4 experts (vLLM 0.21.0 starts it with them).
_EXPERT_TYPES = {"fp4": "mxfp4", "mxfp4": "mxfp4", "nvfp4": "nvfp4", "fp8": "fp8", "bf16": "bf16"}


def weights(top: Config, config: Config, layers: int) -> dict[str, Any]:
    """ModelShape's fields about formats. A format that no key tells is ''."""
    plain = _PLAIN.get(str(config.get("dtype") or config.get("torch_dtype") or top.get("torch_dtype") or ""), "")
    found = _quantization(top, config)
    if not found:
        return {"format": plain}
    method = str(found.get("quant_method") or "")
    written, rows, group = _numbers(found)
    named = {"quantization": "".join(method.split())[:40]}
    if isinstance(listed := found.get("quantized_layers"), Mapping):
        rest = {"format": written, "rows": rows, "group": group} if written else {"format": plain}
        return named | _mixed(listed, rest)
    experts = _EXPERT_TYPES.get(str(config.get("expert_dtype") or ""), "")
    if experts:
        special = {"expert_format": experts, "expert_group": _BLOCKS.get(experts, 0)}
        return named | {"format": written, "rows": rows, "group": group} | special
    if _attention_left_out(found, layers):
        return named | {"format": plain, "expert_format": written, "expert_group": max(rows, group)}
    return named | {"format": written, "rows": rows, "group": group}


def _mixed(listed: Config, rest: dict[str, Any]) -> dict[str, Any]:
    """ModelOpt's MIXED_PRECISION names each quantized layer: what most experts have, and most attention or Mamba.

    A dense model has its FFN's instead, which is most of it. rest: what is so where no name tells it. Draft layers,
    shared experts and other tables are not looked at.
    """
    experts, attention, ffn = (_usual(listed, part) for part in (r"\.experts(\.|$)", _MIXERS, "mlp"))
    told = attention if experts else ffn or attention
    special = {"expert_format": experts[0], "expert_group": experts[1]} if experts else {}
    return ({"format": told[0], "group": told[1]} if told else rest) | special


def _usual(listed: Config, part: str) -> tuple[str, int] | None:
    """(format, group) of most layers whose name has this part; None when none has."""
    named = (row for name, row in listed.items() if re.search(part, name) and not name.startswith("mtp"))
    rows = [row for row in named if isinstance(row, Mapping)]
    told = Counter((str(row.get("quant_algo")).lower(), _first(row, "group_size")) for row in rows)
    if not told:
        return None
    (algorithm, group), _ = told.most_common(1)[0]
    written = _ALGORITHMS.get(algorithm, "")
    return written, group or _BLOCKS.get(written, 0)


def _quantization(top: Config, config: Config) -> Config:
    for place in (top, config):
        for name in ("quantization_config", "compression_config"):
            found = place.get(name)
            if isinstance(found, Mapping):
                return found
    return {}


def _numbers(found: Config) -> tuple[str, int, int]:
    """(format, outputs that share a scale, inputs that share one)."""
    method = str(found.get("quant_method") or "").lower()
    algorithm = str(found.get("quant_algo") or "").lower()
    group = _first(found, "group_size")
    if method == "compressed-tensors" or (not algorithm and "config_groups" in found):
        return _compressed(found)
    written = _ALGORITHMS.get(algorithm) or _METHODS.get(method, "")
    if method in _INTEGERS or method.startswith("auto"):
        written = {4: "int4", 8: "int8"}.get(_first(found, "bits", "w_bit"), "")
    block = found.get("weight_block_size")
    rows, columns = _pair(block) if block else (0, group or _BLOCKS.get(written, 0))
    return written, rows, columns


def _compressed(found: Config) -> tuple[str, int, int]:
    """The first group of a compressed-tensors config: what its weights are."""
    groups = found.get("config_groups")
    inner = next((g.get("weights") for g in _values(groups) if isinstance(g, Mapping)), None)
    kind = inner if isinstance(inner, Mapping) else {}
    bits, group = _first(kind, "num_bits"), _first(kind, "group_size")
    written = f"{'fp' if kind.get('type') == 'float' else 'int'}{bits}"
    if written == "fp4":
        written = "mxfp4" if group == _BLOCKS["mxfp4"] else "nvfp4"
    rows, columns = _pair(kind.get("block_structure")) if kind.get("block_structure") else (0, group)
    return (written if written in ("nvfp4", "mxfp4", "fp8", "int4", "int8") else ""), rows, columns


def _attention_left_out(found: Config, layers: int) -> bool:
    """True when what is not quantized names the attention of most layers: then the method is about the rest."""
    names = [str(n) for key in _LEFT_OUT for n in _values(found.get(key)) if "attn" in str(n)]
    return len(names) * 2 >= layers > 0 or any(not any(c.isdigit() for c in name) for name in names)


def _values(value: Any) -> Iterator[Any]:
    yield from value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()


def _first(config: Config, *names: str) -> int:
    values = (config.get(name) for name in names)
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool) and v > 0), 0)


def _pair(value: Any) -> tuple[int, int]:
    """[rows, columns] of a block; 0, 0 for what is none."""
    sides = [v for v in _values(value) if isinstance(v, int) and not isinstance(v, bool) and v > 0]
    return (sides[0], sides[1]) if len(sides) == 2 else (0, 0)
