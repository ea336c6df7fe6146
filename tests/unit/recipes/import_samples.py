"""Recipes as other tools' users write them: made up for these tests, in the real formats."""

SPARKRUN_V2 = r"""
recipe_version: "2"
model: acme/Big-MoE-NVFP4
model_revision: 0123abc
runtime: vllm
min_nodes: 2
container: example/dgx-vllm:0.24.0
metadata:
  description: Big MoE in NVFP4, two nodes
  source: https://example.org/big-moe
defaults:
  port: 8001
  host: 0.0.0.0
  tensor_parallel: 2
  gpu_memory_utilization: 0.8
  max_model_len: 131072
  served_model_name: big-moe
  load_format: fastsafetensors
  draft: 3
env:
  VLLM_MARLIN_USE_ATOMIC_ADD: "1"
  NCCL_IB_HCA: rocep1s0f0
  HF_TOKEN: hf_abcdefghijklmnopqrstuvwxyz0123456789
  STATE_PATH: "{launch.runtime_cache_dir}/state"
  SIZE: "{config.tensor_parallel}"
mods: [fix-something]
executor_config: {shm_size: 32gb, privileged: true}
command: |
  # the whole node is ours
  vllm serve {model} \
    --trust-remote-code \
    --served-model-name {served_model_name} \
    --gpu-memory-utilization {gpu_memory_utilization} \
    -tp {tensor_parallel} \@
    --max-model-len {max_model_len} \
    --load-format {load_format} \
    --speculative-config '{"method":"mtp","num_speculative_tokens":{draft},"moe_backend":"triton"}' \
    --enable-auto-tool-choice --tool-call-parser qwen3_xml \
    --no-enable-flashinfer-autotune \
    --api-key sk-abcdefghijklmnopqrstuvwx \
    --host {host} --port {port}
""".replace("@", " ")  # a space behind a continuation
SPARKRUN_V1 = r"""
recipe_version: "1"
name: Flash Next (Cluster)
model: acme/Flash-Next
container: vllm-node
cluster_only: true
build_args: [--exp]
defaults: {port: 8000, tensor_parallel: 2, num_speculative_tokens: 4, max_num_seqs: 2}
command: |
  vllm serve acme/Flash-Next --port {port} --tensor-parallel-size {tensor_parallel} --max-num-seqs {max_num_seqs} \
    --speculative-config '{{"method":"mtp","num_speculative_tokens":{num_speculative_tokens}}}' \
    --compilation-config '{{"pass_config":{{"fuse_act_quant":true}}}}'
"""
SPARKRUN_SGLANG = """
model: acme/Sparse-FP8
runtime: sglang
container: example/sglang@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
runtime_version: 0.5.16
defaults:
  tensor_parallel: 4
  expert_parallel: 1
  max_model_len: 65536
  gpu_memory_utilization: 0.75
  chunked_prefill: 4096
  max_num_seqs: 16
  attention_backend: flashinfer
  speculative_algorithm: NEXTN
  speculative_num_steps: 3
  speculative_eagle_topk: 1
  speculative_num_draft_tokens: 4
  speculative_attention_mode: decode
  revision: "{model_revision}"
model_revision: fb27
"""
SPARKRUN_LLAMA = """
model: acme/Small-GGUF:Q4_K_M
container: example/llama:latest
solo_only: true
command: llama-server -hf {model} -c {ctx_size} -ngl 99 --port {port}
defaults: {ctx_size: 16384, port: 8080}
"""
VLLM = """
meta:
  title: "Flash-35B"
  slug: flash-35b
  hardware: {dgx_spark_gb10: verified, h100: verified}
model:
  model_id: acme/Flash-35B
  min_vllm_version: "0.24.0"
  context_length: 262144
  base_args: ["--trust-remote-code", "--max-num-seqs", "8"]
  base_env: {}
features:
  tool_calling: {args: ["--enable-auto-tool-choice", "--tool-call-parser", "qwen3_xml"]}
  spec_decoding:
    modes: {mtp: {args: ["--speculative-config", '{"method":"mtp","num_speculative_tokens":3}']}}
opt_in_features: [spec_decoding]
variants:
  default: {precision: bf16}
  nvfp4:
    model_id: nvidia/Flash-35B-NVFP4
    tp: 1
    min_vllm_version: "0.27.1"
    hardware_overrides:
      dgx_spark_gb10:
        extra_args: ["--kv-cache-dtype", "fp8", "--gpu-memory-utilization", "0.5", "--moe-backend", "marlin"]
        extra_env: {VLLM_USE_FLASHINFER_MOE_FP4: "1"}
      rtx_5090:
        extra_args: ["--max-model-len", "65536"]
compatible_strategies: [single_node_tp]
guide: |
  text
"""
