"""More drafted tokens than the draft model was made for.

Detects: DeepSeek-V4 with speculation `dspark` and more than 5 tokens.
Why: its drafter works in blocks of 5 (dspark_block_size; the model card's 7 is wrong); beyond it about 4 % of the
drafts are accepted, and serving is slower than without.
Evidence: speculation.tokens.
Remedy: 5 at most.
References: field guide E64 (GK, NEP, PUL)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.reading import served_on_gb10, shape_of
from sparkwright.rules.rule import Context

CODE = "RCP023"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "more drafted tokens than the drafter was made for"
_BLOCK = 5


def check(context: Context) -> Iterator[Finding]:
    recipe, shape = served_on_gb10(context), shape_of(context)
    if recipe is None or shape is None or not shape.architecture.startswith("DeepseekV4"):
        return
    if recipe.speculation.method == "dspark" and recipe.speculation.tokens > _BLOCK:
        yield Finding(
            CODE,
            SEVERITY,
            "speculation.tokens",
            "more drafted tokens than the drafter was made for",
            f"dspark, {recipe.speculation.tokens} tokens; its block is {_BLOCK}",
            "about 4 % of the drafts are accepted, and serving is slower than without",
            f"speculation.tokens: {_BLOCK}",
        )
