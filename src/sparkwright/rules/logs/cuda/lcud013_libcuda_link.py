"""The linker finds no libcuda.so.

Detects: Triton or an extension whose link step fails on -lcuda, or that got the stub.
Why: the runtime mounts libcuda.so.1 only; the linker needs the name libcuda.so. The stub from the toolkit links but
  has no driver behind it.
Evidence: The linker's line, or CUDA's about a stub.
Remedy: Make the link, or show Triton the directory.
References: https://github.com/vllm-project/vllm/issues/16984
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line

CODE = "LCUD013"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the linker finds no libcuda.so"
CAUSE = "libcuda-link-missing"
SIGNS = (
    line(r"cannot find -lcuda\b", CERTAIN),
    line(r"CUDA driver is a stub library|cudaErrorStubLibrary|\berror 34\b.{0,20}stub", CERTAIN),
    line(
        r"libcuda\.so cannot found|Possible files are located at .{0,200}Please create a symlink of libcuda\.so",
        LIKELY,
    ),
)
FIX = (
    "ln -s /usr/lib/aarch64-linux-gnu/libcuda.so.1 /usr/lib/aarch64-linux-gnu/libcuda.so   # in the container",
    "export TRITON_LIBCUDA_PATH=/usr/lib/aarch64-linux-gnu",
    "take /usr/local/cuda/lib64/stubs out of LD_LIBRARY_PATH",
)
EXPLAINS = ("python-dev-headers-missing",)
