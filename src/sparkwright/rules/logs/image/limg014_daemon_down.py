"""The Docker daemon does not run.

Detects: docker calls that find nobody at the socket.
Why: the service is stopped or failed, or a unit starts before it at boot.
Evidence: the client's error.
Remedy: start the service; wait for it at boot.
References: gb10.md A5 (docker daemon); https://docs.docker.com/engine/daemon/troubleshoot/
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line

CODE = "LIMG014"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "Docker daemon is not running"
CAUSE = "docker-daemon-not-running"
SIGNS = (
    line(r"cannot connect to the docker daemon", CERTAIN),
    line(r"failed to connect to the docker api", CERTAIN),
    line(r"error while fetching server api version.{0,80}(FileNotFoundError|ConnectionRefused)", CERTAIN),
    line(r"docker\.service: (failed|main process exited|start request repeated)", LIKELY),
)
FIX = (
    "sudo systemctl enable --now docker; systemctl status docker",
    "journalctl -u docker -b | tail -30",
)
EXPLAINS = ()
