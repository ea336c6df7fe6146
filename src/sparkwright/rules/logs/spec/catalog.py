"""The rules of the family spec-decode, in the order of their codes."""

from sparkwright.rules.log_rule import LogRule
from sparkwright.rules.logs.spec import (
    lspc001_crash_under_load,
    lspc002_low_acceptance,
    lspc003_method_unsupported,
    lspc004_full_graph_verify,
    lspc005_garbage_at_concurrency,
    lspc006_sentinel_token,
    lspc007_count_over_block,
    lspc008_repetition_penalty,
)

RULES: tuple[LogRule, ...] = (
    lspc001_crash_under_load,
    lspc002_low_acceptance,
    lspc003_method_unsupported,
    lspc004_full_graph_verify,
    lspc005_garbage_at_concurrency,
    lspc006_sentinel_token,
    lspc007_count_over_block,
    lspc008_repetition_penalty,
)
