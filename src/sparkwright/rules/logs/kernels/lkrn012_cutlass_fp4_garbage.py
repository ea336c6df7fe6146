"""The CUTLASS FP4 kernel computes wrong values on SM 12.x.

Detects: fluent or broken nonsense from NVFP4 kernels.
Why: some CUTLASS and FlashInfer FP4 kernels run on SM 12.x without an error and compute wrongly (missing FP4
  conversion instruction, tiles for other hardware). Newer versions are repaired for some shapes.
Evidence: reports of wrong output with FP4 or CUTLASS named; a log shows nothing.
Remedy: Marlin, which is exact here; test again after an update.
References: NVIDIA/cutlass issue 3096 and pull request 3120; vLLM issue 48898, pull request 48965; field guide E55;
  seed 002
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LKRN012"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the CUTLASS FP4 kernel computes wrong values on SM 12.x"
CAUSE = "cutlass-fp4-garbage-sm12x"
SIGNS = (
    near(
        r"CUTLASS|NVFP4|\bFP4 (?:MoE|GEMM|kernel|linear|path)",
        r"garbage|gibberish|garbled|incoherent|nonsense|wrong (?:output|values?|results?|tokens?|numbers)"
        r"|incorrect (?:output|numer|results?)|outputs are wrong|NaN (?:output|logits|during)"
        r"|produces NaN|乱码|胡言乱语|token salad",
        sure=0.65,
        within=1,
        unless=r"DeepGEMM E8M0|marlin.{0,12}(?:moe|fp8)|_moe_C",
    ),
    near(
        r"auto-selected kernel|linear-backend marlin|--moe-backend[ =]marlin",
        r"GSM8K|MMMU|garbage|gibberish|accuracy (?:of )?0",
        sure=LIKELY,
        within=3,
    ),
    line(r"\"content\": ?\"(?:\+{12}|!{12}|\?{12})", POSSIBLE),
    line(r"^(?=.*(?:NVFP4|\bFP4\b|CUTLASS)).*(?:!!!!!!|\+\+\+\+\+\+)", 0.65),
    line(
        r"(?:NVFP4|FP4)\b.{0,40}CUTLASS\b.{0,60}(?:exclamation marks|!!!!|garbage|gibberish|nonsense"
        r"|NaNs?\b|zeros|wrong (?:tokens|output))|CUTLASS\b.{0,40}(?:NVFP4"
        r"|FP4)\b.{0,60}(?:exclamation marks|!!!!|garbage|gibberish|nonsense|NaNs?\b|wrong (?:tokens|output))",
        LIKELY,
    ),
)
FIX = (
    "--moe-backend marlin --linear-backend marlin   # vLLM; with VLLM_USE_FLASHINFER_MOE_FP4=0 where it is known",
    "SGLang: --moe-runner-backend marlin --fp4-gemm-backend marlin where the version has them",
    "compare one fixed prompt at temperature 0 with and without",
)
EXPLAINS = ()
