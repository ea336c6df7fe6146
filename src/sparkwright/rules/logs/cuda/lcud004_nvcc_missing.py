"""nvcc is not there, and a kernel has to be compiled.

Detects: FlashInfer, DeepGEMM, ggml or a wheel build that does not find nvcc.
Why: runtime images have no CUDA compiler; kernels that are not prebuilt for this chip are compiled at the first call,
  and there is no other path in the sampler.
Evidence: The line that names nvcc; or a start that dies inside flashinfer_sample.
Remedy: A devel image or the toolkit, or the prebuilt kernel packages, or another sampler.
References: https://github.com/flashinfer-ai/flashinfer (flashinfer/jit/cpp_ext.py)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LCUD004"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "nvcc is not there, and a kernel has to be compiled"
CAUSE = "nvcc-missing-for-jit"
SIGNS = (
    line(r"No such file or directory: '(?:[^'\s:]*/)?nvcc'", CERTAIN),
    line(r"Could not find nvcc|Failed to find nvcc|nvcc: (?:command )?not found|unable to find nvcc", CERTAIN),
    line(r"(?<!:)/usr/local/cuda[^\s:]*/bin/nvcc['\"]?: (?:not found|No such file)", 0.85),
    line(
        r"CUDA_HOME (?:environment variable )?is not set|No CMAKE_CUDA_COMPILER could be found"
        r"|CMAKE_CUDA_COMPILER-NOTFOUND|Failed to find a working CUDA compiler",
        LIKELY,
    ),
    line(
        r"nvcc was not found|CUDA Toolkit not found|Could NOT find CUDAToolkit|Could not find `?nvcc",
        LIKELY,
        unless=r"FlashInfer unavailable",
    ),
    near(
        r"in flashinfer_sample\b|return flashinfer_sample\(",
        r"EngineCore failed to start|_dummy_sampler_run|WorkerProc (?:hit|failed)",
        sure=POSSIBLE,
        within=40,
    ),
    line(
        r"\bnvcc\b.{0,60}(?:is )?(?:missing|(?:not|n't) (?:installed|available|discoverable|present"
        r"|in the (?:image|container)|on (?:the )?path)|absent)|(?:without|lacks|\bno) (?:the )?nvcc\b",
        LIKELY,
    ),
    line(
        r"Failed to find CUDA home|assert CUDA_HOME is not None|CUDA_HOME (?:is not set"
        r"|environment variable is not set|not found)",
        LIKELY,
    ),
)
FIX = (
    "docker exec <container> sh -c 'command -v nvcc; echo $CUDA_HOME; ls -d /usr/local/cuda*'",
    (
        "use the devel image, or: apt-get install -y cuda-nvcc-13-0 && export CUDA_HOME=/usr/local/cuda "
        "PATH=/usr/local/cuda/bin:$PATH"
    ),
    "or the prebuilt kernels: pip install flashinfer-cubin flashinfer-jit-cache   # of flashinfer-python's version",
    "export VLLM_USE_FLASHINFER_SAMPLER=0   # where only the sampler needs it",
)
EXPLAINS = ()
