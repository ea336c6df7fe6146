"""The server's own limit of answer tokens is too small for a reasoning model.

Detects: a reasoning parser and `override-generation-config` (vLLM) or `preferred-sampling-params` (SGLang) with fewer
than 512 new tokens.
Why: thinking is counted, too: the answer comes with `content: null` when the thoughts alone use the limit up.
Evidence: the limit.
Remedy: 1024 or more, or leave it to the client, which must then ask for 512 at least.
References: https://conselara.dev/tags/vllm/ (`max_tokens >= 512 for reasoning models`); field guide E117
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.reading import VLLM, flag, served_on_gb10
from sparkwright.rules.rule import Context

CODE = "RCP014"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "too few answer tokens for a reasoning model"
_LEAST = 512
_LIMITS = ("override-generation-config.max_new_tokens", "preferred-sampling-params.max_new_tokens")


def check(context: Context) -> Iterator[Finding]:
    recipe = served_on_gb10(context, *VLLM, "sglang")
    if recipe is None or not recipe.parsers.reasoning:
        return
    for name in _LIMITS:
        value = flag(recipe, name)
        if value.isdecimal() and int(value) < _LEAST:
            yield Finding(
                CODE,
                SEVERITY,
                f"flags.{name}",
                "too few answer tokens for a reasoning model",
                f"{name}: {value}; reasoning parser {recipe.parsers.reasoning}",
                "the thoughts use the limit up, and the answer is `content: null`",
                f"{_LEAST} at least, 1024 for tools; or leave it to the client",
            )
