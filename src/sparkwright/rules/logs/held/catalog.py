"""The rules of the family memory-held-or-leaked, in the order of their codes."""

from sparkwright.rules.log_rule import LogRule
from sparkwright.rules.logs.held import (
    lhel001_other_process_holds_gpu,
    lhel002_orphan_engine_core,
    lhel003_undrained_block_ids,
    lhel004_ucx_registration_cache,
    lhel005_profiling_disturbed,
    lhel006_prefill_allocator_growth,
)

RULES: tuple[LogRule, ...] = (
    lhel001_other_process_holds_gpu,
    lhel002_orphan_engine_core,
    lhel003_undrained_block_ids,
    lhel004_ucx_registration_cache,
    lhel005_profiling_disturbed,
    lhel006_prefill_allocator_growth,
)
