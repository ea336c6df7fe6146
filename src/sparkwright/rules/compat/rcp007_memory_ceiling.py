"""The memory fraction is above what is known to hold on GB10.

Detects: serving.memory_fraction over 0.90; over 0.87 on one node, over 0.85 on several (0.80 for SGLang); on several
nodes it informs from 0.82 (0.75) on. Not where kv_cache_bytes pins the pool: then the fraction hardly counts.
Why: CPU and GPU share the memory. One owner says never above 0.90 (OOM, Xid 43), 0.85 to 0.87 as a rule, 0.82 at 131K
on two nodes; another 0.80 to 0.82 at most on two, 0.85 left about 1 GB a node; SGLang at 0.85 drove the thinner node
into swap, 0.75 held. Other side: others served 0.835 to 0.86 on two nodes, and one recipe of the registry 0.9.
Evidence: the fraction and the number of nodes.
Remedy: the fraction that is known to hold; how much fits in truth is what `plan` says (MEM001, MEM002).
References: https://conselara.dev/tags/vllm/; https://forums.developer.nvidia.com/t/374742;
https://al-engr.com/minimax-sglang-debug.html; field guide D1, D2, H2
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.recipe import Recipe
from sparkwright.rules.compat.reading import VLLM, served_on_gb10
from sparkwright.rules.rule import Context

CODE = "RCP007"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the memory fraction is above what is known to hold"
_NEVER = 0.90


def check(context: Context) -> Iterator[Finding]:
    recipe = served_on_gb10(context, *VLLM, "sglang")
    if recipe is None or recipe.serving.kv_cache_bytes:
        return
    given, (calm, hot) = recipe.serving.memory_fraction, _limits(recipe)
    if given <= calm:
        return
    severity = SEVERITY if given > hot else Severity.INFO
    also = "; others have served 0.83 to 0.86 so" if severity is Severity.INFO else ""
    yield Finding(
        CODE,
        severity,
        "serving.memory_fraction",
        f"{given:g} is above what is known to hold on {'one node' if recipe.nodes == 1 else 'several nodes'}",
        f"memory_fraction: {given:g}; {calm:g} is known to hold{also}",
        "out of memory or Xid 43 under load"
        if given > _NEVER
        else "little is left of each node for bursts and for the system",
        f"serving.memory_fraction: {calm:g}",
    )


def _limits(recipe: Recipe) -> tuple[float, float]:
    """Up to where nothing is said, and from where on it is a warning."""
    if recipe.nodes == 1:
        return 0.87, 0.87
    return (0.75, 0.80) if recipe.engine.name == "sglang" and recipe.nodes == 2 else (0.82, 0.85)
