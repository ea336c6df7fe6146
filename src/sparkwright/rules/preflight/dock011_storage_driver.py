"""Docker stores its layers in a way that multiplies them.

Detects: the daemon's storage driver is vfs or devicemapper.
Why: vfs copies every layer whole: a 20 GB image of twenty layers takes hundreds of GB and minutes a container.
  Docker falls back to it where overlay cannot be used.
Evidence: the driver, and Docker's root.
Remedy: overlay2 (or the containerd store) on ext4 or xfs; images are pulled again.
References: https://docs.docker.com/engine/storage/drivers/select-storage-driver/
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import dockers, known
from sparkwright.rules.rule import Context

CODE = "DOCK011"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "Docker's storage driver copies every layer"


def check(context: Context) -> Iterator[Finding]:
    for facts, docker in dockers(context):
        if docker.storage in ("vfs", "devicemapper") and bool(known(facts.gpus)):
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                f"Docker stores images with {docker.storage}",
                f"docker info: Storage Driver {docker.storage}, {docker.root}",
                "overlay could not be used there, or daemon.json asks for this one",
                f"move {docker.root} to ext4 or xfs and take storage-driver out of /etc/docker/daemon.json",
            )
