"""The image tag does not exist.

Detects: pulls that end with manifest unknown or not found.
Why: tags are moved and removed by their owners; guides name old ones.
Evidence: the daemon's error with the reference.
Remedy: a tag that exists; then pin it by digest.
References: https://github.com/NVIDIA/dgx-spark-playbooks/issues/4;
  https://distribution.github.io/distribution/spec/api/
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LIMG012"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "image tag not found in the registry"
CAUSE = "image-tag-not-found"
SIGNS = (
    line(r"manifest unknown|manifest for \S+ not found|name unknown: ", CERTAIN),
    line(r"failed to (resolve (reference|source metadata)|copy|do request|pull).{0,240}: not found\b", CERTAIN),
    line(r"error response from daemon: .{0,20}(docker\.io|nvcr\.io|ghcr\.io|quay\.io)/\S+: not found", CERTAIN),
    line(r"no such image: [^@\s]+$", POSSIBLE),
    near(
        r"\b(image )?tags?\b.{0,60}(does not exist|doesn't exist|not exist any|was removed|is gone)",
        r"docker|image|registry|pull",
        sure=LIKELY,
        within=1,
    ),
)
FIX = (
    "docker manifest inspect {image}:{tag}   # which tags exist: the registry's page or skopeo list-tags docker://{image}",
    "pin what works: image: NAME@sha256:...",
)
EXPLAINS = ()
