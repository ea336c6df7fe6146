"""An image whose Triton has no assembler for sm_121.

Detects: NVIDIA's vLLM images up to 2026-04 without TRITON_PTXAS_PATH.
Why: Triton looks for ptxas where the image has none, or has an old one: the first request ends with
`Value 'sm_121a' is not defined for option 'gpu-name'`. The variable does what the symlink of the guides does.
Evidence: the image's tag, and that the variable is not set.
Remedy: env: TRITON_PTXAS_PATH: /usr/local/cuda/bin/ptxas (the launcher sets it for TensorRT-LLM by itself).
References: https://conselara.dev/tags/vllm/ (`ptxas symlink in entrypoint`); field guide E58
"""

import re
from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.reading import VLLM, served_on_gb10, variables
from sparkwright.rules.rule import Context

CODE = "RCP015"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the image's Triton has no assembler for sm_121"
_VARIABLE = "TRITON_PTXAS_PATH"
_WITHOUT = re.compile(r"nvcr\.io/nvidia/vllm:(25\.\d\d|26\.0[1-4])\b")


def check(context: Context) -> Iterator[Finding]:
    recipe = served_on_gb10(context, *VLLM)
    if recipe and _WITHOUT.search(recipe.engine.image) and not variables(context).get(_VARIABLE):
        yield Finding(
            CODE,
            SEVERITY,
            f"env.{_VARIABLE}",
            "the image's Triton has no assembler for sm_121",
            f"image {recipe.engine.image}; {_VARIABLE} is not set",
            "the first request that needs a new kernel ends with `Value 'sm_121a' is not defined`",
            f"env: {{{_VARIABLE}: /usr/local/cuda/bin/ptxas}}",
        )
