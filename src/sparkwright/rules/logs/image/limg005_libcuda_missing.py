"""The driver's libcuda is not in the container.

Detects: programs and imports that do not find libcuda or libnvidia-ml.
Why: libcuda belongs to the driver and is mounted by the NVIDIA runtime. Without --gpus (or with a broken toolkit,
  or at image build time) it is not there.
Evidence: the loader's error.
Remedy: start the container with GPU access; do not install a libcuda into the image.
References: https://github.com/ggml-org/llama.cpp/issues/7822;
  https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LIMG005"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "libcuda.so.1 is missing in the container"
CAUSE = "libcuda-not-in-container"
SIGNS = (
    line(r"libcuda\.so(\.1)?: cannot open shared object", CERTAIN),
    line(
        r"libcuda\.so(\.1)?\b.{0,40}(not found|cannot be found|cannot found|no such file)", LIKELY, unless=r"cubin|=> /"
    ),
    line(
        r"(could not|cannot|can't|failed to|unable to) (find|load|open|locate|dlopen)\b.{0,40}libcuda(\.so|\b)",
        LIKELY,
        unless=r"libcudart",
    ),
    line(r"libnvidia-ml\.so(\.1)?: cannot open shared object", LIKELY),
    line(r"nvml shared library not found", POSSIBLE),
    near(
        r"libcuda(\.so)?\b",
        r"not (visible|injected|mounted|in the container|present)|missing",
        r"container|docker|runtime",
        sure=LIKELY,
        within=2,
        unless=r"libcudart",
    ),
    line(r"NVIDIA Driver was not detected", POSSIBLE),
    line(r"Found no NVIDIA driver on your system", POSSIBLE),
)
FIX = (
    (
        "docker run --rm --gpus all {image} ldconfig -p | grep libcuda   # must name "
        "/usr/lib/aarch64-linux-gnu/libcuda.so.1"
    ),
    "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker",
)
EXPLAINS = ("no-gpu-visible-in-container",)
