"""The registry limits the rate of pulls.

Detects: pulls that are refused for their number.
Why: Docker Hub counts pulls without a login by address, and a household or office shares one.
Evidence: the word toomanyrequests.
Remedy: log in, wait, or copy the image from the other node.
References: https://docs.docker.com/docker-hub/usage/
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, line

CODE = "LIMG020"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "registry pull rate limit reached"
CAUSE = "registry-rate-limited"
SIGNS = (
    line(r"toomanyrequests", CERTAIN),
    line(r"reached your (unauthenticated )?pull rate limit", CERTAIN),
    line(r"(docker\.io|nvcr\.io|ghcr\.io|quay\.io|/v2/).{0,160}429 too many requests", CERTAIN),
)
FIX = (
    "docker login",
    "or: docker save {image} | ssh {peer} docker load",
)
EXPLAINS = ()
