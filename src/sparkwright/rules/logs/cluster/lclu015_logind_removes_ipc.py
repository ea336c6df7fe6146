"""The login manager removes the semaphores of a worker that was started over ssh.

Detects: `SemLock._rebuild` that finds no file, in a worker of a later start or after a session closed.
Why: RemoveIPC=yes of systemd-logind deletes the user's shared memory and semaphores when the last session ends, if the
  user does not linger. The worker dies; the head waits in the next collective without an error.
Evidence: the traceback, which also comes from an executor that spans hosts; logind.conf decides.
Remedy: let the user linger, or run in a container with its own IPC.
References: https://github.com/eugr/spark-vllm-docker/issues/352; the manual of logind.conf
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, near

CODE = "LCLU015"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "systemd-logind removed the worker's semaphores"
CAUSE = "logind-removes-ipc"
SIGNS = (
    near(
        r"SemLock\._rebuild", r"FileNotFoundError: \[Errno 2\] No such file or directory\s*$", sure=POSSIBLE, within=3
    ),
    near(r"RemoveIPC|logind", r"semaphore|shared memory|/dev/shm|linger", sure=LIKELY, within=3),
)
FIX = (
    "on each node: sudo loginctl enable-linger $USER",
    "or: RemoveIPC=no in /etc/systemd/logind.conf, then sudo systemctl restart systemd-logind",
)
EXPLAINS = (
    "peer-rank-died",
    "rank-restart-race-tcpstore",
)
