"""The rules of the family graph-jit-runtime, in the order of their codes."""

from sparkwright.rules.log_rule import LogRule
from sparkwright.rules.logs.graphs import (
    lgra001_graph_collective_deadlock,
    lgra002_jit_over_timeout,
    lgra003_shared_experts_stream,
    lgra004_shared_cache_corrupt,
    lgra005_compile_cache_pickle,
    lgra006_capture_illegal_access,
    lgra007_capture_takes_hours,
    lgra008_autotune_stall,
    lgra009_stale_jit_cache,
)

RULES: tuple[LogRule, ...] = (
    lgra001_graph_collective_deadlock,
    lgra002_jit_over_timeout,
    lgra003_shared_experts_stream,
    lgra004_shared_cache_corrupt,
    lgra005_compile_cache_pickle,
    lgra006_capture_illegal_access,
    lgra007_capture_takes_hours,
    lgra008_autotune_stall,
    lgra009_stale_jit_cache,
)
