"""The rules of the family output-quality, in the order of their codes."""

from sparkwright.rules.log_rule import LogRule
from sparkwright.rules.logs.output import (
    lout001_gpt_oss_first_token,
    lout002_marlin_fp8_input,
    lout003_grammar_rejects_token,
    lout004_stale_graph_metadata,
)

RULES: tuple[LogRule, ...] = (
    lout001_gpt_oss_first_token,
    lout002_marlin_fp8_input,
    lout003_grammar_rejects_token,
    lout004_stale_graph_metadata,
)
