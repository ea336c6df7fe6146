"""The GPU seems to hang on PCIe Gen1 x1.

Detects: tools that show generation 1 and width 1 for the GPU.
Why: GB10's GPU has no PCIe link (it sits on the die interconnect), and NVML answers with placeholders. For the
  network card the same figures would be real [C: a source met them there with old firmware].
Evidence: the figures beside the GPU's name.
Remedy: none for the GPU; for the card: lspci -vv shows LnkSta 32GT/s x4.
References: gb10.md A0, E48; https://github.com/Syllo/nvtop/pull/499
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import POSSIBLE, line, near

CODE = "LBEN012"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "PCIe GEN 1@ 1x of the GPU is a placeholder"
CAUSE = "benign-pcie-link-misreported"
SIGNS = (
    line(r"GB10\b.{0,60}PCIe GEN ?1 ?@ ?1x|PCIe GEN ?1 ?@ ?1x", POSSIBLE),
    near(
        r"PCIe",
        r"\bgen ?1 ?x1|gen1x1|gen 1.{0,12}x1",
        r"GB10|nvidia-smi|nvtop",
        sure=POSSIBLE,
        within=2,
        unless=r"mlx5|ConnectX|firmware",
    ),
)
FIX = ()
EXPLAINS = ()
