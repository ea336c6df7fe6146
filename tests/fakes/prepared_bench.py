"""An endpoint as if it had been probed, without one."""

from collections.abc import Mapping
from typing import Any

from sparkwright.app.bench.target import BenchRequest, BenchTarget, PreparedBench
from sparkwright.domain.probed import Probed
from sparkwright.domain.run import RunConditions
from sparkwright.domain.workload import Workload
from sparkwright.ports import Tokenizer

NO_BENCH: Any = None  # for a test in which nobody asks the endpoint


def prepared_bench(
    workload: Workload, probed: Probed, tokenizer: Tokenizer, files: Mapping[str, str] | None = None
) -> PreparedBench:
    """All levels of the workload fit."""
    target, conditions = BenchTarget(probed.url), RunConditions(probed.url, probed.model)
    request = BenchRequest(workload, files=files or {})
    return PreparedBench(NO_BENCH, target, probed, request, workload.levels, (), tokenizer, conditions)
