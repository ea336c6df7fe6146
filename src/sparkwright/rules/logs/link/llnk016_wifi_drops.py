"""The Wi-Fi of a node drops.

Detects: NetworkManager that gives up on the Wi-Fi, and the driver's messages.
Why: power saving of the mt7925 and few retries; what runs over Wi-Fi (ssh, downloads, control planes) is cut.
Evidence: NetworkManager's `no secrets`.
Remedy: power saving off and endless retries, or a cable.
References: field guide A5, E25
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LLNK016"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "the node's Wi-Fi drops"
CAUSE = "wifi-drops"
SIGNS = (
    line(r"no secrets: no agents", LIKELY),
    line(r"mt7925e?\b.{0,60}(?:timeout|reset|disconnect|failed|deauth)", POSSIBLE),
    near(r"[Ww]lP9s9|mt7925", r"power_?save|powersave|drops|disconnect", sure=LIKELY, within=3),
)
FIX = (
    "nmcli connection modify <wifi> 802-11-wireless.powersave 2 connection.autoconnect-retries 0",
    "better: the 10G port (enP7s7) for management",
)
EXPLAINS = ()
