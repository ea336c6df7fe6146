"""Ranks give up on each other too early.

Detects: `dist-timeout` of SGLang, or `distributed-timeout-seconds` of vLLM, below 900 s in a recipe of several nodes.
Why: the nodes load at different speeds (one of two was measured 4 times slower), and a rank that waits gives up first.
Evidence: the flag's value. Without it PyTorch waits 600 s with NCCL; the launcher sets 1800 for SGLang.
Remedy: 1800 for SGLang; leave vLLM's out, or 900 and more.
References: https://al-engr.com/minimax-sglang-debug.html (`--dist-timeout 1800`); field guide C1, C3
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.reading import VLLM, flag, served_on_gb10
from sparkwright.rules.rule import Context

CODE = "RCP005"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "ranks give up on each other too early"
_LEAST = 900
_FLAGS = {"sglang": ("dist-timeout", 1800), **dict.fromkeys(VLLM, ("distributed-timeout-seconds", _LEAST))}


def check(context: Context) -> Iterator[Finding]:
    recipe = served_on_gb10(context, *_FLAGS)
    if recipe is None or recipe.nodes == 1:
        return
    name, usual = _FLAGS[recipe.engine.name]
    value = flag(recipe, name)
    if value.isdecimal() and int(value) < _LEAST:
        yield Finding(
            CODE,
            SEVERITY,
            f"flags.{name}",
            f"ranks give up on each other after {value} s",
            f"{name}: {value}",
            "one node may load several times slower than the other (page cache, swap, kernels built on first use)",
            f"flags.{name}: {usual}",
        )
