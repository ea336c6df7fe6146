"""Docker comes from a snap.

Detects: mounts of driver programs that are not found, and paths below /snap/docker.
Why: the snap sees its own file tree; the NVIDIA hook names driver files of the host that are not in it.
Evidence: the missing MPS program, or the snap's path in the error.
Remedy: remove the snap, install the package.
References: gb10.md E27, A5 (snap docker)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LIMG015"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "Docker from snap cannot use the GPU"
CAUSE = "docker-from-snap"
SIGNS = (
    line(r"nvidia-cuda-mps-control: no such file", CERTAIN),
    near(
        r"/snap/docker|/var/snap/docker|snap\.docker",
        r"error response|failed to|no such file|nvidia|denied",
        sure=LIKELY,
        within=1,
    ),
)
FIX = (
    "snap list docker && sudo snap remove docker",
    (
        "sudo apt-get install docker-ce; then sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl "
        "restart docker"
    ),
)
EXPLAINS = ()
