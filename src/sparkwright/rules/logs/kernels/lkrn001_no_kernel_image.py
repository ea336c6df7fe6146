"""A binary has no kernels for this GPU.

Detects: the CUDA error that no kernel image fits the device.
Why: the library (torch, vLLM, FlashInfer, sgl-kernel, ggml) was compiled for other GPU generations. sm_120a code
  does not run on sm_121, so a wheel that works on a desktop card can still fail on GB10.
Evidence: the runtime's own error text; the frames above it name the library.
Remedy: take a build for sm_121 (CUDA 13), or a backend whose kernels exist there.
References: CUDA C Programming Guide, 6.1 (compute capability); vLLM issue 16901; SGLang issue 7249; field guide E57
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LKRN001"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a binary has no kernels for this GPU"
CAUSE = "no-kernel-image-sm12x"
SIGNS = (
    line(r"no kernel image is available for execution", LIKELY),
    line(r"cudaErrorNoKernelImageForDevice|CUDA_ERROR_NO_BINARY_FOR_GPU|no binary for gpu", LIKELY),
    line(r"cuda capability sm_12\d\w? is not compatible with the current PyTorch installation", POSSIBLE),
    line(r"No compiled (?:silu_and_mul )?nvfp4 quantization kernel for SM", LIKELY),
    line(r"device kernel image is invalid|cudaErrorInvalidKernelImage", POSSIBLE),
    near(
        r"cuobjdump|CMAKE_CUDA_ARCHITECTURES",
        r"no kernel image|no sm_12\d|lacks? sm_12\d|without sm_12\d",
        sure=LIKELY,
        within=6,
    ),
    line(r"has no device code compatible with CUDA arch|ggml-cuda\.cu was compiled for", LIKELY),
    line(r"CUDA error: invalid device function|cudaErrorInvalidDeviceFunction|CUDA_ERROR_NO_BINARY_FOR_GPU", 0.6),
    line(
        r"(?:not|never|wasn.t) (?:built|compiled) (?:for|with) (?:sm_?12[01]|compute_?12[01]|SM ?12\.|GB10"
        r"|Blackwell)|(?:no|without|lacks|missing) (?:sm_?12[01]a?|compute_?12[01]a?) (?:kernels?|code"
        r"|cubins?|SASS|binar\w+|support)",
        0.65,
        unless=r"marlin|deep_?gemm|flash_?mla|cutlass|triton|attention",
    ),
    line(
        r"(?:gets?|with|has|had|reports?|throws|raises|fails with) .{0,6}no kernel image"
        r"|no kernel image (?:for|on) (?:GB10|sm_?12|this GPU)|(?:wheel|build|binary|extension"
        r"|image)\b.{0,40}\bonly\b.{0,24}\bsm_(?:[789]\d|100)\b",
        LIKELY,
        unless=r"marlin|deep_?gemm|one (?:rank|node)|worker",
    ),
)
FIX = (
    "cuobjdump --list-elf <the library of the traceback> | grep -c sm_12   # 0: the file has no code for this GPU",
    (
        "vLLM: {deployment} with an image for CUDA 13 (cu130), or --linear-backend marlin --moe-backend marlin for "
        "FP4 models"
    ),
    "llama.cpp: cmake -B build -DGGML_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES=121   # in a clean folder, with CUDA 13",
    "sgl-kernel: install the +cu130 wheel instead of the one from PyPI",
)
EXPLAINS = ()
