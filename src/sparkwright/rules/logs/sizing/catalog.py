"""The rules of the family memory-sizing, in the order of their codes."""

from sparkwright.rules.log_rule import LogRule
from sparkwright.rules.logs.sizing import (
    lsiz001_no_memory_for_kv_cache,
    lsiz002_context_exceeds_kv_cache,
    lsiz003_mamba_blocks,
    lsiz004_sampler_warmup_oom,
    lsiz005_utilization_above_free,
    lsiz006_kv_fraction_default,
    lsiz007_kv_pool_exhausted,
    lsiz008_too_many_batched_tokens,
    lsiz009_mm_item_larger_than_batch,
    lsiz010_weights_too_large,
    lsiz011_too_few_batched_tokens,
    lsiz012_oom_after_start,
    lsiz013_graph_capture_oom,
    lsiz014_out_of_memory,
)

RULES: tuple[LogRule, ...] = (
    lsiz001_no_memory_for_kv_cache,
    lsiz002_context_exceeds_kv_cache,
    lsiz003_mamba_blocks,
    lsiz004_sampler_warmup_oom,
    lsiz005_utilization_above_free,
    lsiz006_kv_fraction_default,
    lsiz007_kv_pool_exhausted,
    lsiz008_too_many_batched_tokens,
    lsiz009_mm_item_larger_than_batch,
    lsiz010_weights_too_large,
    lsiz011_too_few_batched_tokens,
    lsiz012_oom_after_start,
    lsiz013_graph_capture_oom,
    lsiz014_out_of_memory,
)
