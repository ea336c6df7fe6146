"""Nodes of different architectures in one cluster.

Detects: `uname -m` is not the same on all nodes.
Why: one image and one set of kernels serve all ranks; a node of another architecture cannot run them.
Evidence: the architecture of each node.
Remedy: keep machines of one kind in a cluster.
References: https://docs.nvidia.com/dgx/dgx-spark/ (GB10 is aarch64).
"""

from collections.abc import Iterator

from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import differing, everywhere, known
from sparkwright.rules.rule import Context

CODE = "HOST005"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the nodes have different architectures"


def check(context: Context) -> Iterator[Finding]:
    shown = differing(context, _arch)
    if shown:
        yield Finding(
            CODE,
            SEVERITY,
            everywhere(context),
            "the nodes have different architectures",
            shown,
            "the cluster file names machines of different kinds",
            "take the odd one out of the cluster file: an image for aarch64 runs on no other machine",
        )


def _arch(facts: NodeFacts) -> str | None:
    identity = known(facts.identity)
    return identity.arch if identity else None
