"""A CUDA 12 wheel was installed where only CUDA 13 is.

Detects: An extension that asks for a runtime library of CUDA 12, or sgl_kernel that can load none of its libraries.
Why: default wheels on PyPI are CUDA 12 builds; GB10 systems have CUDA 13, and libcudart.so.12 is not there.
Evidence: The loader's line with a `.so.12`.
Remedy: Wheels built for cu130, or a container.
References: https://wheels.vllm.ai; https://github.com/sgl-project/sglang/issues/18203
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, LIKELY, POSSIBLE, line, near

CODE = "LCUD002"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a CUDA 12 wheel was installed where only CUDA 13 is"
CAUSE = "cuda12-wheel-on-cuda13-host"
SIGNS = (
    line(
        r"(?P<lib>lib(?:cudart|cublas|cublasLt|nvrtc|nvJitLink|cupti|nvrtc-builtins|nppc)\.so\.12\S*"
        r"|libcufft\.so\.11): cannot open shared object",
        LIKELY,
    ),
    line(r"Could not load any common_ops library", LIKELY),
    line(r"\[sgl_kernel\] CRITICAL", POSSIBLE),
    line(
        r"(?:missing|needs?|requires?|wants|expects|looking for|find|load(?:ing)?"
        r"|library) \W?(?P<lib>libcudart\.so\.12)",
        LIKELY,
    ),
    line(r"(?:\bcu12\d?\b|cuda ?12(?:\.\d)?).{0,60}(?:wheel|build|binar).{0,100}(?:\bcu13\d?\b|cuda ?13)", LIKELY),
    line(r"(?:\bcu13\d?\b|cuda ?13).{0,80}(?:but|while|yet).{0,80}(?:\bcu12\d?\b|cuda ?12)", LIKELY),
    line(r"libcudart\.so\.12\b", POSSIBLE, unless=r"=>"),
    near(
        r"nvidia-nccl-cu12==|nvidia-cuda-runtime-cu12==",
        r"nvidia-nccl-cu13==|nvidia-cuda-runtime==13",
        sure=HINT,
        within=60,
    ),
)
FIX = (
    "python3 -c 'import torch; print(torch.version.cuda)'; ls /usr/local | grep cuda   # what is there",
    (
        "in a fresh environment: pip install torch --index-url https://download.pytorch.org/whl/cu130, then "
        "vllm from https://wheels.vllm.ai (+cu130) or sgl-kernel from https://docs.sglang.ai/whl/cu130/"
    ),
    "or use a container image for CUDA 13",
)
EXPLAINS = (
    "shared-library-not-found",
    "model-architecture-unsupported",
)
