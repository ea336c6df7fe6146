"""UCX does not find one of the devices that it was given.

Detects: UCX's warning that lists the devices that it has.
Why: UCX_NET_DEVICES often holds a name of the other cage or the name of the other layer (netdev or adapter). As
  long as one of the names works, the warning does nothing. Without any, `no usable transports` follows: that is
  another cause.
Evidence: the warning.
Remedy: none.
References: gb10.md C4 step 5; https://github.com/openucx/ucx/issues/2953
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LBEN010"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "UCX: a named device is not available"
CAUSE = "benign-ucx-device-unavailable"
SIGNS = (
    line(r"UCX +WARN +(network )?device '[^']{1,40}' is not available", HINT),
    line(r"UCX +WARN +unused env(ironment)? variables?", HINT),
)
FIX = ()
EXPLAINS = ()
