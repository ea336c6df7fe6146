"""The simulator's facts of a model, read from its folder: config.json, the shard index, file sizes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sparkwright.domain.values import dataclass

GIB = 1024**3
BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0}
QUANTIZED = {
    "fp8": 1.0,
    "mxfp4": 0.53125,
    "modelopt": 0.5625,
    "nvfp4": 0.5625,
    "gptq": 0.53,
    "awq": 0.53,
    "fp4": 0.53125,
}
"""Bytes per parameter of quantized linear layers, scales included."""

_SHIPPED = Path(__file__).parent / "models"


@dataclass(frozen=True, slots=True)
class SimulatedModel:
    """Sizes in bytes and counts, of the whole model."""

    path: str
    architecture: str
    limit: int
    vocab: int
    hidden: int
    layers: int
    intermediate: int
    weights: float
    active: float
    """Bytes read to decode one token: all of a dense model, the chosen experts of a mixture."""
    experts: float
    """Bytes of all experts: what a large batch ends up reading."""
    chosen: float
    """Share of the experts that one token uses."""
    fan_out: int
    """Experts per token."""
    streams: int
    """Residual streams (hyper-connections of DeepSeek V4)."""
    parameters_active: float
    shards: int
    kv_heads: int
    kv_width: int
    """Elements that one KV head stores per token and layer: keys and values, or one latent row (MLA)."""
    latent: bool
    """One row shared by all heads (MLA): tensor parallelism does not split it."""
    compressed: tuple[int, ...]
    """DeepSeek V4: tokens per stored entry of each layer; 0 is a window-only layer."""
    quantized: str


def find_model(name: str, hub: str) -> Path | None:
    """The folder of a local path or of a hub id that the cache holds; `None` when there is neither."""
    if Path(name).is_dir():
        return Path(name)
    if name.count("/") != 1 or name.startswith(("/", ".")):
        return None
    root = Path(hub) / ("models--" + name.replace("/", "--"))
    ref = root / "refs" / "main"
    folder = root / "snapshots" / (ref.read_text(encoding="utf-8").strip() if ref.is_file() else "none")
    # The shapes of the recipes that the simulator plays come with it: they have no files on any node.
    shipped = _SHIPPED / name.replace("/", "--")
    return next((f for f in (folder, shipped) if f.is_dir()), None)


def read(folder: Path, name: str, weights_gib: float | None) -> SimulatedModel:
    """Raises OSError without config.json, ValueError when it is not JSON or lacks its shape."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config = {**config, **config.get("text_config", {})}
    if "hidden_size" not in config or "num_hidden_layers" not in config:
        raise ValueError(f"{folder / 'config.json'} has no hidden_size or num_hidden_layers")
    said = config.get("sparkwright_twin", {})
    shape = _Shape(config)
    stated = weights_gib or said.get("weights_gib")
    on_disk, shards = _on_disk(folder)
    weights = float(stated) * GIB if stated else (on_disk or shape.bytes_all)
    scale = weights / shape.bytes_all
    width, heads, latent = _kv(config)
    return SimulatedModel(
        path=name,
        architecture=str(config.get("architectures", ["LlamaForCausalLM"])[0]),
        limit=int(config.get("max_position_embeddings", 8192)),
        vocab=int(config.get("vocab_size", 32000)),
        hidden=int(config["hidden_size"]),
        layers=int(config["num_hidden_layers"]),
        intermediate=shape.intermediate,
        weights=weights,
        active=shape.bytes_active * scale,
        experts=shape.bytes_experts * scale,
        chosen=shape.chosen,
        fan_out=int(config.get("num_experts_per_tok", 0)),
        streams=int(config.get("hc_mult", 1)),
        parameters_active=shape.active,
        shards=int(said.get("shards") or shards or max(1, round(weights / (5 * GIB)))),
        kv_heads=heads,
        kv_width=width,
        latent=latent,
        compressed=tuple(config.get("compress_ratios", ())[: int(config["num_hidden_layers"])]),
        quantized=str(config.get("quantization_config", {}).get("quant_method", "")),
    )


def _on_disk(folder: Path) -> tuple[float, int]:
    """Bytes and files of the checkpoint: the index's own total first, since files may be links or still missing."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        listed = json.loads(index.read_text(encoding="utf-8"))
        names = set(listed.get("weight_map", {}).values())
        total = float(listed.get("metadata", {}).get("total_size", 0))
        sizes = sum((folder / n).stat().st_size for n in names if (folder / n).is_file())
        return total or float(sizes), len(names)
    files = sorted(folder.glob("*.safetensors"))
    return float(sum(f.stat().st_size for f in files)), len(files)


def _kv(config: dict[str, Any]) -> tuple[int, int, bool]:
    if "kv_lora_rank" in config:
        return int(config["kv_lora_rank"]) + int(config["qk_rope_head_dim"]), 1, True
    heads = int(config.get("num_key_value_heads") or config["num_attention_heads"])
    width = 2 * _head_dim(config)
    return width, heads, "compress_ratios" in config


def _head_dim(config: dict[str, Any]) -> int:
    return int(config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"])


class _Shape:
    """Parameters and bytes from the dimensions, for models without weights (`--load-format dummy`)."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        hidden, layers = int(config["hidden_size"]), int(config["num_hidden_layers"])
        embed = hidden * int(config.get("vocab_size", 32000)) * (1 if config.get("tie_word_embeddings") else 2)
        count = int(config.get("num_local_experts") or config.get("num_experts") or config.get("n_routed_experts") or 0)
        self.intermediate = int(config.get("moe_intermediate_size") or config.get("intermediate_size") or 4 * hidden)
        expert = 3 * hidden * self.intermediate
        used = int(config.get("num_experts_per_tok", 0))
        self.chosen = used / count if count else 1.0
        dense = int(config.get("first_k_dense_replace", 0)) if count else layers
        wide = 3 * hidden * int(config.get("intermediate_size") or self.intermediate)
        shared = expert * int(config.get("n_shared_experts", 0) or 0) * (layers - dense)
        plain = layers * self._attention(hidden) + dense * wide + shared
        routed = count * expert * (layers - dense)
        linear, routed_bytes = self._widths()
        self.active = embed / 2 + plain + routed * self.chosen
        self.bytes_experts = routed * routed_bytes
        self.bytes_all = embed * 2.0 + plain * linear + self.bytes_experts
        self.bytes_active = embed + plain * linear + self.bytes_experts * self.chosen

    def _attention(self, hidden: int) -> float:
        c = self.config
        heads = int(c["num_attention_heads"])
        if "kv_lora_rank" in c:
            nope, rope, value = int(c["qk_nope_head_dim"]), int(c["qk_rope_head_dim"]), int(c["v_head_dim"])
            query = heads * (nope + rope)
            rank = int(c.get("q_lora_rank") or 0)
            asked = rank * (hidden + query) if rank else hidden * query
            latent = int(c["kv_lora_rank"])
            return float(asked + hidden * (latent + rope) + latent * heads * (nope + value) + heads * value * hidden)
        width = _head_dim(c)
        if "o_lora_rank" in c:
            rank = int(c["q_lora_rank"])
            return float(rank * (hidden + heads * width) + hidden * 2 * width + 2 * hidden * heads * width // 4)
        shared = int(c.get("num_key_value_heads") or heads)
        return float(2 * hidden * heads * width + 2 * hidden * shared * width)

    def _widths(self) -> tuple[float, float]:
        plain = BYTES.get(str(self.config.get("torch_dtype") or self.config.get("dtype")), 2.0)
        method = str(self.config.get("quantization_config", {}).get("quant_method", ""))
        linear = QUANTIZED.get(method, plain)
        return linear, QUANTIZED.get(str(self.config.get("expert_dtype", "")), linear)
