"""The network card says 27 W.

Detects: mlx5's notice about power of the PCIe slot.
Why: it is printed at full speed too. A card that is really slow (13 Gb/s) says so by its throughput only.
Evidence: the kernel line.
Remedy: none; when in doubt measure: sparkwright check --deep.
References: gb10.md A6; https://github.com/NVIDIA/dgx-spark-playbooks/pull/108
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line

CODE = "LBEN009"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "27 W slot power line of mlx5"
CAUSE = "benign-slot-power-27w"
SIGNS = (line(r"insufficient power on the pcie slot", LIKELY),)
FIX = ()
EXPLAINS = ()
