"""The Triton MXFP4 kernels cannot be used.

Detects: the package triton_kernels that is missing, does not match, or does not compile for SM 12.x.
Why: the MXFP4 experts of gpt-oss run on triton_kernels, whose modules moved between revisions; its tiles use
  instructions of SM 10.x (scatter4) that sm_121a does not have.
Evidence: the import error, or ptxas naming the instruction.
Remedy: Marlin, or the matching revision.
References: vLLM gpt_oss_triton_kernels_moe.py; vLLM issue 41477
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LKRN021"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the Triton MXFP4 kernels cannot be used"
CAUSE = "mxfp4-triton-kernel-unsupported-sm12x"
SIGNS = (
    near(
        r"Failed to import Triton kernels",
        r"triton_kernels\.\w+",
        sure=CERTAIN,
        within=1,
    ),
    line(r"Failed to import Triton kernels", LIKELY),
    line(r"MXFP4 MoE backend '?TRITON\w*'? does not support .{0,80}current device"),
    line(r"No module named 'triton_kernels|cannot import name .{0,60}triton_kernels", LIKELY),
    line(r"tile::scatter4|tile::gather4", LIKELY),
    near(
        r"triton_kernels|matmul_ogs|mxfp4.{0,40}tri|tri\w{3}.{0,40}mxfp4",
        r"not supported on \.target|PassManager::run failed|LLVM ERROR|Unsupported conversion|requires SM"
        r"|capability gate|only supported on",
        sure=LIKELY,
        within=10,
    ),
    line(
        r"Triton MXFP4 kernels? (?:require|need|only)|triton_kernels (?:not found|is not installed"
        r"|package)",
        LIKELY,
    ),
    line(
        r"Must use persistent kernel and be TMA-compliant|supports swizzled mxfp4"
        r"|TMA-compliant for native MXFP|swizzle_mxfp4|native MXFP.{0,40}(?:not supported|only)",
        LIKELY,
    ),
    near(
        r"triton_kernels/matmul_ogs|triton_kernel_fused_experts|triton_kernel_moe",
        r"sm_?12[01x]|SM ?12[01x]|RTX 50|RTX PRO|\bGB10\b|DGX Spark",
        sure=0.7,
        within=30,
    ),
    line(r"triton_kernels/matmul_ogs\.py", 0.4),
)
FIX = (
    "vLLM: --moe-backend marlin for gpt-oss on GB10",
    "pip install the triton_kernels revision that the engine pins (it is not the one of the triton wheel)",
    "SGLang: --moe-runner-backend triton_kernel needs the same package",
)
EXPLAINS = ()
