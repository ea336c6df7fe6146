"""NCCL's send queue reads out of order on aarch64.

Detects: reports of hangs in ncclIbIsend, the clear-to-send queue, or memory ordering on Grace and GB10.
Why: NCCL 2.28 to 2.30 read the slots of the receiver without a fence; the CPU may reorder the loads and a rank waits
  for ever under load.
Evidence: no line of NCCL says it; only reports and stacks do.
Remedy: NCCL with the fix.
References: field guide E41; https://github.com/NVIDIA/nccl/pull/2393
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, near

CODE = "LRDM010"
STATUS = "preview"
SEVERITY = Severity.BLOCK
TITLE = "NCCL before the aarch64 fix hangs under load"
CAUSE = "nccl-aarch64-ordering-race"
SIGNS = (
    near(
        r"ncclIbIsend|ncclIbMultiSend|CTS (?:load|slot|fifo|queue)",
        r"reorder|memory (?:order|barrier|model)|\bfence|\brace\b|aarch64|spin",
        sure=LIKELY,
        within=4,
    ),
    near(r"nccl#2393|nccl/pull/2393", r"hang|wedge|race|reorder|aarch64|fixes|stuck", sure=LIKELY, within=2),
    near(
        r"aarch64|Grace|\bGB10",
        r"NCCL .{0,80}(?: race\b|reorder|weak memory|weakly ordered|memory order)",
        sure=LIKELY,
        within=2,
    ),
)
FIX = ("LD_PRELOAD=<libnccl.so.2 with NVIDIA/nccl#2393, or 2.30.4> on every node, the same file",)
EXPLAINS = (
    "peer-rank-died",
    "rank-restart-race-tcpstore",
)
