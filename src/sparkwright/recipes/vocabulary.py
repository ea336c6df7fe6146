"""Names that people write for our keys: the engines' own flags, and which of them a recipe must not give itself."""

import re
from dataclasses import replace
from difflib import get_close_matches

from sparkwright.domain.finding import Finding

_KEYS = {
    "model.id": "model model_path hf_model repo_id model_id",
    "model.served_name": "served_model_name alias",
    "model.size": "checkpoint_size",
    "engine.image": "image container docker_image",
    "engine.name": "backend",
    "engine.version": "engine_version vllm_version",
    "nodes": "nnodes num_nodes node_count",
    "parallelism.tp": "tensor_parallel_size tp_size tensor_parallel",
    "parallelism.pp": "pipeline_parallel_size pp_size pipeline_parallel",
    "parallelism.dp": "data_parallel_size dp_size data_parallel",
    "parallelism.ep": "enable_expert_parallel expert_parallel ep_size moe_expert_parallel_size",
    "serving.expose": "host bind listen",
    "serving.api_key_env": "api_key",
    "serving.door.certificate": "ssl_certfile ssl_cert tls_cert",
    "serving.door.key": "ssl_keyfile ssl_key tls_key",
    "serving.context": "max_model_len max_model_length context_length ctx_size n_ctx max_seq_len",
    "serving.sequences": "max_num_seqs max_running_requests max_batch_size",
    "serving.batched_tokens": "max_num_batched_tokens chunked_prefill_size max_num_tokens",
    "serving.kv_dtype": "kv_cache_dtype cache_type_k",
    "serving.memory_fraction": "gpu_memory_utilization gpu_memory_fraction mem_fraction_static "
    "free_gpu_memory_fraction kv_cache_free_gpu_memory_fraction",
    "serving.kv_cache_bytes": "kv_cache_memory_bytes kv_cache_memory",
    "serving.master_port": "dist_init_port",
    "speculation": "speculative_config spec_decode",
    "speculation.method": "speculative_algorithm",
    "speculation.tokens": "num_speculative_tokens speculative_num_draft_tokens",
    "parsers.tool": "tool_call_parser tool_parser",
    "parsers.reasoning": "reasoning_parser",
    "env": "environment env_vars",
    "flags": "extra_args args command extra_flags",
    "mounts": "volumes",
    "shm": "shm_size shm_bytes",
    "published": "benchmarks figures measurements",
    "license": "licence license_note",
}
ALIASES = {alias: key for key, aliases in _KEYS.items() for alias in aliases.split()}

_LAUNCHER = "is filled in for each rank by the launcher"
_OWN = {
    "vllm": "model served_model_name revision host port api_key max_model_len max_num_seqs max_num_batched_tokens "
    "kv_cache_dtype gpu_memory_utilization kv_cache_memory_bytes tensor_parallel_size pipeline_parallel_size "
    "data_parallel_size enable_expert_parallel speculative_config tool_call_parser reasoning_parser tokenizer_mode "
    "chat_template master_port",
    "sglang": "model_path model host port api_key served_model_name revision context_length max_running_requests "
    "chunked_prefill_size kv_cache_dtype mem_fraction_static tp_size tensor_parallel_size tp pp_size "
    "pipeline_parallel_size dp_size data_parallel_size attn_dp_size enable_dp_attention ep_size expert_parallel_size "
    "speculative_algorithm tool_call_parser reasoning_parser tokenizer_mode chat_template",
    "trtllm": "model host port tp_size tensor_parallel_size pp_size pipeline_parallel_size ep_size "
    "moe_expert_parallel_size max_seq_len max_batch_size max_num_tokens free_gpu_memory_fraction "
    "kv_cache_free_gpu_memory_fraction tool_parser reasoning_parser chat_template",
    "llama-cpp": "model host port api_key alias ctx_size max_num_seqs parallel chat_template",
}
_PER_RANK = {
    "vllm": "nnodes node_rank master_addr headless distributed_executor_backend",
    "sglang": "nnodes node_rank dist_init_addr nccl_init_addr admin_api_key config use_ray",
    "trtllm": "config metadata_server_config_file server_role disagg_cluster_uri",
    "llama-cpp": "rpc",
}
_MORE = {
    "revision": "model.revision",
    "port": "serving.port",
    "master_port": "serving.master_port",
    "parallel": "serving.sequences",
    "tokenizer_mode": "parsers.tokenizer_mode",
    "chat_template": "parsers.chat_template",
    "api_key": "serving.api_key_env",
    "tp": "parallelism.tp",
    "attn_dp_size": "parallelism.dp",
    "enable_dp_attention": "parallelism.dp",
    "expert_parallel_size": "parallelism.ep",
}
_RANK_ENV = (
    "NCCL_IB_HCA NCCL_SOCKET_IFNAME GLOO_SOCKET_IFNAME TP_SOCKET_IFNAME UCX_NET_DEVICES MN_IF_NAME VLLM_HOST_IP "
    "SGLANG_HOST_IP HOST_IP RAY_ADDRESS RAY_NODE_IP_ADDRESS "
    "OMPI_MCA_btl_tcp_if_include MASTER_ADDR MASTER_PORT NODE_RANK RANK LOCAL_RANK WORLD_SIZE HEADLESS"
)
PER_RANK_ENV = frozenset(_RANK_ENV.split())


def flag_word(name: str) -> str:
    """`--max-model-len` -> `max_model_len`."""
    return name.strip().lstrip("-").replace("-", "_").lower()


def key_of_flag(engine: str, flag: str) -> str:
    """Why a flag may not be under `flags`: the key that sets it, or who fills it; '' when it may."""
    word = flag_word(flag)
    engine = "vllm" if engine in ("twin", "vllm-ray") else engine
    if word in _PER_RANK.get(engine, "").split():
        return _LAUNCHER
    if word not in _OWN.get(engine, "").split():
        return ""
    return f"is set by `{_MORE.get(word) or ALIASES[word]}`"


def in_recipe(finding: Finding, engine: str) -> Finding:
    """A finding about an option, with the recipe's key for it where there is one: under `flags` it is refused."""
    named = [*re.findall(r"--[\w-]+", finding.remedy), finding.subject]
    where = key_of_flag(engine, named[0])
    return replace(finding, remedy=f"{finding.remedy} (it {where})") if where.startswith("is set") else finding


def suggest(key: str, section: str, keys: tuple[str, ...]) -> str:
    """The valid key (full path) nearest to an unknown one in a section; '' when none is near.

    keys: all valid paths. An engine's own name for it comes first, then the same section, then all of them.
    """
    word = flag_word(key)
    if word in ALIASES:
        return ALIASES[word]
    prefix = f"{section}." if section else ""
    siblings = {k.removeprefix(prefix): k for k in keys if k.startswith(prefix) and "." not in k.removeprefix(prefix)}
    leaves = {k.rpartition(".")[2]: k for k in reversed(keys)}
    return _near(word, siblings, 0.6) or _near(word, leaves, 0.75) or _near(word, ALIASES, 0.8)


def _near(word: str, table: dict[str, str], cutoff: float) -> str:
    found = get_close_matches(word, list(table), n=1, cutoff=cutoff)
    return table[found[0]] if found else ""
