"""The FP4 KV cache is not supported or not calibrated.

Detects: an FP4 KV cache that the engine refuses or has no scales for.
Why: FP4 values need scales per tensor. Graph capture comes before any real token, so scales that are found by
  running are missing then; the advice about memory that follows is beside the point.
Evidence: the engine's own message about scales, GPU generation or backend.
Remedy: FP8 for the cache.
References: SGLang fp4_kv_cache_quant_method.py and kv_cache_hook.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LKRN020"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the FP4 KV cache is not supported or not calibrated"
CAUSE = "fp4-kv-cache-unsupported-or-uncalibrated"
SIGNS = (
    line(r"KV cache global scales must be calibrated"),
    line(r"module 'torch' has no attribute '(?:nvfp4|fp4_e2m1)'"),
    near(
        r"kv_cache_dtype not supported",
        r"kv[-_]cache[-_]dtype[= :'\"]{1,4}nvfp4",
        sure=LIKELY,
        within=3,
    ),
    line(
        r"(?:NVFP4 KV|MXFP4 KV|\bFP4 KV|KV4 KV)[- _]?cache.{0,60}(?:requires|does not|doesn't|is not"
        r"|not yet|unsupported|only support|needs|must|has no)",
        LIKELY,
    ),
    line(
        r"kv[-_]cache[-_]dtype[= :'\"]{1,4}(?:nvfp4|fp4_e2m1|fp4_mx\w*|mxfp4)['\"]?.{0,80}(?:not support"
        r"|unsupported|requires|invalid|does not|only)",
        LIKELY,
    ),
    line(r"(?:native NVFP4|NVFP4 decode|NVFP4 prefill).{0,40}requires", LIKELY),
    near(
        r"nvfp4[- _,\w]{0,20}\bkv|\bkv\b.{0,30}nvfp4|fp4_e2m1",
        r"uncalibrat|no (?:k_scale|calibration)|missing .{0,12}scale|garbage|gibberish|not supported"
        r"|kills the|crash|dies ",
        sure=LIKELY,
        within=3,
    ),
    line(
        r"(?:FP4|nvfp4|fp4_e2m1)\W{0,3} ?KV[- ]cache.{0,60}(?:no scaling|without|uncalibrated"
        r"|scaling factors|not supported|unsupported|garbage|requires)",
        LIKELY,
    ),
    near(
        r"\b(?:NV|MX)?FP4 KV\b|nvfp4 kv",
        r"TllmGenFmha|trtllm_paged_attention|trtllm[-_]gen|Unsupported architecture|no SM12",
        sure=0.85,
        within=6,
    ),
)
FIX = (
    "--kv-cache-dtype fp8_e4m3 (SGLang) or fp8 (vLLM), or auto",
    "an FP4 cache needs k_scale/v_scale in the checkpoint, or a calibration run before graphs are captured",
)
EXPLAINS = ("sampler-warmup-oom", "kv-cache-no-memory-left")
