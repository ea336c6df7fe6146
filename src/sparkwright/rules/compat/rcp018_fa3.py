"""FlashAttention 3 on a GB10.

Detects: SGLang with `attention-backend: fa3` (also for prefill or decode alone), vLLM with `flash_attn_version` 3 in
`attention-config`.
Why: its kernels are Hopper's, and what the datacenter's Blackwell has instead is missing on sm_121, too. SGLang ends
with `FlashAttention v3 Backend requires SM>=80 and SM<=90`; vLLM takes another version by itself, which only informs.
Evidence: the flag.
Remedy: flashinfer or triton for SGLang; leave it out for vLLM.
References: https://al-engr.com/sglang-deepseek-spark-pivot.html (last paragraph); attention_registry.py of SGLang
0.5.12, v1/attention/backends/fa_utils.py of vLLM 0.21.0
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.reading import VLLM, flag, served_on_gb10
from sparkwright.rules.rule import Context

CODE = "RCP018"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "FlashAttention 3 does not run on sm_121"
_SGLANG = ("attention-backend", "prefill-attention-backend", "decode-attention-backend")
_VLLM = "attention-config.flash_attn_version"


def check(context: Context) -> Iterator[Finding]:
    recipe = served_on_gb10(context, *VLLM, "sglang")
    if recipe is None:
        return
    on_vllm = recipe.engine.name in VLLM
    for name in (_VLLM,) if on_vllm else _SGLANG:
        if flag(recipe, name).lower() == ("3" if on_vllm else "fa3"):
            yield Finding(
                CODE,
                Severity.INFO if on_vllm else SEVERITY,
                f"flags.{name}",
                "FlashAttention 3 does not run on sm_121",
                f"{name}: {flag(recipe, name)}",
                "vLLM takes another version by itself" if on_vllm else "the engine ends while it loads",
                f"remove flags.{name}" if on_vllm else f"flags.{name}: flashinfer, or triton",
            )
