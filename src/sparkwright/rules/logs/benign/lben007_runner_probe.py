"""Ollama probes runners that do not fit, and skips them.

Detects: the skip line for a library folder of another CUDA version.
Why: Ollama tries each of its CUDA libraries and takes one that knows the chip; `inference compute` says which.
Evidence: the skip line.
Remedy: none; look at the `inference compute` line.
References: https://github.com/ollama/ollama/blob/main/docs/troubleshooting.md
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line

CODE = "LBEN007"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "skipped runner of Ollama's probe"
CAUSE = "benign-runner-probe-skip-line"
SIGNS = (
    line(r"skipping cuda device.{0,80}not in compiled architectures", LIKELY),
    line(r"msg=\"?skipping .{0,40}(runner|library|device|gpu)", POSSIBLE),
)
FIX = ()
EXPLAINS = ()
