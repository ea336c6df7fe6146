"""The image lacks FlashInfer's own header files.

Detects: A compilation of FlashInfer that cannot find headers of FlashInfer itself.
Why: the package in the image was installed without its data directory, so kernels that are not prebuilt cannot be
  compiled.
Evidence: The compiler's line with a header under flashinfer/ or flashinfer/data.
Remedy: Another tag of the image, or the package installed again over it.
References: https://github.com/vllm-project/vllm/issues (v0.20.1 and v0.20.2 images)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line

CODE = "LVER015"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the image lacks FlashInfer's own header files"
CAUSE = "image-packaging-flashinfer-broken"
SIGNS = (
    line(
        r"(?:fatal error|cannot find|could not find|not find|missing|cannot open).{0,80}flashinfer/[\w/]+\.cuh?\b",
        CERTAIN,
    ),
    line(r"flashinfer/[\w/]+\.(?:cuh|h)\b.{0,60}(?:no such file|not found|is missing|are missing)", CERTAIN),
    line(
        r"(?:No such file or directory|not found|does not exist).{0,80}flashinfer/data/(?:csrc|include|cutlass)",
        LIKELY,
    ),
    line(r"fatal error: (?:cutlass|cute|tvm_ffi|spdlog)/[\w/]+\.h\w*: No such file", LIKELY),
    line(r"flashinfer.{0,60}(?:header|\.cuh).{0,60}(?:missing|absent|not (?:shipped|packaged|found))", LIKELY),
)
FIX = (
    (
        'docker exec <container> sh -c \'find / -path "*flashinfer/data/include*" -name "*.cuh" | head -3\'   '
        "# empty: the data are missing"
    ),
    (
        "use another tag of the image, or derive one: pip install --force-reinstall --no-deps "
        "flashinfer-python==<the same version>"
    ),
    "or choose an attention backend that is not FlashInfer: --attention-backend TRITON_ATTN",
)
EXPLAINS = ()
