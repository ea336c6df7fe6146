"""Two NCCL packages are installed and the wrong one is loaded.

Detects: NCCL that rejects the configuration it is given, or lacks a symbol that torch asks for.
Why: torch was built with one NCCL and another one (vllm-nccl, an nvidia-nccl package for another CUDA, the system's)
  is found first; the structures have other sizes.
Evidence: `Invalid config ... attribute value`, an undefined symbol of NCCL.
Remedy: keep one NCCL package, or name it in VLLM_NCCL_SO_PATH.
References: https://github.com/vllm-project/vllm/issues/1726
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LRDM007"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "two versions of NCCL are installed and the wrong one is loaded"
CAUSE = "nccl-duplicate-packages"
SIGNS = (
    line(r"invalid config \w+ attribute value", CERTAIN),
    line(r"ncclConfig_t argument not initialized|NCCL_CONFIG_INITIALIZER", LIKELY),
    line(r"undefined symbol:? \W?nccl[A-Z]\w+", LIKELY),
    line(r"symbol lookup error.{0,120}\bnccl\w+", LIKELY),
    line(r"two (?:copies of )?NCCL (?:copies|versions|librar)|NCCL copies in one", LIKELY),
    near(r"vllm[-_]nccl[-_]cu\d\d", r"nvidia[-_]nccl[-_]cu\d\d", sure=POSSIBLE, within=6),
    line(
        r"\b(?:two|duplicate|several|multiple)\b.{0,40}\bnccl\b.{0,40}(?:packages are|installed|versions of"
        r"|libraries|wheels)",
        LIKELY,
    ),
    line(
        r"nvidia-nccl-cu12\b.{0,40}(?:and|next to|beside|together with).{0,20}nvidia-nccl-cu13|(?:two|both"
        r"|several|duplicate) (?:versions of |copies of )?NCCL\b.{0,30}(?:installed|packages|wheels|loaded"
        r"|librar)",
        LIKELY,
    ),
)
FIX = (
    "pip list | grep -i nccl; ldconfig -p | grep nccl   # which ones there are",
    "pip uninstall -y <all of them> && pip install nvidia-nccl-cu13   # one: the one of torch's CUDA",
    "export VLLM_NCCL_SO_PATH=<site-packages>/nvidia/nccl/lib/libnccl.so.2",
)
EXPLAINS = ()
