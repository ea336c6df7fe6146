"""Marlin MoE was compiled without SM 12.x.

Detects: a Marlin MoE library without code for SM 12.x.
Why: the architecture list of the build left SM 12.x out of the BF16 and MoE kernels, so the driver translates 8.0
  PTX; the result is wrong output without an error.
Evidence: the count of sm_12x entries in _moe_C, or wrong output from Marlin MoE.
Remedy: a build with the list repaired.
References: vLLM pull request 40923
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LKRN023"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "Marlin MoE was compiled without SM 12.x"
CAUSE = "marlin-moe-arch-list-excludes-sm12x"
SIGNS = (
    line(r"MARLIN_(?:MOE_|BF16_|FP8_|MOE_FP8_)?ARCHS", LIKELY),
    near(
        r"marlin[- _]?moe|_moe_C\b|moe_wna16_marlin",
        r"gibberish|garbage|garbled|wrong output|incoherent|silently",
        sure=LIKELY,
        within=4,
        unless=r"INPUT_DTYPE|W4A8",
    ),
    near(
        r"_moe_C\S{0,12}\.so",
        r"cuobjdump|sm_12[01]|\bPTX\b (?:only|entries|fallback|JIT)",
        sure=LIKELY,
        within=3,
    ),
    near(
        r"MoE decode|MoE layers|expert(?:s| layers)",
        r"gibberish|garbage|garbled",
        r"(?:on|than) (?:Hopper|H100|H200|Ampere|A100)",
        sure=POSSIBLE,
        within=2,
    ),
    near(
        r"8\.0\+PTX|PTX (?:JIT|fallback|entries)|JIT-promot",
        r"marlin",
        sure=LIKELY,
        within=3,
    ),
    near(
        r"moe_wna16_marlin_gemm|marlin_moe",
        r"no kernel image|not compiled|no .{0,12}cubin",
        sure=LIKELY,
        within=10,
    ),
    line(
        r"^(?=.*marlin)(?=.*(?:arch list|ARCHS|sm_?12|12\.x|GB10|Spark)).*(?:\bwrong\b|leaves? out"
        r"|excludes?|missing|gibberish|garbage)",
        0.65,
        unless=r"INPUT_DTYPE|W4A8|gpt-?oss|FP4|first token|CUTLASS",
    ),
    line(r"\bMoE (?:forward|output|result|layer output).{0,40}(?:gibberish|garbage|garbled|wrong)", POSSIBLE),
)
FIX = (
    (
        "cuobjdump --list-elf $(python3 -c 'import vllm,os;print(os.path.dirname(vllm.__file__))')/_moe_C.abi3.so "
        "| grep -c sm_12   # 0: only PTX"
    ),
    ("a vLLM with pull request 40923, or build with 12.0;12.1 in MARLIN_ARCHS and MARLIN_MOE_ARCHS (CMakeLists.txt)"),
)
EXPLAINS = ()
