"""CUDA_HOME is not one directory.

Detects: A compiler path that begins with a colon, holds a second path, or has bin twice.
Why: CUDA_HOME was set like PATH (`:/usr/local/cuda`) or to the bin directory; tools put /bin/nvcc behind it.
Evidence: The path in the compile command or the error.
Remedy: CUDA_HOME must be the one root directory of the toolkit.
References: https://github.com/vllm-project/vllm/issues/36077
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line

CODE = "LCUD009"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "CUDA_HOME is not one directory"
CAUSE = "cuda-home-malformed"
SIGNS = (
    line(r"(?:^|[\s'\"=\[]):(?:/usr/local|/opt|/home|/data)/\S{0,80}?(?:/bin/nvcc|/include\b)", CERTAIN),
    line(r"CUDA_(?:HOME|PATH)(?:=['\"]?|\b.{0,20}[\s=:'\"])(?::/|/[^\s:'\"]+:/)", CERTAIN),
    line(r"/cuda[-.\w]*:/\S{0,80}/bin/nvcc", LIKELY),
    line(r"/bin/bin/nvcc|/nvcc/bin/nvcc|\$\{?CUDA_HOME\}?/bin/nvcc['\"]?: (?:not found|No such)", CERTAIN),
    line(
        r"CUDA_HOME.{0,80}(?:malformed|leading colon|trailing|two paths|wrongly set|not a directory"
        r"|starts with a colon)",
        LIKELY,
    ),
)
FIX = (
    "docker exec <container> sh -c 'echo \"[$CUDA_HOME] [$CUDA_PATH]\"'   # one directory, no colon, without /bin",
    "export CUDA_HOME=/usr/local/cuda PATH=/usr/local/cuda/bin:$PATH",
    "rm -rf ~/.cache/flashinfer   # build files with the old path",
)
EXPLAINS = ("nvcc-missing-for-jit",)
