"""PIECEWISE graphs on Ray.

Detects: vLLM on Ray over several nodes with `cudagraph_mode` PIECEWISE.
Why: on two nodes with MiniMax-M2.7 it was 12 to 20 % slower than no graphs at all. Without Ray other models are served
with PIECEWISE or FULL_AND_PIECEWISE.
Evidence: the compilation config.
Remedy: `cudagraph_mode: NONE` on Ray, or `engine.name: vllm`.
References: https://al-engr.com/minimax-sglang-debug.html; field guide C2
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.reading import flag, served_on_gb10
from sparkwright.rules.rule import Context

CODE = "RCP020"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "PIECEWISE graphs on Ray are slower than none"


def check(context: Context) -> Iterator[Finding]:
    recipe = served_on_gb10(context, "vllm-ray")
    if recipe and flag(recipe, "compilation-config.cudagraph_mode").upper() == "PIECEWISE":
        yield Finding(
            CODE,
            SEVERITY,
            "flags.compilation-config",
            "PIECEWISE graphs on Ray were slower than none",
            "cudagraph_mode: PIECEWISE on vllm-ray",
            "12 to 20 % were measured on two GB10 nodes with tensor parallel 2",
            "cudagraph_mode: NONE, or engine.name: vllm (its own multi-node mode)",
        )
