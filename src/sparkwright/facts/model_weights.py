"""The number format of a model, from its config.json: method, format, and the size of a group that shares a scale."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from sparkwright.domain.values import dataclass
from sparkwright.facts.model_values import Config, first_mapping, known_values, number

_MOST_BITS = 8.5
_HEAD = re.compile(r"lm_head\b")
_MIXERS = r"attn|attention|mixer\.\w+_proj"  # Nemotron-H calls attention and Mamba `mixer`


def _table(name: str) -> Any:
    """One list or table of [formats] in models.toml."""
    return known_values("models")["formats"][name]


def _block(format_: str) -> int:
    """Numbers that share a scale by the format itself; 0 where the config says it."""
    return int(_table("blocks").get(format_, 0))


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """One format; rows, group: how many outputs and inputs share a scale."""

    format: str = ""
    rows: int = 0
    group: int = 0


def weights(top: Config, config: Config, layers: int) -> dict[str, Any]:
    """ModelShape's fields about formats. A format without a key is ''."""
    dtype = str(config.get("dtype") or config.get("torch_dtype") or top.get("torch_dtype") or "")
    plain = _table("plain").get(dtype, "")
    found = _quantization(top, config)
    if not found:
        return {"format": plain}
    rest, experts = _parts(found, config, plain)
    if not experts and _attention_left_out(found, layers):
        # What a quantizer leaves as it was has 16 bits in every family; gpt-oss does not say so.
        rest, experts = WeightFormat(plain or "bf16"), rest
    named: dict[str, Any] = {"quantization": "".join(str(found.get("quant_method") or "").split())[:40]}
    if experts:
        named |= {"expert_format": experts.format, "expert_group": max(experts.rows, experts.group)}
    named |= {"output_format": _output(found), "activations": _activations(found)}
    return named | {"format": rest.format, "rows": rest.rows, "group": rest.group, "kv_format": _cache(found)}


def _output(found: Config) -> str:
    """The format of the vocabulary's output where the config says that it is quantized; '' elsewhere.

    ModelOpt names it among the layers of a mix, compressed-tensors as a target; a draft reads it for every token.
    """
    listed = first_mapping(found, "quantized_layers")
    rows = [row for name, row in listed.items() if _HEAD.search(str(name)) and isinstance(row, Mapping)]
    groups = (group for group in _values(found.get("config_groups")) if isinstance(group, Mapping))
    targets = [
        first_mapping(one, "weights")
        for one in groups
        if any(_HEAD.search(str(t)) for t in _values(one.get("targets")))
    ]
    kinds = [*map(_numbers, rows), *map(_group, targets)]
    return next((kind.format for kind in kinds if kind.format in _table("algorithms").values()), "")


def _activations(found: Config) -> int:
    """Bits of what most 4-bit weights are multiplied with, 16 where they alone are quantized; 0 if nothing says it."""
    # ModelOpt's list of layers comes first: nvidia/Qwen3.6-35B-A3B-NVFP4 has W4A16 there, and 4 bits in its groups.
    rows = [row for row in first_mapping(found, "quantized_layers").values() if isinstance(row, Mapping)]
    named = [str(one.get("quant_algo") or "").lower() for one in (rows or [found])]
    told = [bits for bits in map(_table("activations").get, named) if bits]
    groups = [one for one in _values(found.get("config_groups")) if isinstance(one, Mapping)]
    told = told or [
        number(first_mapping(one, "input_activations"), "num_bits") or 16
        for one in groups
        if number(first_mapping(one, "weights"), "num_bits") == 4
    ]
    return Counter(told).most_common(1)[0][0] if told else 0


def _cache(found: Config) -> str:
    """The type of the KV cache that the checkpoint was made for: engines take it unless another is given."""
    scheme = first_mapping(found, "kv_cache_scheme")
    if scheme:
        return {8: "fp8", 4: "nvfp4"}.get(number(scheme, "num_bits"), "") if scheme.get("type") == "float" else ""
    named = str(found.get("kv_cache_quant_algo") or "").lower()
    return named if named in ("fp8", "nvfp4") else ""


def _quantization(top: Config, config: Config) -> Config:
    """The config's section about it; ModelOpt's older files keep the method one level deeper."""
    places = (
        first_mapping(place, name) for place in (top, config) for name in ("quantization_config", "compression_config")
    )
    found = next(filter(None, places), {})
    return {**found, **first_mapping(found, "quantization")}


def _parts(found: Config, config: Config, plain: str) -> tuple[WeightFormat, WeightFormat | None]:
    """(format of most numbers, of the experts' where the config distinguishes them)."""
    experts = _table("experts").get(str(config.get("expert_dtype") or found.get("expert_dtype") or ""), "")
    if experts:
        return _numbers(found), WeightFormat(experts, 0, _block(experts))
    if listed := first_mapping(found, "quantized_layers"):
        return _mixed(listed, _numbers(found), plain)
    method, groups = str(found.get("quant_method") or "").lower(), first_mapping(found, "config_groups")
    if method == "compressed-tensors" or (groups and not found.get("quant_algo")):
        rows = [group for group in groups.values() if isinstance(group, Mapping)]
        return _apart(
            {f"{n} {group.get('targets')}": _group(first_mapping(group, "weights")) for n, group in enumerate(rows)}
        )
    return _numbers(found), None


def _mixed(listed: Config, whole: WeightFormat, plain: str) -> tuple[WeightFormat, WeightFormat | None]:
    """ModelOpt's MIXED_PRECISION names each quantized layer: what most experts have, and most attention or Mamba.

    A dense model has its FFN's instead, which is most of it. whole: the default without a name. Draft layers,
    shared experts and other tables are not inspected.
    """
    experts, attention, ffn = (_usual(listed, name) for name in (r"\.experts(\.|$)", _MIXERS, "mlp"))
    told = attention if experts else ffn or attention
    return told or (whole if whole.format else WeightFormat(plain)), experts


def _usual(listed: Config, name: str) -> WeightFormat | None:
    """The format of most layers whose name has this part; None when none has."""
    rows = (row for key, row in listed.items() if re.search(name, str(key)) and not str(key).startswith("mtp"))
    told = Counter(_numbers(row) for row in rows if isinstance(row, Mapping))
    return _most(told) if told else None


def _apart(kinds: Mapping[str, WeightFormat]) -> tuple[WeightFormat, WeightFormat | None]:
    """Formats by what they are for: the experts' most common one, and the most common one of everything else."""
    experts = Counter(kind for name, kind in kinds.items() if "expert" in name and "shared" not in name)
    rest = Counter(kind for name, kind in kinds.items() if "expert" not in name)
    if not experts or not rest:
        return _most(experts or rest), None
    return _most(rest), _most(experts)


def _most(kinds: Counter[WeightFormat]) -> WeightFormat:
    return kinds.most_common(1)[0][0] if kinds else WeightFormat()


def _numbers(found: Config) -> WeightFormat:
    method = str(found.get("quant_method") or "").lower()
    algorithm = str(found.get("quant_algo") or "").lower()
    group = number(found, "group_size")
    written = _table("algorithms").get(algorithm) or _table("methods").get(method, "")
    if method in _table("integers") or method.startswith("auto"):
        written = {4: "int4", 8: "int8"}.get(number(found, "bits", "w_bit"), "")
    if method in _table("packed") and (bits := _packed(found)):
        return WeightFormat(f"{bits:.3f}bit")
    block = found.get("weight_block_size")
    rows, columns = _pair(block) if block else (0, group or _block(written))
    return WeightFormat(written, rows, columns)


def _packed(found: Config) -> float:
    """Bits of a weight of a packing; 0.0 where the config does not give them."""
    size = number(found, "in_group_size") * (number(found, "out_group_size") or 1)
    books = number(found, "num_codebooks") * number(found, "nbits_per_codebook")
    given = [found.get(key) for key in ("bits", "w_bit", "bpw")]
    said = next((float(one) for one in given if isinstance(one, int | float) and not isinstance(one, bool)), 0.0)
    bits = books / size if books and size else said
    return bits if 0.5 <= bits <= _MOST_BITS else 0.0


def _group(kind: Config) -> WeightFormat:
    """The weights of one group of a compressed-tensors config."""
    bits, group = number(kind, "num_bits"), number(kind, "group_size")
    written = f"{'fp' if kind.get('type') == 'float' else 'int'}{bits}"
    if written == "fp4":
        written = "mxfp4" if group == _block("mxfp4") else "nvfp4"
    rows, columns = _pair(kind.get("block_structure")) if kind.get("block_structure") else (0, group)
    return WeightFormat(written if written in ("nvfp4", "mxfp4", "fp8", "int4", "int8") else "", rows, columns)


def _attention_left_out(found: Config, layers: int) -> bool:
    """True when what is not quantized names the attention of most layers: then the method is about the rest."""
    names = [str(n) for key in _table("left_out") for n in _values(found.get(key)) if "attn" in str(n)]
    return len(names) * 2 >= layers > 0 or any(not any(c.isdigit() for c in name) for name in names)


def _values(value: Any) -> Iterator[Any]:
    yield from value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()


def _pair(value: Any) -> tuple[int, int]:
    """[rows, columns] of a block; 0, 0 for what is none."""
    sides = [v for v in _values(value) if isinstance(v, int) and not isinstance(v, bool) and v > 0]
    return (sides[0], sides[1]) if len(sides) == 2 else (0, 0)
