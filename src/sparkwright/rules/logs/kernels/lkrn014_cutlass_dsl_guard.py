"""The installed CuTe DSL does not admit sm_121a.

Detects: the CuTe DSL that refuses to compile for sm_121a.
Why: nvidia-cutlass-dsl before 4.5 admits only sm_120a for the warp MMA that the b12x and FP4 kernels use.
Evidence: its OpError with the list of admitted architectures.
Remedy: a newer CuTe DSL, installed cleanly (old and new files in one folder break differently).
References: nvidia-cutlass-dsl 4.4.2, cute/nvgpu/warp/mma.py; vLLM pull request 40082
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LKRN014"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the installed CuTe DSL does not admit sm_121a"
CAUSE = "cutlass-dsl-arch-guard-sm121a"
SIGNS = (
    line(r"expects arch to be one of .{0,200}but got Arch\.sm_12"),
    line(r"expects arch to be one of .{0,200}but got", LIKELY),
    line(r"OpError: .{0,160}\barch\b.{0,60}sm_12[01]", LIKELY),
    near(
        r"cutlass-dsl|CuTe[- ]?DSL|cutlass\.cute",
        r"admissible|only (?:admits|accepts|allows|supports)|arch guard|(?:not|un)(?: in| )?(?:accepted"
        r"|supported|admitted)|rejects",
        r"sm_121a?|sm_120a",
        sure=LIKELY,
        within=0,
    ),
)
FIX = (
    "pip uninstall -y nvidia-cutlass-dsl nvidia-cutlass-dsl-libs-base nvidia-cutlass-dsl-libs-cu13",
    ("pip install 'nvidia-cutlass-dsl[cu13]>=4.5.0'   # admits sm_121a; take what the engine pins where it pins more"),
    "or --moe-backend marlin, which needs no CuTe DSL",
)
EXPLAINS = ()
