"""The limit of open files is too small.

Detects: errors that say so, not vLLM's notice that it could not raise the limit.
Why: engines open sockets for ZMQ, NCCL and clients and map every shard; the daemon's or systemd's default may be
  1024 or less.
Evidence: the error of libzmq, Python or the kernel.
Remedy: a larger nofile limit for the container or unit.
References: errno 24 (EMFILE); https://docs.docker.com/reference/cli/docker/container/run/#ulimit
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, line

CODE = "LIMG025"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the limit of open files is too small"
CAUSE = "open-files-limit"
SIGNS = (line(r"too many open files", CERTAIN, unless=r"can cause|ulimit of|inotify|too many open files in system"),)
FIX = ("docker run ... --ulimit nofile=65535:65535   # systemd: LimitNOFILE=65535; a shell: ulimit -n 65535",)
EXPLAINS = ()
