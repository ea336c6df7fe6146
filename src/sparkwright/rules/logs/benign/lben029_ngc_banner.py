"""The banner of an NGC container complains.

Detects: the banner's notes about an unknown GPU, forward compatibility and default limits.
Why: older images do not know GB10's name; the note on shared memory matters only without --ipc=host.
Evidence: the banner's lines.
Remedy: none; start containers with --ipc=host --ulimit memlock=-1 --ulimit stack=67108864.
References: https://docs.nvidia.com/deeplearning/frameworks/user-guide/index.html
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LBEN029"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "banner of the NGC container"
CAUSE = "benign-ngc-banner"
SIGNS = (
    line(r"gpu, which is not yet supported in this version of the container", HINT),
    line(r"SHMEM allocation limit is set to the default of 64MB", HINT),
    line(r"CUDA (forward|minor version) compatibility mode enabled", HINT),
    line(r"no supported gpu\(s\) detected to run this container", HINT),
    line(r"MOFED driver for multi-node communication was not detected", HINT),
)
FIX = ()
EXPLAINS = ()
