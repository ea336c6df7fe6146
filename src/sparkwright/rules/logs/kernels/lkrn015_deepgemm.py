"""DeepGEMM does not support SM 12.x.

Detects: assertions of DeepGEMM's dispatcher.
Why: DeepGEMM chooses by the major number of the capability and knows 9 and 10; 12 ends in `unreachable`. Engines
  that route FP8 there fail at weight loading or warm-up.
Evidence: DeepGEMM's assertion with a file of its csrc.
Remedy: switch DeepGEMM off, so that Triton or CUTLASS takes the layers.
References: DeepGEMM csrc/utils/layout.hpp, issues 236 and 317; vLLM issue 47130; field guide E52
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LKRN015"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "DeepGEMM does not support SM 12.x"
CAUSE = "deepgemm-unsupported-arch-sm12x"
SIGNS = (
    line(r"Unknown SF transf"),
    line(r"deep_?gemm.{0,260}(?:Unknown (?:recipe|major|SF)|Invalid recipe|Unsupported arch)"),
    line(
        r"(?:hyperconnection|layout|heuristics|attention|gemm|einsum)\.hpp:\d+.{0,6}(?:Unsupported arch"
        r"|Unknown recipe|Unknown major)"
    ),
    line(r"Assertion error .{0,260}(?:Unknown recipe|Unsupported architecture|arch_major)", LIKELY),
    line(r"fp8_gemm_sm100|sm100_fp8_(?:gemm|mqa)|tf32_hc_prenorm_gemm", LIKELY),
    line(
        r"DeepGEMM (?:MegaMoE|MXFP8 BMM|backend)?.{0,20}(?:requires (?:SM ?100|Blackwell|Hopper)"
        r"|(?:is )?not supported on|does not support) ?.{0,40}",
        LIKELY,
        unless=r"is only supported on cuda",
    ),
    near(
        r"deep_gemm|DeepGEMM FP8|DeepGEMM mHC|DeepGEMM kernel|DeepGEMM path",
        r"null(?:/| or )?unloadable|unloadable runtime|null runtime|kernel that failed|kernel fails"
        r"|no sm_?12\d? |not (?:built|compiled) for",
        sure=LIKELY,
        within=3,
        unless=r"half-written|NFS|shared",
    ),
    near(
        r"deep_gemm|DeepGEMM on|DeepGEMM in|DeepGEMM has|DeepGEMM throws|DeepGEMM crash|DeepGEMM fail"
        r"|DeepGEMM does|DeepGEMM assert|DeepGEMM kernel",
        r"sm_?12[01x]|SM12x|\bGB10\b",
        r"assert|crash|unsupported|unreachable|throws|fails",
        sure=LIKELY,
        within=1,
        unless=r"Auto-disabled",
    ),
    line(
        r"csrc/jit/\w+\.hpp:\d+\).{0,12}209\b|deep_gemm.{0,160}(?:NO_BINARY|CUDA driver error)"
        r"|(?:NO_BINARY|CUDA driver error).{0,160}deep_gemm"
    ),
    line(
        r"Assertion error \(.{0,80}deep_?gemm|failed: CUDA error .{0,80}deep_?gemm",
        LIKELY,
        unless=r"nullptr",
    ),
    near(
        r"/deep_gemm\S{0,20}\.py\", line|DeepGemmFp8\w{0,40}Kernel|\bfp8_gemm_nt\b|\bfp8_m_grouped_gemm\w*",
        r"CUDA error: (?:unspecified launch|invalid|no kernel|an illegal)|CUDA_ERROR_\w+|AcceleratorError",
        sure=0.7,
        within=12,
    ),
    line(r"DeepGEMM (?:backend )?is not available or outdated", 0.6),
    line(
        r"(?:disable|disabling|turn\w* off|without|unset) (?:VLLM_USE_|SGLANG_ENABLE_JIT_)?DEEP_?GEMM\b.{0"
        r",80}(?:works|fixes|helps|cures|starts)",
        0.65,
    ),
)
FIX = (
    "export VLLM_USE_DEEP_GEMM=0   # vLLM",
    "export SGLANG_ENABLE_JIT_DEEPGEMM=0 SGLANG_FP8_PAGED_MQA_LOGITS_TORCH=1   # SGLang",
    "or a build with DeepGEMM pull request 324 (SM 12.x)",
)
EXPLAINS = ("shared-jit-cache-corruption",)
