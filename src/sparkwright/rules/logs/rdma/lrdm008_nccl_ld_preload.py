"""LD_PRELOAD loads another NCCL than the one that is named.

Detects: reports and lines where LD_PRELOAD of a libnccl wins over VLLM_NCCL_SO_PATH or the package.
Why: the loader takes a preloaded library first, in every process that inherits the variable; the version that runs is
  then not the version that was installed or chosen. (Some recipes preload a fixed NCCL on purpose.)
Evidence: LD_PRELOAD and libnccl next to a version that is not expected.
Remedy: unset it, or preload the same library on all nodes.
References: field guide B5; https://github.com/vllm-project/vllm/issues/15525
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, HINT, LIKELY, POSSIBLE, line, near

CODE = "LRDM008"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "LD_PRELOAD replaces the NCCL library"
CAUSE = "nccl-ld-preload-overrides-library"
SIGNS = (
    near(
        r"LD_PRELOAD",
        r"nccl==|nccl |libnccl",
        r"overrid|ignored|instead of|still (?:uses?|loads?|shows?|reports?)|takes? (?:precedence|no effect)|wins"
        r"|wrong version"
        r"|unexpected|older|mismatch|no effect|shadow|regardless",
        sure=LIKELY,
        within=3,
    ),
    line(r"LD_PRELOAD.{0,120}libnccl.{0,80}(?:cannot be preloaded|cannot open shared object)", LIKELY),
    line(r"object '.{0,160}libnccl[^']{0,40}' from LD_PRELOAD cannot be preloaded", CERTAIN),
    line(r"VLLM_NCCL_SO_PATH.{0,60}(?:take no effect|no effect|ignored|not (?:used|honou?red)|overridden)", LIKELY),
    near(
        r"LD_PRELOAD=\S{0,160}libnccl",
        r"NCCL version|using nccl==|unhandled (?:cuda|system) error|undefined symbol",
        sure=POSSIBLE,
        within=12,
    ),
    near(
        r"LD_PRELOAD",
        r"libnccl|nccl==|NCCL \d\.",
        r"points to|reports|in the image|system (?:lib|nccl)|unset|remov|replac|conflict",
        sure=POSSIBLE,
        within=3,
    ),
    line(r"LD_PRELOAD\S{0,160}libnccl", HINT),
)
FIX = (
    "docker inspect -f '{{{{.Config.Env}}}}' <container> | tr ' ' '\\n' | grep LD_PRELOAD   # on every node",
    "docker run ... -e LD_PRELOAD= ...   # or the same library on every node",
)
EXPLAINS = ("nccl-duplicate-packages", "nccl-version-mismatch-between-nodes")
