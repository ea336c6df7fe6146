"""Symmetric memory and multicast are not there.

Detects: notices of communicators that the hardware does not serve.
Why: multicast needs NVLink switches; the engines fall back to NCCL.
Evidence: the notice.
Remedy: none.
References: captures m2-head.log;
  https://github.com/vllm-project/vllm/blob/main/vllm/distributed/device_communicators/symm_mem.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LBEN013"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "no multicast and symmetric memory"
CAUSE = "benign-multicast-unsupported"
SIGNS = (
    line(r"multicast operations are not supported", HINT),
    line(r"SymmMemCommunicator: (device capability|world size|symmetric memory)", HINT),
    line(r"NVLS (multicast )?(support )?is not available|NVLS.{0,20}(not supported|disabled)", HINT),
)
FIX = ()
EXPLAINS = ()
