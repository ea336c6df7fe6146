"""The build took this GPU's architecture apart wrongly.

Detects: nvcc that is asked for compute_20, compute_1 or compute_12 where 12.1 was meant, or an arch parser that
  fails.
Why: build scripts of the days of one-digit majors replace `2.1` inside `12.1`, or cut the name after two digits.
Evidence: The -gencode option and nvcc's fatal line.
Remedy: Name the architecture in a form that the script reads right, or a newer build script.
References: https://github.com/pytorch/pytorch/pull/173754
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LCUD007"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the build took this GPU's architecture apart wrongly"
CAUSE = "cuda-arch-list-misparsed"
SIGNS = (
    line(r"arch=compute_(?:20|2|1|12),code=(?:sm|compute)_1[0-2]", CERTAIN),
    line(r"Unsupported gpu architecture '(?P<arch>(?:compute|sm)_(?:20|2|1|12|1[0-2]))'", CERTAIN),
    line(r"12\.1\(2\.[01]\)|12\.0\(2\.0\)", CERTAIN),
    line(r"invalid literal for int\(\) with base 10: '\d{0,3}[af]'", LIKELY),
    line(
        r"(?:TORCH_CUDA_ARCH_LIST|CMAKE_CUDA_ARCHITECTURES|arch list).{0,100}(?:misread|mispars|wrongly"
        r"|malformed|becomes|turned into)",
        LIKELY,
    ),
    line(r"Unknown CUDA arch \(1[012]\.\d[af]?\+PTX", LIKELY),
    near(
        r"CUDA target architectures: .{0,80}1[0-2]\.\d[af]",
        r"CUDA supported target architectures: (?!.{0,200}1[0-2]\.\d[af])",
        sure=LIKELY,
        within=6,
    ),
    line(r"Not building (?:NVFP4|\w*c3x_(?:sm)?1[02]\d|\w*sm1[02]\d\w*).{0,20}no compatible archs", 0.65),
)
FIX = (
    "export TORCH_CUDA_ARCH_LIST=12.1a   # where the script fails on it: 12.1, or 12.0",
    "cmake -B build -DCMAKE_CUDA_ARCHITECTURES=121a-real   # for CMake projects",
    "update the project: newer build scripts read two-digit majors",
)
EXPLAINS = ("cuda-toolkit-too-old-for-arch",)
