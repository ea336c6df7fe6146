"""Docker comes from a snap.

Detects: the daemon's root is below /var/snap.
Why: a snap sees no driver files of the host: GPU containers end with `open /usr/bin/nvidia-cuda-mps-control: no such
  file or directory`, and it mounts nothing from outside of home.
Evidence: the daemon's root folder.
Remedy: Docker Engine as a deb instead.
References: https://docs.docker.com/engine/install/ubuntu/
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import dockers, known
from sparkwright.rules.rule import Context

CODE = "DOCK005"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "Docker comes from a snap"


def check(context: Context) -> Iterator[Finding]:
    for facts, docker in dockers(context):
        if docker.snap and bool(known(facts.gpus)):
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "Docker from snap cannot reach the driver",
                f"root: {docker.root}",
                "a snap is shut off from the host's files, the driver's programs among them",
                "sudo snap remove docker   # its images go with it; then Docker Engine as a deb, and "
                "sudo nvidia-ctk runtime configure --runtime=docker",
            )
