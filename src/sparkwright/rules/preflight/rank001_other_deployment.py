"""Another deployment of ours runs on the node.

Detects: a running rank of sparkwright with another deployment's name on a node that the plan uses.
  A supervisor's relaunch beside one that was started while its own deployment served is what somebody wanted.
Why: a GB10 has one GPU and one memory pool; the second engine finds the device busy or takes memory from the first.
Evidence: the deployment, its rank, recipe and handle.
Remedy: take the other one down, or accept that both share the node.
References: https://github.com/aidendle94/sparkrun-recipes waits for a free GPU before a start
  (`CUDA-capable device(s) is/are busy or unavailable`).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import running
from sparkwright.rules.rule import Context

CODE = "RANK001"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "another deployment of ours runs on the node"


def check(context: Context) -> Iterator[Finding]:
    if context.recipe is None or not context.deployment:
        return
    known = (context.deployment, *context.beside)
    for facts in context.facts.values():
        others = {r.deployment: r for r in running(facts) or () if r.deployment not in known}
        for name, rank in others.items():
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                f"{name} runs here",
                f"rank {rank.rank} of {rank.world} ({rank.recipe or rank.engine}), {rank.runtime} {rank.handle}",
                "the node has one GPU and one memory pool, and both engines want them",
                f"sparkwright down {name}, or `up` with `--replace {name}`",
            )
