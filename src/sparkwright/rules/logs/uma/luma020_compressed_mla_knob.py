"""`VLLM_DSV4_B12X_COMPRESSED_MLA=1` wedges the node.

Detects: the switch beside memory that runs out or a node that hangs.
Why: one lineage of images has the experimental path; it takes more unified memory than planned. One source only.
Evidence: the variable in the log and the driver's or the kernel's memory lines.
Remedy: leave it unset.
References: gb10.md E110
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, near

CODE = "LUMA020"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "an experimental MLA switch exhausts the memory"
CAUSE = "compressed-mla-knob-exhausts-memory"
SIGNS = (
    near(
        r"VLLM_DSV4_B12X_COMPRESSED_MLA['\"]?[ :=]{1,3}['\"]?1",
        r"NV_ERR_NO_MEMORY|OutOfMemoryError|wedge|freez|exhaust|out of memory|power.?cycle",
        sure=LIKELY,
        within=400,
    ),
)
FIX = (
    "take VLLM_DSV4_B12X_COMPRESSED_MLA out of the environment of all ranks",
    "on the Triton sparse lane also: VLLM_TRITON_MLA_SPARSE_MATMUL_DECODE=0",
)
EXPLAINS = ("uma-exhaustion-host-freeze",)
