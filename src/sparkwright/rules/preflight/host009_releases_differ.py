"""Nodes with different releases of DGX OS.

Detects: the last DGX_OTA_VERSION of /etc/dgx-release is not the same on all nodes that have one.
Why: a release pairs kernel, driver, GPU firmware and NIC firmware; with two of them in one cluster the ranks run on
  different stacks.
Evidence: the release on each node.
Remedy: bring all nodes to one release.
References: https://github.com/spark-arena/sparkrun (parity of firmware alone gave many times the NCCL bandwidth).
"""

from collections.abc import Iterator

from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import differing, everywhere, known
from sparkwright.rules.remedies import DASHBOARD
from sparkwright.rules.rule import Context

CODE = "HOST009"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the nodes have different DGX OS releases"


def check(context: Context) -> Iterator[Finding]:
    shown = differing(context, _release)
    if shown:
        yield Finding(
            CODE,
            SEVERITY,
            everywhere(context),
            "the nodes have different DGX OS releases",
            f"DGX OS: {shown}",
            "one node was updated and not the other",
            f"run the update of {DASHBOARD} on the older ones, and reboot all together",
        )


def _release(facts: NodeFacts) -> str | None:
    identity = known(facts.identity)
    return (known(identity.ota_version) or None) if identity else None
