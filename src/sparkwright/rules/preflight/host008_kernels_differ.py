"""Nodes with different kernels.

Detects: `uname -r` is not the same on all nodes.
Why: all ranks run in step: what one node's kernel does differently (RDMA, memory, power) holds up or ends all of them,
  and is hard to find.
Evidence: the release on each node.
Remedy: bring all nodes to one release, and reboot them.
References: https://github.com/christopherowen/dgx-spark-networking and
  https://github.com/mpfaffenberger/MiniMax-M3-NVFP4-DSpark-vLLM-4x-DGX-Spark ask for it.
"""

from collections.abc import Iterator

from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import differing, everywhere, known
from sparkwright.rules.rule import Context

CODE = "HOST008"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the nodes run different kernels"


def check(context: Context) -> Iterator[Finding]:
    shown = differing(context, _release)
    if shown:
        yield Finding(
            CODE,
            SEVERITY,
            everywhere(context),
            "the nodes run different kernels",
            shown,
            "one node was updated and not the other, or not yet rebooted",
            "update all nodes in the same way (DGX Dashboard), and reboot them together",
        )


def _release(facts: NodeFacts) -> str | None:
    kernel = known(facts.kernel)
    return kernel.release if kernel else None
