"""An old binary runs a fallback kernel.

Detects: high utilisation at low power.
Why: the running binary was built before native FP4 kernels for Blackwell existed, so a slow replacement keeps the
  GPU busy without using its units.
Evidence: utilisation above 90 % with about half of the power; comparison with the source's figures.
Remedy: a current build, and a look at which file the service starts.
References: Blackwellboy/model-serving-minefield
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LKRN030"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "an old binary runs a fallback kernel"
CAUSE = "stale-build-fallback-kernel"
SIGNS = (
    line(r"suspect fallback kernel|high-util ?/ ?low-power", LIKELY),
    near(
        r"fall-?back (?:kernels?|path)|slow path",
        r"low.power|\d\d ?% TDP|stale (?:build|binary)|predates?|provenance|old (?:build|binary)"
        r"|rebuil[dt]",
        sure=LIKELY,
        within=4,
    ),
    near(
        r"mean util\w* ?[:=]? ?9\d",
        r"\([1-5]\d ?% TDP\)",
        sure=LIKELY,
        within=2,
    ),
    near(
        r"stale (?:build|binary)",
        r"\d W of \d|utili[sz]ation|rebuil[dt]|FP4 kernel",
        sure=LIKELY,
        within=2,
    ),
    near(
        r"stale (?:build|binary)|older? (?:build|binary)|outdated (?:build|binary)",
        r"native FP4|sm_12[01]|Blackwell|tok/s|tokens/s",
        sure=POSSIBLE,
        within=3,
    ),
    line(
        r"(?:stale|old|previous|outdated) build\b.{0,60}(?:fall\w* back|fallback|slow kernel|still used"
        r"|is used)",
        LIKELY,
    ),
)
FIX = (
    "which binary runs: readlink -f /proc/<pid>/exe; <binary> --version",
    "llama.cpp: git pull, then a clean build with -DCMAKE_CUDA_ARCHITECTURES=121 (GB10) or 120",
)
EXPLAINS = ()
