"""Custom all-reduce is switched off.

Detects: the notice that custom all-reduce is not used.
Why: it needs peers in one node; between nodes NCCL does the work.
Evidence: the notice.
Remedy: none.
References:
  https://github.com/vllm-project/vllm/blob/main/vllm/distributed/device_communicators/custom_all_reduce.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LBEN014"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "custom all-reduce disabled"
CAUSE = "benign-custom-allreduce-disabled"
SIGNS = (
    line(r"custom[ _]all[- ]?reduce is disabled", HINT),
    line(
        r"setup custom allreduce failed|setup flashinfer pcie-ipc allreduce failed|expected on GPUs without P2P", HINT
    ),
    line(r"flashinfer all ?reduce.{0,80}(not (supported|available)|disabled)", HINT),
)
FIX = ()
EXPLAINS = ()
