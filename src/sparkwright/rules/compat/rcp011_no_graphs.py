"""CUDA graphs are switched off.

Detects: vLLM with `enforce-eager`; SGLang with `disable-cuda-graph` on one node.
Why: 59 tokens a second became 26 on sm_121. Other side: for MiniMax-M3 on four nodes PIECEWISE graphs were 33 to 54 %
slower than none, and GLM-5.2 is served without: there it is no finding. SGLang over several nodes has deadlocked in the
capture (ENG026), so it is none there either.
Evidence: the flag.
Remedy: remove it, and mend what it works around.
References: https://conselara.dev/tags/vllm/ (`Never --enforce-eager`); field guide D2 (MPF, FHN)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.reading import VLLM, on, served_on_gb10, shape_of
from sparkwright.rules.rule import Context

CODE = "RCP011"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "CUDA graphs are switched off"
_BETTER_WITHOUT = ("MiniMaxM3", "Glm")


def check(context: Context) -> Iterator[Finding]:
    recipe, shape = served_on_gb10(context, *VLLM, "sglang"), shape_of(context)
    if recipe is None or (shape and shape.architecture.startswith(_BETTER_WITHOUT)):
        return
    name = "enforce-eager" if recipe.engine.name in VLLM else "disable-cuda-graph"
    if on(recipe, name) and (name == "enforce-eager" or recipe.nodes == 1):
        yield Finding(
            CODE,
            SEVERITY,
            f"flags.{name}",
            "CUDA graphs are switched off",
            f"{name}: true",
            "measured on sm_121: 26 tokens/s instead of 59",
            f"remove flags.{name}; if a start needs it, mend what it works around",
        )
