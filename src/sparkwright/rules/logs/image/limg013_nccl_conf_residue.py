"""The image carries an NCCL configuration file.

Detects: lines and reports that name /etc/nccl.conf or the two InfiniBand settings that freeze small messages.
Why: NCCL reads /etc/nccl.conf and ~/.nccl.conf beside the environment. An image built for another fabric may hold
  NCCL_IB_USE_INLINE=1 and NCCL_IB_PREPOST_RECEIVE_WORK_REQUESTS=1, and the first 4 byte message of the warm-up
  hangs.
Evidence: the file or the settings in the log, without anybody having set them.
Remedy: empty the file, or set both to 0.
References: https://github.com/luxingcom/aicad-nccl-optimization/issues/1;
  https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LIMG013"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "leftover /etc/nccl.conf in the image"
CAUSE = "nccl-conf-residue-in-image"
SIGNS = (
    line(r"/etc/nccl\.conf|\.nccl\.conf\b", LIKELY),
    near(r"NCCL_IB_USE_INLINE", r"NCCL_IB_PREPOST_RECEIVE_WORK_REQUESTS", sure=LIKELY, within=10),
)
FIX = (
    "docker run --rm --entrypoint cat {image} /etc/nccl.conf",
    (
        "docker run ... -v /dev/null:/etc/nccl.conf:ro -e NCCL_IB_USE_INLINE=0 -e "
        "NCCL_IB_PREPOST_RECEIVE_WORK_REQUESTS=0"
    ),
)
EXPLAINS = ()
