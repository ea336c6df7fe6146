"""A node or the engine cannot join Ray's head.

Detects: failed connections to the GCS, no running Ray, raylets that time out.
Why: the head does not run, was restarted (workers keep the old one), listens on another address, or port 6379 is
  blocked.
Evidence: Ray's line with the address.
Remedy: start the head, then the workers with the head's fabric address.
References: field guide C2
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line

CODE = "LCLU012"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "Ray's head cannot be reached"
CAUSE = "ray-head-unreachable"
SIGNS = (
    line(r"(?:unable|failed) to connect to (?:the )?GCS\b", LIKELY),
    line(r"(?:could not|couldn't) (?:find|connect to) any running Ray instance|No existing RAY instance", LIKELY),
    line(
        r"failed to connect to (?:the )?Ray (?:cluster|head)|ray\.exceptions\.RaySystemError.{0,80}(?:GCS|raylet)",
        LIKELY,
    ),
    line(
        r"timed out while waiting for GCS|GCS (?:server )?(?:may have been killed|is not (?:alive|reachable))", LIKELY
    ),
    line(
        r"RPC error: Deadline Exceeded.{0,80}(?:gcs|6379)|gcs_rpc_client.{0,120}(?:timed out|unavailable|failed)",
        POSSIBLE,
    ),
    line(
        r"not visible in (?:the )?Ray cluster|(?:node|worker) \S{0,12} ?(?:never|does not|did not"
        r"|cannot) joins? (?:the )?Ray",
        LIKELY,
    ),
    line(r"current node timed out during startup", POSSIBLE),
    line(r"session_name.{0,60}does not match persisted value", LIKELY),
)
FIX = (
    "head: ray start --head --port 6379 --node-ip-address <its fabric address>; then ray status",
    "worker: ray stop; ray start --address <the head's address>:6379 --node-ip-address <its fabric address>",
)
EXPLAINS = ("ray-placement-group-unsatisfiable",)
