"""The GSP stopped answering while the GPU was in use.

Detects: Xid 119, 120 and 154 at run time.
Why: firmware of the GPU's own processor hangs or crashes; the driver waits, processes hang in the kernel.
Evidence: the RPC timeout with its function.
Remedy: reboot; paired driver and firmware; if it repeats, a power cycle and a report.
References: gb10.md F3; https://docs.nvidia.com/deploy/xid-errors/
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line

CODE = "LDRV015"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the GPU's system processor does not answer"
CAUSE = "gsp-rpc-timeout"
SIGNS = (
    line(r"Xid \(PCI:[0-9a-fA-F:.]+\): (?:119|120)\b", LIKELY, unless=r"GSP_INIT_DONE"),
    line(r"waiting for RPC response from GPU\d* ?GSP", LIKELY, unless=r"GSP_INIT_DONE"),
    line(r"Xid \(PCI:[0-9a-fA-F:.]+\): 154\b.{0,80}(?:Reset|Reboot) Required", LIKELY),
    line(r"\bGSP[ :_-].{0,40}(?:timeout|timed out|not respond|hard.?lock|crash)", POSSIBLE),
)
FIX = (
    "sudo systemctl reboot --no-block   # on {node}; if `nvidia-smi` still hangs: power cycle",
    "nvidia-smi -q | grep -E 'Driver Version|GSP Firmware'   # both the same",
)
EXPLAINS: tuple[str, ...] = ()
