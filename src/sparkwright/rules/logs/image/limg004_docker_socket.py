"""The user may not talk to the Docker daemon.

Detects: docker calls that are refused at /var/run/docker.sock.
Why: the socket belongs to root and the group docker; the login is not in that group, or the session is older than
  the change.
Evidence: Docker's own refusal, or a client library's PermissionError.
Remedy: add the user to the group and log in again.
References: gb10.md A5 (user group); https://docs.docker.com/engine/install/linux-postinstall/
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LIMG004"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "no permission on Docker's socket"
CAUSE = "docker-socket-permission"
SIGNS = (
    line(r"permission denied while trying to connect to the docker", CERTAIN),
    line(r"docker\.sock: connect: permission denied", CERTAIN),
    line(r"error while fetching server api version.{0,80}permission ?(error|denied)", CERTAIN),
    near(
        r"docker\.sock|docker (daemon|group|socket|api)",
        r"permission denied|usermod -aG docker|not in the docker group",
        sure=LIKELY,
        within=1,
    ),
)
FIX = (
    "sudo usermod -aG docker $USER && newgrp docker   # then log in again",
    "id -nG | grep -w docker",
)
EXPLAINS = ()
