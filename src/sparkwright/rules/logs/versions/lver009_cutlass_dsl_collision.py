"""Two cutlass-dsl packages overwrite each other's files.

Detects: PTX from the CUTLASS DSL that ptxas rejects for the kind of its mma instruction.
Why: nvidia-cutlass-dsl-libs-base and -libs-cu13 4.5.0 carry the same paths; whichever was installed last wins, and
  the files of libs-base emit PTX that is wrong for this chip.
Evidence: The MLIR error of the DSL with ptxas's lines.
Remedy: Remove all packages and the directory, then install one set in one step.
References: https://github.com/NVIDIA/cutlass/issues/3227
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, HINT, LIKELY, POSSIBLE, line, near

CODE = "LVER009"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "two cutlass-dsl packages overwrite each other's files"
CAUSE = "cutlass-dsl-wheel-collision"
SIGNS = (
    near(
        r"nvidia_cutlass_dsl|cutlass/base_dsl|MLIRError",
        r"Unexpected instruction types specified for '_?mma'",
        sure=CERTAIN,
        within=12,
    ),
    line(r"Unexpected instruction types specified for '_?mma'", LIKELY),
    line(r"NVPTX compiler invocation failed", POSSIBLE),
    line(r"MLIRError: Failure while executing pass pipeline", HINT),
    line(
        r"cutlass-dsl-libs-(?:base|cu13).{0,200}(?:overlap|collid|collision|conflict|same (?:files|paths)"
        r"|overwr|clobber)",
        CERTAIN,
    ),
    line(r"'llvm\.mlir\.global_dtors' op requires attribute|\bGPUModuleOp\b", LIKELY),
    near(
        r"libs-base\b",
        r"libs-cu13\b",
        r"same path|overlap|diverge|different content|last wins|\brace\b",
        sure=LIKELY,
        within=6,
    ),
    near(
        r"cutlass-dsl-libs-base",
        r"cutlass-dsl-libs-cu13",
        r"overlap|collid|collision|conflict|overwr|clobber|wrong",
        sure=LIKELY,
        within=3,
    ),
    line(r"No module named 'cutlass\.cute'", 0.7),
    near(
        r"cutlass[-_]dsl",
        r"(?:self-)?inconsisten\w*|import cutlass\W{0,3} ?(?:fails?|breaks?|raises)|half[- ](?:overwritten|installed)",
        sure=LIKELY,
        within=2,
    ),
)
FIX = (
    "pip uninstall -y nvidia-cutlass-dsl nvidia-cutlass-dsl-libs-base nvidia-cutlass-dsl-libs-cu13",
    'rm -rf "$(python3 -c \'import sysconfig; print(sysconfig.get_path("purelib"))\')"/nvidia_cutlass_dsl*',
    "pip install 'nvidia-cutlass-dsl[cu13]>=4.5.2'   # in the same image layer",
)
EXPLAINS = ()
