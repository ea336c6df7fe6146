"""N-gram drafts on a model that keeps a state.

Detects: speculation `ngram` on a model with GDN, KDA or Mamba layers.
Why: a draft that is rejected is rolled back in the KV cache, but not in the state: the text is corrupted, without an
error. Seen with Qwen3.6 on vLLM.
Evidence: the method, the number of such layers.
Remedy: drafts of the model itself (mtp), or none.
References: field guide E97 (PUL)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.reading import VLLM, served_on_gb10, shape_of
from sparkwright.rules.rule import Context

CODE = "RCP024"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "n-gram drafts corrupt the text of a model that keeps a state"


def check(context: Context) -> Iterator[Finding]:
    recipe, shape = served_on_gb10(context, *VLLM), shape_of(context)
    if recipe and shape and shape.state_layers and recipe.speculation.method == "ngram":
        yield Finding(
            CODE,
            SEVERITY,
            "speculation.method",
            "n-gram drafts corrupt the text of a model that keeps a state",
            f"ngram; {shape.state_layers} of {shape.layers} layers keep a state {shape.state_kind}".rstrip(),
            "a rejected draft is not taken back out of the state, and no error says so",
            "speculation.method: mtp, or no speculation",
        )
