"""The model cannot be split as the recipe says.

Detects: tp that does not divide the heads (also of state layers) or the vocabulary, experts that cannot be dealt out,
  a slice that cuts a block of the quantization, pipeline stages with a draft method that needs one stage, and
  splits that the engine does not have.
Why: the engine refuses it after minutes of start-up, on all nodes, in a stack trace of one rank.
Evidence: each reason with what was observed and what is wanted, and where the model's shape is from.
Remedy: the nearest split that works on as many nodes, else node counts that one works on. A build that pads heads
  (three nodes are served that way) is a reason for --force.
References: vLLM 0.21.0 config/model.py and layers/quantization/fp8.py; SGLang 0.5.20 arg_groups.
"""

from collections.abc import Iterator

from sparkwright.domain.advice import Advice, words
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.rule import Context

CODE = "PAR001"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "the model cannot be split that way"


def check(context: Context) -> Iterator[Finding]:
    advice = context.advice
    if context.recipe is None or advice is None or advice.chosen is None or advice.chosen.possible:
        return
    yield Finding(
        CODE,
        SEVERITY,
        context.recipe.name,
        f"{words(advice.chosen.parallelism)} is not possible",
        "; ".join(advice.chosen.refused) + (f" ({advice.source})" if advice.source else ""),
        f"{context.recipe.engine.name} would refuse it after the ranks have started",
        _remedy(advice),
    )


def _remedy(advice: Advice) -> str:
    if advice.nearest:
        p = advice.nearest.parallelism
        return f"parallelism: {{tp: {p.tp}, pp: {p.pp}, dp: {p.dp}, ep: {str(p.ep).lower()}}}"
    counts = " or ".join(str(count) for count in advice.other_nodes[:2])
    return f"no split works on as many nodes; one does on {counts}" if counts else "no split of this model works here"
