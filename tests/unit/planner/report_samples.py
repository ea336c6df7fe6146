"""Rows in the form of the published measurements, written for these tests."""

from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
SHARED = ROOT.parent / "shared" / "data"

# Dimensions of no model that exists.
FACTS = {
    "id": "maker/Alpha-3-7B-Instruct", "architecture": "LlamaForCausalLM", "total_params_b": 6.7,
    "active_params_b": 6.7, "layers": 32, "hidden": 4096, "attention": "gqa",
    "q_heads": 32, "kv_heads": 8, "head_dim": 128, "full_attention_layers": 32, "vocab": 32000, "max_position": 32768,
    "checkpoints": {"bf16_gb": 13.4, "packer_nvfp4_gb": 4.5, "nvfp4_weights_gib": 4.1},
}  # fmt: skip
MIXED = FACTS | {
    "id": "maker/Beta-30B-A3B", "attention": "swa+full (3:1, window 512)", "full_attention_layers": 8, "experts": 64,
    "experts_per_token": 4, "moe_intermediate": 1024, "shared_experts": 1, "total_params_b": 30, "active_params_b": 3,
    "checkpoints": None,
}  # fmt: skip

RESULT: dict[str, Any] = {
    "fits": True, "weights_gib_per_node": None, "kv_cache_gib": None, "kv_cache_tokens": None, "graph_gib": None,
    "free_after_gib": None, "decode_tps": [], "prefill_tps": [], "ttft_s": [], "acceptance": None, "failure": None,
}  # fmt: skip
ROW: dict[str, Any] = {
    "id": "lab-alpha", "source": "github lab/benchmarks run.md", "date": "2026-06", "nodes": 1,
    "model": "packer/Alpha-3-7B-Instruct-NVFP4", "checkpoint_gb": None, "quant": "nvfp4", "engine": "vllm",
    "engine_version_or_image": "lab/vllm-spark:1.2.3 (0.21.1rc1, FlashInfer 0.6.14)", "tp": 1, "pp": None, "ep": None,
    "gpu_memory_utilization": 0.8, "max_model_len": 32768, "max_num_seqs": None, "max_num_batched_tokens": None,
    "kv_cache_dtype": "fp8", "spec_decode": None, "attention_backend": None, "cuda_graphs": None, "result": RESULT,
    "notes": None,
}  # fmt: skip


def published_row(**changes: Any) -> dict[str, Any]:
    """ROW with other fields; those of the result by their own names."""
    result = {name: changes.pop(name) for name in list(changes) if name in RESULT}
    return {**ROW, **changes, "result": {**RESULT, **result}}
