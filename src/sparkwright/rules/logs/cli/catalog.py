"""The rules of the family cli-and-config, in the order of their codes."""

from sparkwright.rules.log_rule import LogRule
from sparkwright.rules.logs.cli import (
    lcli001_attention_backend,
    lcli002_flag_renamed,
    lcli003_flag_typo,
    lcli004_executor_default,
    lcli005_jinja,
    lcli006_metric_renamed,
    lcli007_nccl_algo,
    lcli008_ssh_quoting,
    lcli009_trtllm_backend,
    lcli010_env_unknown,
    lcli011_flag_value,
    lcli012_compose_folding,
    lcli013_not_recreated,
    lcli014_empty_container_name,
)

RULES: tuple[LogRule, ...] = (
    lcli001_attention_backend,
    lcli002_flag_renamed,
    lcli003_flag_typo,
    lcli004_executor_default,
    lcli005_jinja,
    lcli006_metric_renamed,
    lcli007_nccl_algo,
    lcli008_ssh_quoting,
    lcli009_trtllm_backend,
    lcli010_env_unknown,
    lcli011_flag_value,
    lcli012_compose_folding,
    lcli013_not_recreated,
    lcli014_empty_container_name,
)
