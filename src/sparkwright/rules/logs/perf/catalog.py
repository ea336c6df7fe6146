"""The rules of the family performance, in the order of their codes."""

from sparkwright.rules.log_rule import LogRule
from sparkwright.rules.logs.perf import (
    lprf001_eager,
    lprf002_prefix_cache_hybrid,
    lprf003_spin_wait,
    lprf004_prefill_starves,
)

RULES: tuple[LogRule, ...] = (
    lprf001_eager,
    lprf002_prefix_cache_hybrid,
    lprf003_spin_wait,
    lprf004_prefill_starves,
)
