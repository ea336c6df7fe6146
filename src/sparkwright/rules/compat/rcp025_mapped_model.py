"""A mapped model file on unified memory.

Detects: llama.cpp with layers on the GPU and `mmap`, or `load-mode: mmap`.
Why: the page cache of the file and the buffers of the GPU are the same memory, so the model counts twice.
Evidence: the flag. The launcher sets `load-mode: none` (--no-mmap before it) where the recipe says nothing.
Remedy: remove the flag.
References: field guide C5 (`--no-mmap` mandatory on UMA)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.reading import flag, on, served_on_gb10
from sparkwright.rules.rule import Context

CODE = "RCP025"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "a mapped model counts twice on unified memory"


def check(context: Context) -> Iterator[Finding]:
    recipe = served_on_gb10(context, "llama-cpp")
    if recipe is None or "0" in (flag(recipe, "n-gpu-layers"), flag(recipe, "gpu-layers")):
        return
    mapped = "mmap" if on(recipe, "mmap") else "load-mode" if flag(recipe, "load-mode") == "mmap" else ""
    if mapped:
        yield Finding(
            CODE,
            SEVERITY,
            f"flags.{mapped}",
            "a mapped model counts twice on unified memory",
            f"{mapped}: {flag(recipe, mapped)}",
            "the file's page cache and the GPU's buffers are the same memory",
            f"remove flags.{mapped}",
        )
