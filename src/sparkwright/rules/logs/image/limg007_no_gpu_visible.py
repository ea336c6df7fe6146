"""The container sees no GPU.

Detects: engines that find no device or no platform, and the NGC banner that says so.
Why: the container was started without --gpus all (compose: without the device reservation), CUDA_VISIBLE_DEVICES is
  empty, or the runtime injects nothing.
Evidence: vLLM's unspecified platform, torch's and llama.cpp's no-device errors.
Remedy: make nvidia-smi work in the container first.
References: https://github.com/vllm-project/vllm/issues/12847;
  https://github.com/vllm-project/vllm/blob/main/vllm/platforms/__init__.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LIMG007"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "no GPU is visible in the container"
CAUSE = "no-gpu-visible-in-container"
SIGNS = (
    line(r"no platform detected, vllm is running on unspecifiedplatform", LIKELY),
    line(r"failed to infer device type", LIKELY),
    line(r"NVIDIA driver was not detected\.? .{0,10}GPU functionality will not be available", LIKELY),
    line(r"no accelerator \(cuda.{0,60}available", LIKELY),
    line(r"local rank 0 is out of bounds", LIKELY),
    near(r"nvmlDeviceGetHandleByIndex", r"NVMLError_InvalidArgument", sure=POSSIBLE, within=8),
    line(r"no cuda gpus are available", POSSIBLE),
    line(r"no cuda-capable device is detected", POSSIBLE),
    line(r"found no nvidia driver on your system", POSSIBLE),
    line(r"no cuda runtime is found, using cuda_home", POSSIBLE),
    line(
        r"no usable gpu found|is cuda available: false|no nvidia devices detected|no devices with dedicated vram"
        r"|no compatible gpus were discovered",
        POSSIBLE,
    ),
    line(r"torch\.cuda\.is_available\(\)\W{1,6}(returns? |is |= ?)?`?false", POSSIBLE),
    near(
        r"(inside|in) the container",
        r"nvidia-smi.{0,40}(fail|not found|no devices)|no gpus?\b|cannot see (the |any )?gpu",
        sure=LIKELY,
        within=2,
    ),
    line(
        r"(?:without|missing|forgot\w*|omit\w*|lacks?|no) (?:the )?`?(?:--gpus|--runtime[= ]nvidia"
        r"|--device nvidia\.com/gpu)",
        LIKELY,
    ),
)
FIX = (
    "docker run --rm --gpus all {image} nvidia-smi   # must list the GPU",
    "compose: deploy.resources.reservations.devices with driver nvidia, count all, capabilities [gpu]",
    "docker exec {container} env | grep VISIBLE_DEVICES",
)
EXPLAINS = ()
