"""The driver runs out of memory descriptors on GB10.

Detects: many 0x51 errors of the driver in one boot, beside expandable segments, autotuning, or RDMA registrations
  that fail afterwards.
Why: 580.159.03 loses descriptors; expandable segments and autotuning churn through them (163 a boot against 1).
  Both sides: the same line comes on healthy starts, and counts below a few dozen predict nothing.
Evidence: the line, many times; failures that go away with other allocator settings, or only with a cold start of
  both nodes.
Remedy: driver 580.173 or later, no expandable segments, a smaller share; cold start of all nodes.
References: gb10.md E6, A2 [C]; https://github.com/NVIDIA/dgx-spark-playbooks/issues/97;
  https://github.com/vllm-project/vllm/issues/56824
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, LIKELY, POSSIBLE, Sign, line, near

CODE = "LUMA005"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the driver's memory descriptors fail (0x51)"
CAUSE = "driver-memdesc-leak-gb10"
SIGNS = (
    near(r"expandable_segments", r"\b0x51\b|\b0x00000051\b|NV_ERR_NO_MEMORY|memdesc", sure=LIKELY, within=6),
    line(r"RM `?0x51`? errors?|\b0x51\b.{0,40}NV_ERR_NO_MEMORY", LIKELY),
    near(r"enable-flashinfer-autotune", r"NV_ERR_NO_MEMORY|_memdescAllocInternal|\b0x51\b", sure=LIKELY, within=6),
    near(
        r"(?:Kernel Module|Driver Version|driver_version|driver).{0,40}\b580\.159",
        r"NVRM: .{0,90}_memdescAllocInternal",
        sure=POSSIBLE,
        within=4000,
    ),
    near(r"_memdescAllocInternal", r"ibv_reg_mr\w* failed", sure=LIKELY, within=4000),
    line(r"memory descriptors?.{0,40}(?:leak|churn|exhaust)|memdesc (?:leak|failures?)", LIKELY),
    Sign((r"_memdescAllocInternal\(pMemDesc\)",), LIKELY, times=20),
    line(r"NVRM: .{0,90}_memdescAllocInternal\(pMemDesc\)", HINT),
    line(r"memdesc.{0,40}\bleak|\bleak.{0,60}memdesc", LIKELY),
)
FIX = (
    "sudo journalctl -k -b | grep -c _memdescAllocInternal   # on every node: how many in this boot",
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False and no --enable-flashinfer-autotune",
    "--gpu-memory-utilization 0.75 --max-num-batched-tokens 4096",
    "driver 580.173.02 or later through the DGX Dashboard (never a bare apt upgrade), then a cold start of all nodes",
)
EXPLAINS: tuple[str, ...] = ()
