"""A wrong clock makes certificates invalid.

Detects: TLS errors about dates.
Why: the node's clock is off (no time server after a power cut), so certificates seem expired or not yet valid. It
  also breaks joins of Ray and logs that should be compared.
Evidence: the certificate error.
Remedy: synchronise the clock.
References: gb10.md A5 (time sync)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LIMG021"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "wrong clock: certificates are not valid"
CAUSE = "clock-skew-breaks-tls"
SIGNS = (
    line(r"certificate (has expired or )?is not (yet )?valid", LIKELY, unless=r"valid for|is not valid for"),
    line(r"certificate is not yet valid|certificate verify failed: certificate has expired", LIKELY),
    line(r"x509: certificate has expired", LIKELY),
    near(
        r"clock|system time",
        r"skew|not synchroni[sz]ed|wrong",
        r"\bTLS (error|fail|handshake)|certificate|root ca",
        sure=LIKELY,
        within=2,
    ),
)
FIX = (
    "timedatectl; sudo timedatectl set-ntp true",
    "date -u   # on every node, beside each other",
)
EXPLAINS = ()
