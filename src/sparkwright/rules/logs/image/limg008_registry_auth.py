"""The registry wants a login.

Detects: pulls that are denied for want of credentials or rights.
Why: nvcr.io has images that need an NGC key, private repositories need a token, and an old login may have expired.
  Docker says the same for a repository that does not exist.
Evidence: the daemon's denial.
Remedy: docker login at that registry, on every node.
References: https://docs.nvidia.com/ngc/latest/ngc-catalog-user-guide.html;
  https://docs.docker.com/reference/cli/docker/login/
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LIMG008"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "registry refuses the pull without a login"
CAUSE = "registry-auth-required"
SIGNS = (
    line(r"pull access denied for", LIKELY),
    line(r"may require 'docker login'|no basic auth credentials", LIKELY),
    line(
        r"unauthorized: (authentication required|access token|incorrect username|your|please)"
        r"|denied: requested access to the resource is denied",
        0.85,
    ),
    line(
        r"(nvcr\.io|ghcr\.io|docker\.io|quay\.io|registry|/v2/).{0,200}(\b401\b|\b403\b|unauthorized|forbidden"
        r"|: denied|authentication required)",
        LIKELY,
        unless=r"HTTP/1\.[01]\" (401|403)",
    ),
    line(r"failed to (authorize|fetch (oauth|anonymous) token)", LIKELY, unless=r"no such host|timeout|dial tcp"),
    line(r"error response from daemon: (unauthorized|denied|forbidden)\b|401 authorization required", LIKELY),
    line(r"error: denied$", POSSIBLE),
    near(
        r"docker login|oauthtoken|NGC[ _]API[ _]key",
        r"denied|unauthori[sz]ed|unauthenticated|requires? (a )?login",
        sure=LIKELY,
        within=1,
    ),
    line(r"pull access denied|ErrImagePull.{0,200}(?:denied|unauthorized|forbidden)", LIKELY),
)
FIX = (
    "docker login nvcr.io -u '$oauthtoken'   # password: the NGC API key; for others: docker login {registry}",
    "check the name too: the same words come for a repository that does not exist",
)
EXPLAINS = ()
