"""Tensor or expert parallelism for MiniMax-M2: sources contradict each other.

Detects: MiniMax-M2 over several nodes by tensor parallelism, with or without expert parallelism.
Why: two sides. One owner expects expert parallelism to send less between two nodes, for about 10 of 230 billion
parameters work on a token. Other side: spark-vllm-docker's recipe for the same model says not to switch it on, because
it loads the nodes unevenly. Nobody publishes both figures.
Evidence: the recipe's split, and the advisor's estimate of a decoding step for both where the model's shape is known.
Remedy: measure both; `sparkwright plan` lists every split with what it costs.
References: https://al-engr.com/minimax-sglang-debug.html;
https://github.com/eugr/spark-vllm-docker/blob/main/recipes/minimax-m2.7-nvfp4.yaml
"""

from collections.abc import Iterator
from dataclasses import replace

from sparkwright.domain.advice import Advice, words
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.recipe import Parallelism
from sparkwright.rules.compat.reading import served_on_gb10, shape_of
from sparkwright.rules.rule import Context

CODE = "RCP029"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "tensor or expert parallelism: sources contradict each other"


def check(context: Context) -> Iterator[Finding]:
    recipe, shape = served_on_gb10(context), shape_of(context)
    if recipe is None or shape is None or not shape.architecture.startswith("MiniMaxM2"):
        return
    own = recipe.parallelism
    if own.tp > 1 and recipe.nodes > 1:
        both = (own, replace(own, ep=not own.ep))
        yield Finding(
            CODE,
            SEVERITY,
            "parallelism.ep",
            "tensor or expert parallelism: sources contradict each other",
            "; ".join(_estimate(context.advice, split) for split in both),
            "one owner expects less traffic of expert parallelism; a recipe for the same model says it loads unevenly",
            "measure both; `sparkwright plan` lists every split with what it costs",
        )


def _estimate(advice: Advice | None, wanted: Parallelism) -> str:
    splits = advice.splits if advice else ()
    cost = next((split.cost for split in splits if split.parallelism == wanted and split.cost), None)
    step = f": {cost.step[0] * 1000:.0f} to {cost.step[1] * 1000:.0f} ms a step by our estimate" if cost else ""
    return words(wanted) + step
