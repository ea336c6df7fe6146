"""Kernels are warmed up for minutes.

Detects: progress lines of warm-ups.
Why: DeepGEMM and TileLang compile each shape once, FlashInfer tries tactics. One capture spent four minutes so. A
  tuner that never ends on several ranks is another cause.
Evidence: the warm-up's own lines.
Remedy: wait; keep the caches on disk (DG_JIT_CACHE_DIR, TILELANG_CACHE_DIR, FLASHINFER_WORKSPACE_BASE).
References: captures v4-1m-s6.log; gb10.md B5
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LBEN017"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "warm-up of DeepGEMM, TileLang or FlashInfer kernels"
CAUSE = "benign-kernel-warmup"
SIGNS = (
    line(r"DeepGEMM warmup:   0%", HINT),
    line(r"TileLang (begins|completes|starts) to compile|TileLang.{0,40}jit compil", HINT),
    line(r"skipping kernel warmup|running flashinfer autotune|autotuning process (starts|ends)", HINT),
)
FIX = ()
EXPLAINS = ()
