"""Writes random weights for a small Qwen3: `random_weights.py FOLDER`, which has config.json and the tokenizer.

The engines' own dummy weights are so small that every answer is one word over and over, which the supervisor calls
garbage. These are not: each token changes what comes next, so an answer is noise of many words.
"""

import json
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np

SPREAD = 0.08


def tensor_shapes(config: dict[str, Any]) -> dict[str, list[int]]:
    """Names and shapes of a dense Qwen3 checkpoint; norms have one dimension."""
    hidden, inner, width = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * width, config["num_key_value_heads"] * width
    layer = {
        "input_layernorm": [hidden], "post_attention_layernorm": [hidden],
        "self_attn.q_norm": [width], "self_attn.k_norm": [width],
        "self_attn.q_proj": [queries, hidden], "self_attn.k_proj": [keys, hidden],
        "self_attn.v_proj": [keys, hidden], "self_attn.o_proj": [hidden, queries],
        "mlp.gate_proj": [inner, hidden], "mlp.up_proj": [inner, hidden], "mlp.down_proj": [hidden, inner],
    }  # fmt: skip
    found = {
        f"model.layers.{n}.{name}.weight": shape
        for n in range(config["num_hidden_layers"])
        for name, shape in layer.items()
    }
    table = [config["vocab_size"], hidden]
    return found | {"model.embed_tokens.weight": table, "lm_head.weight": table, "model.norm.weight": [hidden]}


def tensor_values(shapes: dict[str, list[int]]) -> dict[str, np.ndarray[Any, Any]]:
    """Values in float32; every norm is 1."""
    noise = np.random.default_rng(7)
    return {
        name: np.ones(shape, np.float32)
        if len(shape) == 1
        else noise.standard_normal(shape, dtype=np.float32) * np.float32(SPREAD)
        for name, shape in shapes.items()
    }


def write_checkpoint(folder: Path) -> int:
    """Bytes of the tensors in model.safetensors, in bfloat16."""
    values = tensor_values(tensor_shapes(json.loads((folder / "config.json").read_text())))
    header, at, data = dict[str, Any](), 0, list[bytes]()
    for name, one in values.items():
        data.append((one.view(np.uint32) >> 16).astype(np.uint16).tobytes())
        header[name] = {"dtype": "BF16", "shape": list(one.shape), "data_offsets": [at, at + len(data[-1])]}
        at += len(data[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))
    return at


if __name__ == "__main__":
    print(f"{write_checkpoint(Path(sys.argv[1])) / 1e6:.0f} MB in {sys.argv[1]}/model.safetensors")
