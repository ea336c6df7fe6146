"""The NCCL library cannot be loaded.

Detects: vLLM that cannot load libnccl, a missing libnccl.so.2, a half downloaded one.
Why: the nvidia-nccl package is missing or damaged, or VLLM_NCCL_SO_PATH names a file that is not there (or not for this
  architecture).
Evidence: the loader's line with the path.
Remedy: install the package of the engine's CUDA again, unset VLLM_NCCL_SO_PATH.
References: https://github.com/vllm-project/vllm/issues/4257; https://github.com/vllm-project/vllm/issues/4312
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line

CODE = "LRDM012"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the NCCL library cannot be loaded"
CAUSE = "nccl-library-not-found"
SIGNS = (
    line(r"failed to load NCCL library from (?P<path>\S+)", LIKELY),
    line(r"cannot find libnccl\.so", LIKELY),
    line(r"libnccl\.so[.\d]*: (?:cannot open shared object file|file too short|invalid ELF)", POSSIBLE),
    line(r"name 'nccl\w+' is not defined", LIKELY),
    line(r"NCCL was not found|NCCL library (?:not found|is missing)", POSSIBLE),
)
FIX = (
    "pip install --force-reinstall nvidia-nccl-cu13   # the package of the engine's CUDA",
    "unset VLLM_NCCL_SO_PATH; ldconfig -p | grep nccl",
)
EXPLAINS = ()
