"""vLLM's memory account of a start that fits.

Detects: the line that names free, wanted and used memory without a complaint.
Why: newer versions print the account so that a user can pin the KV cache. The failing check says `is less than
  desired`.
Evidence: the form with brackets and a full stop.
Remedy: none.
References: https://github.com/vllm-project/vllm/blob/main/vllm/v1/worker/gpu_worker.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line

CODE = "LBEN004"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "memory check at startup passed"
CAUSE = "benign-memory-check-passed"
SIGNS = (
    line(r"free memory on device.{0,40}\([\d.]+/[\d.]+ GiB\) on startup\.", LIKELY),
    line(r"desired gpu memory utilization is \(0\.\d+, [\d.]+ GiB\)", LIKELY),
)
FIX = ()
EXPLAINS = ()
