"""The metadata of a GGUF file -> ModelShape: its keys (gguf.toml) are put in the words of config.json, read as such."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sparkwright.domain.checkpoint import TensorGroup
from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.domain.values import dataclass, replace
from sparkwright.facts import model_config
from sparkwright.facts.model_values import known_values

_DELTA = ("qwen3next", "qwen35", "qwen35moe")


def tensor_type(kind: int) -> tuple[str, int, int]:
    """Its name, the numbers in a block, and the bytes of one; 0 bytes for a type that is not known."""
    name, block, size = known_values("gguf")["blocks"].get(str(kind), (f"#{kind}", 1, 0))
    return name, block, size


@dataclass(frozen=True, slots=True)
class _Keys:
    """The metadata under the architecture's own prefix."""

    arch: str
    metadata: Mapping[str, Any]

    def get(self, key: str) -> Any:
        return self.metadata.get(f"{self.arch}.{key}")

    def number(self, key: str) -> int:
        """The number, of a list (one value a layer) the largest."""
        return max(self.numbers(key), default=0)

    def numbers(self, key: str) -> list[int]:
        value = self.get(key)
        return [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, int) and v >= 0]

    def each(self, key: str) -> list[int]:
        """One value a layer; empty when one is for all."""
        return self.numbers(key) if isinstance(self.get(key), list) else []


def shape_of(metadata: Mapping[str, Any], tensors: Sequence[TensorGroup], all_there: bool) -> ModelShape | Unknown:
    """all_there: the table of tensors was read, so what is not in it is not in the file."""
    arch = metadata.get("general.architecture")
    if not isinstance(arch, str) or not arch:
        return Unknown("", "the GGUF header names no architecture")
    keys = _Keys(arch, metadata)
    # A damaged count must cost nothing: the reader of config.json refuses such a number of layers.
    layers = min(keys.number("block_count") - keys.number("nextn_predict_layers"), model_config.MOST_LAYERS + 1)
    plain = {name: keys.number(key) for key, name in known_values("gguf")["keys"].items() if keys.number(key)}
    tokens = keys.metadata.get("tokenizer.ggml.tokens")
    heads = keys.numbers("attention.head_count_kv")
    config = {
        "model_type": known_values("gguf")["classes"].get(keys.arch, ""),
        **plain,
        "num_hidden_layers": layers,
        "num_attention_heads": keys.number("attention.head_count"),
        "num_key_value_heads": max(heads, default=0),
        "intermediate_size": keys.number("feed_forward_length"),
        "vocab_size": keys.number("vocab_size") or (tokens if isinstance(tokens, int) else 0),
        **_latent(keys),
        **_state(keys),
        **_kinds(keys, layers),
    }
    config["tie_word_embeddings"] = all_there and all(group.name != "output.weight" for group in tensors)
    shape = model_config.parse(json.dumps(config))
    if isinstance(shape, Unknown):
        return Unknown(arch[:40], shape.why.replace("config.json", "the GGUF header"))
    # Its tables are in fewer bits, too: the file's size tells in how many.
    shape = replace(shape, table_format="")
    return replace(shape, architecture="".join(arch.split())[:40], quantization="gguf", **_formats(tensors))


def _latent(keys: _Keys) -> dict[str, Any]:
    """MLA: the lengths without `_mla` are those of the latent, which counts as one head."""
    rope, whole = keys.number("rope.dimension_count"), keys.number("attention.key_length_mla")
    value = keys.number("attention.value_length_mla")
    if keys.number("attention.kv_lora_rank"):
        whole, value = whole or keys.number("attention.key_length"), value or keys.number("attention.value_length")
        return {"qk_rope_head_dim": rope, "qk_nope_head_dim": max(whole - rope, 0), "v_head_dim": value}
    value = keys.number("attention.value_length")
    return {"v_head_dim": value} if value != keys.number("attention.key_length") else {}


def _state(keys: _Keys) -> dict[str, Any]:
    inner, heads = keys.number("ssm.inner_size"), keys.number("ssm.time_step_rank")
    groups, size, conv = (keys.number(f"ssm.{key}") for key in ("group_count", "state_size", "conv_kernel"))
    if keys.number("kda.head_dim"):
        return {"linear_num_heads": keys.number("attention.head_count"), "linear_conv_kernel_dim": conv}
    if not inner:
        return {}
    each = inner // max(heads, 1)
    if keys.arch in _DELTA:
        keyed = {"linear_num_key_heads": groups, "linear_key_head_dim": size, "linear_conv_kernel_dim": conv}
        return {**keyed, "linear_num_value_heads": heads, "linear_value_head_dim": each}
    if groups:
        sizes = {"mamba_num_heads": heads, "mamba_head_dim": each, "n_groups": groups}
        return {**sizes, "ssm_state_size": size, "conv_kernel": conv}
    hidden = keys.number("embedding_length")
    return {"mamba_expand": inner // max(hidden, 1), "mamba_d_state": size, "mamba_d_conv": conv}


def _kinds(keys: _Keys, layers: int) -> dict[str, Any]:
    """Layer by layer, where the header has it: no KV heads means a state, or a layer that is only an FFN."""
    kv, wide = keys.each("attention.head_count_kv")[:layers], keys.each("feed_forward_length")[:layers]
    marks = keys.each("attention.sliding_window_pattern")[:layers]
    if not marks and 0 not in kv:
        every = keys.number("attention.sliding_window_pattern")
        return {"sliding_window_pattern": every} if every else {}
    ffn = "moe" if keys.number("expert_count") else "mlp"
    alone = 0 in wide and 0 in kv
    kinds = ["sliding_attention" if n < len(marks) and marks[n] else "full_attention" for n in range(layers)]
    for n, heads in enumerate(kv):
        if not heads:
            kinds[n] = ffn if alone and n < len(wide) and wide[n] else "linear_attention"
    return {"layer_types": kinds, **_heads(kv, kinds)}


def _heads(kv: Sequence[int], kinds: Sequence[str]) -> dict[str, Any]:
    """KV heads of the two sorts of attention, where each layer has its own number."""
    by = {kind: max((n for n, k in zip(kv, kinds, strict=False) if k == kind), default=0) for kind in set(kinds)}
    full, window = by.get("full_attention", 0), by.get("sliding_attention", 0)
    return {name: n for name, n in (("num_key_value_heads", full), ("swa_num_key_value_heads", window)) if n}


def _formats(tensors: Sequence[TensorGroup]) -> dict[str, Any]:
    """The type that most bytes of the experts, and of the other layers, are written in."""
    layers = [group for group in tensors if group.name.startswith("blk.")]
    rest, group = _most(g for g in layers if "exps" not in g.name)
    experts, expert_group = _most(g for g in layers if "exps" in g.name)
    told = {"format": rest, "group": group}
    return told | {"expert_format": experts, "expert_group": expert_group} if experts and experts != rest else told


def _most(tensors: Any) -> tuple[str, int]:
    found: Counter[str] = Counter()
    for group in tensors:
        found[group.dtype] += group.bytes
    written, scale = known_values("gguf")["formats"].get(found.most_common(1)[0][0], ("", 0)) if found else ("", 0)
    return written, scale
