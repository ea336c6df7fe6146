"""A mount's source is missing or of the wrong kind.

Detects: containers that do not start since a path is not there, or a folder meets a file.
Why: -v makes an empty folder for a source that does not exist, and then a file cannot be mounted on it; --mount
  refuses at once. On the second node the path often differs.
Evidence: the daemon's error.
Remedy: the same paths on all nodes.
References: https://docs.docker.com/engine/storage/bind-mounts/
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line

CODE = "LIMG018"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "mount source missing or not of the expected kind"
CAUSE = "container-mount-wrong"
SIGNS = (
    line(r"bind source path does not exist", CERTAIN),
    line(r"are you trying to mount a directory onto a file", CERTAIN),
    line(r"error mounting \"[^\"]{1,200}\" to rootfs", LIKELY, unless=r"nvidia|cuda|denied"),
    line(r"invalid mount config for type", LIKELY),
    line(r"error gathering device information while adding custom device \"/dev/infiniband", LIKELY),
)
FIX = (
    "ls -ld THE_SOURCE   # on the node that failed",
    "make the same folders on all nodes, then start again",
)
EXPLAINS = ()
