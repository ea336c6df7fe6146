"""The rules of the family model-config, in the order of their codes."""

from sparkwright.rules.log_rule import LogRule
from sparkwright.rules.logs.config import (
    lcfg001_quant_block,
    lcfg002_trust_remote_code,
    lcfg003_gpt_oss_generation,
    lcfg004_quantization_flag,
    lcfg005_tp_size,
    lcfg006_quantized_layer,
    lcfg007_language_only,
    lcfg008_kv_dtype_layout,
    lcfg009_max_len_derived,
    lcfg010_more_ranks_than_gpus,
    lcfg011_moe_backend_draft,
    lcfg012_mtp_head,
    lcfg013_quant_path,
    lcfg014_pp_unsupported,
    lcfg015_world_size_nodes,
    lcfg016_dtype_quant,
)

RULES: tuple[LogRule, ...] = (
    lcfg001_quant_block,
    lcfg002_trust_remote_code,
    lcfg003_gpt_oss_generation,
    lcfg004_quantization_flag,
    lcfg005_tp_size,
    lcfg006_quantized_layer,
    lcfg007_language_only,
    lcfg008_kv_dtype_layout,
    lcfg009_max_len_derived,
    lcfg010_more_ranks_than_gpus,
    lcfg011_moe_backend_draft,
    lcfg012_mtp_head,
    lcfg013_quant_path,
    lcfg014_pp_unsupported,
    lcfg015_world_size_nodes,
    lcfg016_dtype_quant,
)
