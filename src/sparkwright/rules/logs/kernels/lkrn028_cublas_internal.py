"""CuBLAS failed in a matrix product.

Detects: a cuBLAS product that ends with an internal error.
Why: seen on GB10 under concurrent load; the same requests pass after a restart. Dead engine, NCCL timeout minutes
  later and exit code 0 all follow from it.
Evidence: cuBLAS's status with the name of the call. A failing cublasCreate is memory instead.
Remedy: restart; collect the lines before it when it repeats.
References: tonyd2wild/DeepSeek-v4-Flash-Vision-Exp issue 8
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, LIKELY, POSSIBLE, line, near

CODE = "LKRN028"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "cuBLAS failed in a matrix product"
CAUSE = "cublas-transient-internal-error-gb10"
SIGNS = (
    near(
        r"CUBLAS_STATUS_INTERNAL_ERROR",
        r"cublas(?:Gemm|Lt|Sgemm|Hgemm)\w*",
        sure=LIKELY,
        within=1,
    ),
    line(
        r"CUBLAS_STATUS_INTERNAL_ERROR",
        POSSIBLE,
        unless=r"cublasCreate",
    ),
    line(r"CUBLAS_STATUS_EXECUTION_FAILED", POSSIBLE),
    line(r"CUBLAS_STATUS_INTERNAL_ERROR", HINT),
    near(
        r"CUBLAS_STATUS_INTERNAL_ERROR",
        r"EngineDead|engine death|engine died",
        sure=LIKELY,
        within=3,
    ),
    line(r"CUBLAS_STATUS_(?:NOT_INITIALIZED|INTERNAL_ERROR|EXECUTION_FAILED)", 0.6),
)
FIX = (
    "restart the deployment: on GB10 the fault was not reproducible ({deployment})",
    "if it comes back: --enforce-eager and fewer --max-num-seqs tell whether CUDA graphs take part",
    "docker run --restart unless-stopped: after this fault the container can leave with code 0",
)
EXPLAINS = ("container-exits-zero-not-restarted",)
