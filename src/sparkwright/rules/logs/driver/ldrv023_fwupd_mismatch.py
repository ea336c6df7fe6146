"""The update was applied in part: fwupd's library and daemon differ.

Detects: fwupd's version message.
Why: an interrupted OTA; the DGX Dashboard hangs on it and firmware stays old.
Evidence: both versions in the line.
Remedy: finish the update, restart the daemon.
References: gb10.md E28
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, line

CODE = "LDRV023"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "fwupd's parts have different versions after an update"
CAUSE = "partial-ota-fwupd-mismatch"
SIGNS = (line(r"libfwupd version (?P<library>[\d.]+) does not match daemon (?P<daemon>[\d.]+)", CERTAIN),)
FIX = (
    "sudo apt update && sudo apt install --only-upgrade fwupd libfwupd2 && sudo systemctl restart fwupd   # on {node}",
    "DGX Dashboard: run the update again",
)
EXPLAINS: tuple[str, ...] = ()
