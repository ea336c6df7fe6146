"""Too many compiler jobs at once use up the memory.

Detects: Compiler processes killed while kernels or wheels are built.
Why: each nvcc of a large kernel takes 4 to 10 GB; with 20 cores that is more than the unified memory has beside the
  weights.
Evidence: cicc or cc1plus that died of signal 9.
Remedy: Fewer jobs.
References: https://docs.vllm.ai/en/latest/getting_started/installation (MAX_JOBS)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LCUD015"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "too many compiler jobs at once use up the memory"
CAUSE = "build-jobs-exhaust-memory"
SIGNS = (
    line(r"'?(?:cicc|cudafe\+\+|ptxas)'? died due to signal 9", CERTAIN),
    line(r"fatal error: Killed signal terminated program cc1plus", CERTAIN),
    near(r"ninja: build stopped|subcommand failed", r"\bKilled\b", sure=LIKELY, within=10),
)
FIX = (
    "export MAX_JOBS=4 NVCC_THREADS=1 CMAKE_BUILD_PARALLEL_LEVEL=4   # before the build or the engine's start",
    "free -h   # at least 10 GB free for each job",
)
EXPLAINS = ()
