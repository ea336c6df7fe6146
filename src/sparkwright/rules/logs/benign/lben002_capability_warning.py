"""PyTorch does not know the chip's capability by name.

Detects: torch's warning that the GPU's capability is beyond what the build names.
Why: wheels for CUDA 13 carry sm_120 code, which runs on sm_121; the check compares numbers only. A build that ends
  at sm_90 is another matter and then fails with `no kernel image`.
Evidence: the warning with 12.1, and a build that knows 12.0.
Remedy: none.
References: gb10.md A0; https://github.com/pytorch/pytorch/issues/172629
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LBEN002"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "PyTorch capability warning on GB10"
CAUSE = "benign-pytorch-capability-warning"
SIGNS = (
    line(r"found gpu\d+ .{0,60}which is of (cuda|compute) capability.{0,8}1[0-2]\.\d", LIKELY),
    line(r"cuda capability supported by this version of pytorch is.{0,20}\(?12\.0", LIKELY),
    near(
        r"with cuda capability sm_12[01] is not compatible|sm_121 is not compatible",
        r"supports cuda capabilities .{0,120}sm_1[02]0",
        sure=LIKELY,
        within=3,
    ),
    line(r"installed torch\S* does not include kernels for this gpu", LIKELY),
)
FIX = ()
EXPLAINS = ("no-kernel-image-sm12x",)
