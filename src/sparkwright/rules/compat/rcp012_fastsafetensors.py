"""The fastsafetensors loader in an image that lacks it.

Detects: `load-format: fastsafetensors` with NVIDIA's vLLM images of 2026-03 and 2026-04.
Why: they end with an ImportError; builds of the community and later images of vLLM have it.
Evidence: the flag and the image's tag.
Remedy: leave the flag out: the default loader starts slower and serves the same.
References: https://conselara.dev/tags/vllm/ (NGC 26.03/26.04); field guide E79
"""

import re
from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.reading import VLLM, flag, served_on_gb10
from sparkwright.rules.rule import Context

CODE = "RCP012"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "the image has no fastsafetensors loader"
_WITHOUT = re.compile(r"nvcr\.io/nvidia/vllm:26\.0[34]\b")


def check(context: Context) -> Iterator[Finding]:
    recipe = served_on_gb10(context, *VLLM)
    if recipe and flag(recipe, "load-format") == "fastsafetensors" and _WITHOUT.search(recipe.engine.image):
        yield Finding(
            CODE,
            SEVERITY,
            "flags.load-format",
            "the image has no fastsafetensors loader",
            f"load-format: fastsafetensors; image {recipe.engine.image}",
            "the start ends with an ImportError",
            "remove flags.load-format",
        )
