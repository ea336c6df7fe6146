"""Two nodes have one machine-id.

Detects: the same /etc/machine-id on two nodes that are not the same machine.
Why: OEM images were shipped with one machine-id (and one set of ssh host keys) for all (CVE-2026-24218). DHCP gives
  both one address, and tools that take it for the node's identity see one node.
Evidence: the id, and the nodes.
Remedy: make a new one on all but one of them; renew the ssh host keys too.
References: CVE-2026-24218; https://github.com/DoctorMasterNewb/sparkbase (known bad:
  295f5139615f4bbaa29921a29574c7a3).
"""

from collections.abc import Iterator
from itertools import groupby

from sparkwright.domain.facts import Identity
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known
from sparkwright.rules.remedies import NEW_IDENTITY
from sparkwright.rules.rule import Context

CODE = "HOST001"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "two nodes have the same machine-id"


def check(context: Context) -> Iterator[Finding]:
    rows = [(node, identity) for node, facts in context.facts.items() if (identity := known(facts.identity))]
    rows = sorted((row for row in rows if row[1].machine_id), key=lambda row: row[1].machine_id)
    for machine_id, group in groupby(rows, key=lambda row: row[1].machine_id):
        same = list(group)
        if not context.cluster.simulated and len({_machine(identity) for _, identity in same}) > 1:
            nodes = [node for node, _ in same]
            yield Finding(
                CODE,
                SEVERITY,
                ", ".join(nodes),
                "one machine-id on different machines",
                f"machine-id {machine_id} on {' and '.join(nodes)}",
                "the OEM's image came with a ready-made id (CVE-2026-24218); the ssh host keys may be shared too",
                f"on {nodes[-1]}: {NEW_IDENTITY}",
            )


def _machine(identity: Identity) -> tuple[str, str]:
    return identity.boot_id, identity.hostname
