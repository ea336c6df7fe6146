"""A repetition penalty as the server's default beside drafts.

Detects: vLLM with speculation `dspark` or `mtp` and a repetition_penalty in `override-generation-config`.
Why: the penalty's path through the drafts ends with an illegal memory access, and the rank with it.
Evidence: the value.
Remedy: remove it, and tell clients not to send one.
References: field guide E125 (GK)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.reading import VLLM, flag, served_on_gb10
from sparkwright.rules.rule import Context

CODE = "RCP026"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "a repetition penalty beside drafts"
_NAME = "override-generation-config.repetition_penalty"


def check(context: Context) -> Iterator[Finding]:
    recipe = served_on_gb10(context, *VLLM)
    if recipe is None or recipe.speculation.method not in ("dspark", "mtp"):
        return
    value = flag(recipe, _NAME)
    if value not in ("", "1", "1.0"):
        yield Finding(
            CODE,
            SEVERITY,
            "flags.override-generation-config",
            "a repetition penalty beside drafts",
            f"repetition_penalty: {value}; speculation {recipe.speculation.method}",
            "its path through the drafts ended with an illegal memory access for one owner",
            "remove it from the flag, and tell clients not to send one",
        )
