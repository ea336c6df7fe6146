"""Kernels shipped as PTX were built by a newer CUDA than the driver knows.

Detects: CUDA error 222 in its wordings.
Why: minor-version compatibility covers machine code, not PTX: the driver's compiler refuses PTX of a newer toolkit.
  Kernels without machine code for sm_121 fail, others work.
Evidence: `the provided PTX was compiled with an unsupported toolchain`.
Remedy: an image whose CUDA is not newer than the driver's, or a newer driver.
References: gb10.md A2; https://docs.vllm.ai/en/latest/usage/troubleshooting.html
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LDRV003"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the image's PTX is newer than the driver"
CAUSE = "image-cuda-newer-than-driver-ptx"
SIGNS = (
    line(r"provided PTX was compiled with an unsupported toolchain", CERTAIN),
    line(r"UnsupportedPtxVersion|UNSUPPORTED_PTX_VERSION", CERTAIN),
    near(r"(?:CUDA )?error:? 222\b|code=222\b", r"\bPTX |marlin|_fp4|toolchain", sure=LIKELY, within=3),
    near(
        r"\bPTX |\bPTX\.| PTX\b",
        r"(?:newer|13\.[1-9]).{0,60}driver|driver.{0,60}(?:older|13\.0|too old|cannot)",
        sure=LIKELY,
        within=2,
    ),
    line(r"application ptx input.{0,60}Unsupported \.version", LIKELY),
    line(
        r"PTX (?:version|ISA|code).{0,60}(?:not supported|unsupported|newer than).{0,40}driver"
        r"|cuModuleLoadData.{0,60}(?:222|UNSUPPORTED_PTX)",
        LIKELY,
    ),
    line(
        r"CUDA 1[3-9]\.[1-9]\b.{0,40}\b(?:on|with|under) (?:a |the )?(?:CUDA )?1[3-9]\.\d driver|(?:JIT"
        r"|PTX)\b.{0,60}(?:newer than|too new for) (?:the )?(?:host )?driver",
        LIKELY,
    ),
)
FIX = (
    "nvidia-smi | grep -o 'CUDA Version: [0-9.]*'   # on {node}; the image's CUDA must not be newer",
    "an image with CUDA 13.0 for driver 580; or build with nvcc of that version and machine code for 12.1a",
    "GB10: a newer driver only through the DGX Dashboard; 590 and 595 are not for serving",
)
EXPLAINS: tuple[str, ...] = ()
