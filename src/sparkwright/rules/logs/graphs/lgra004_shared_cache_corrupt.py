"""Ranks write one compile cache at the same time.

Detects: compile caches that several ranks share.
Why: the caches lie under a folder that both nodes mount (an NFS HF_CACHE); two ranks write the same products and
  read each other's half-written files, and the symptom changes from start to start.
Evidence: errors of files in cache folders: missing, existing, too short, or a null DeepGEMM runtime.
Remedy: local caches, one for each node and image.
References: Blackwellboy/model-serving-minefield, U19; field guide E62
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LGRA004"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "ranks write one compile cache at the same time"
CAUSE = "shared-jit-cache-corruption"
SIGNS = (
    near(
        r"runtime != nullptr",
        r"half-written|cubin|shared",
        sure=LIKELY,
        within=4,
    ),
    line(r"runtime != nullptr", POSSIBLE),
    near(
        r"shared (?:\w+ )?cache|NFS[- ](?:shared|mounted|backed)|NFS mount|NFS cache|same cache"
        r"|same HF_CACHE|HF_CACHE.{0,20}(?:NFS|shared)|cache director\w.{0,30}(?:shared|both)",
        r"\brace\b|corrupt|half-written|concurrent\w*|both ranks|other rank|half-written|stale file"
        r"|build products",
        sure=LIKELY,
        within=4,
    ),
    near(
        r"directory-creation race|half-written (?:cubin|kernel|file)|binary built by the other",
        r"torch\.compile|DeepGEMM `?runtime|FlashInfer binary|cubin|one rank|both ranks|other rank",
        sure=CERTAIN,
        within=3,
    ),
    line(
        r"(?:Stale file handle|FileExistsError|Directory not empty).{0,240}(?:torch_compile_cache"
        r"|torchinductor|\.triton|triton/cache|deep_gemm|flashinfer|tvm-ffi)",
        LIKELY,
    ),
    line(
        r"(?:torch_compile_cache|torchinductor|\.triton/|deep_gemm"
        r"|cached_ops).{0,240}(?:Stale file handle|File exists|Directory not empty|file too short"
        r"|invalid ELF header)",
        LIKELY,
    ),
    line(
        r"FileNotFoundError.{0,240}(?:torch_compile_cache|torchinductor|\.triton/cache|deep_gemm/"
        r"|cached_ops)",
        POSSIBLE,
    ),
    near(
        r"torch_compile_cache|torchinductor|\.triton/cache|torch/_inductor|compiler_interface",
        r"EOFError: Ran out of input|JSONDecodeError|UnpicklingError|zlib\.error|BadZipFile",
        sure=LIKELY,
        within=12,
    ),
    near(
        r"UnpicklingError|EOFError: Ran out of input",
        r"concurrent (?:model )?compil|several (?:GPUs|ranks)|multiple GPUs",
        sure=LIKELY,
        within=6,
    ),
    line(
        r"^(?=.*\b(?:NFS|share[sd]?|same)\b)(?=.*cache).*(?:half[- ]written|file too short"
        r"|crash at random|corrupt|\brace condition|crash\w* randomly)",
        LIKELY,
    ),
)
FIX = (
    (
        "weights may stay on NFS; caches not. On every node: VLLM_CACHE_ROOT, TRITON_CACHE_DIR, "
        "TORCHINDUCTOR_CACHE_DIR, FLASHINFER_WORKSPACE_BASE, DG_JIT_CACHE_DIR on a local disk"
    ),
    "remove the damaged ones: rm -rf ~/.cache/vllm ~/.triton ~/.cache/flashinfer ~/.deep_gemm on {node}",
)
EXPLAINS = ()
