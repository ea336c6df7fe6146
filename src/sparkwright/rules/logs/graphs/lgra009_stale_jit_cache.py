"""Compiled kernels of another image are still used.

Detects: wrong text or a slow-down that begins with a new image or model.
Why: cache keys do not cover the source of all kernels, so files of another build are taken.
Evidence: the time of the change, and that an empty cache cures it.
Remedy: caches by image.
References: vLLM issue 41871; field guide E62
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, near

CODE = "LGRA009"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "compiled kernels of another image are still used"
CAUSE = "stale-jit-cache-after-image-change"
SIGNS = (
    near(
        r"stale (?:[\w./-]+ ){0,3}caches?|leftover (?:[\w./-]+ ){0,3}caches?|caches? (?:is|are|was"
        r"|were) stale|TRITON_CACHE_DIR",
        r"garbled|garbage|gibberish|slow-?down|slower|after (?:an? )?(?:image|model|update|upgrade)"
        r"|phantom|image change",
        sure=LIKELY,
        within=4,
    ),
)
FIX = (
    "stop {deployment}; move ~/.triton, ~/.cache/vllm, ~/.cache/flashinfer of the nodes away; start again",
    (
        "one cache root for each image: TRITON_CACHE_DIR, VLLM_CACHE_ROOT, FLASHINFER_WORKSPACE_BASE with the "
        "image's id in the path"
    ),
)
EXPLAINS = ()
