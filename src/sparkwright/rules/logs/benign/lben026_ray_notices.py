"""Notices of Ray.

Detects: Ray's hints about future versions, and its metrics agent that is not there.
Why: images without ray[default] have no dashboard agent; metrics are lost, work is not.
Evidence: the notice.
Remedy: none.
References: gb10.md C2; https://docs.ray.io/en/latest/ray-observability/
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LBEN026"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "notices of Ray"
CAUSE = "benign-ray-notices"
SIGNS = (
    line(r"ray will no longer override accelerator visible devices", HINT),
    line(
        r"(metrics|event)[ _](exporter|aggregator)?[ _]?agent.{0,80}(fail|unavailable|not (ready|available))"
        r"|failed to establish connection to the (metrics|event)",
        HINT,
    ),
    line(r"using blocking ray\.get inside async actor", HINT),
    line(r"Tip: In future versions of Ray", HINT),
)
FIX = ()
EXPLAINS = ()
