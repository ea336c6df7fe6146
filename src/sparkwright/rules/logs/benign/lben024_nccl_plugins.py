"""NCCL looks for plugins that are not there.

Detects: NCCL's notices about network, tuner and profiler plugins.
Why: plugins are optional; NCCL goes on with its own transports.
Evidence: the notice at the level INFO.
Remedy: none.
References: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LBEN024"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "NCCL plugins not found"
CAUSE = "benign-nccl-plugin-not-found"
SIGNS = (
    line(
        r"(NET|TUNER|PROFILER|ENV|GIN)/Plugin:? .{0,20}(could not find|no plugin|failed to (load|find)|plugin load)",
        HINT,
    ),
    line(r"could not find: ?\S{0,40}libnccl-(net|tuner|profiler|env)", HINT),
    line(r"(ncclNetPlugin|ncclTunerPlugin|ncclCollNetPlugin)_v\d+ symbol", HINT),
)
FIX = ()
EXPLAINS = ()
