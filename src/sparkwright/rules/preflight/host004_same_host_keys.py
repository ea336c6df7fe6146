"""Two nodes have one ssh host key.

Detects: the same fingerprint of an ssh host key on two nodes that are not the same machine.
Why: OEM images were shipped with one set of host keys for all (CVE-2026-24218): who has such a machine can pass for
  yours, and ssh cannot tell the nodes apart.
Evidence: the fingerprint, and the nodes.
Remedy: make new host keys on each node, and forget the old ones on the machines that knew them.
References: CVE-2026-24218; https://github.com/DoctorMasterNewb/sparkbase
"""

from collections.abc import Iterator
from itertools import combinations

from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, nodes
from sparkwright.rules.rule import Context

CODE = "HOST004"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "two nodes have the same ssh host key"


def check(context: Context) -> Iterator[Finding]:
    for one, other in combinations(nodes(context), 2):
        shared = sorted(set(_keys(one)) & set(_keys(other)))
        if shared and not _one_machine(one, other):
            yield Finding(
                CODE,
                SEVERITY,
                f"{one.node}, {other.node}",
                "one ssh host key on two machines",
                f"{shared[0]} on {one.node} and {other.node}",
                "the image came with ready-made host keys (CVE-2026-24218), or one machine is a copy of the other",
                f"on {other.node}: sudo rm /etc/ssh/ssh_host_*; sudo ssh-keygen -A; sudo systemctl restart ssh"
                "   # then ssh-keygen -R its name wherever it was known",
            )


def _keys(facts: NodeFacts) -> tuple[str, ...]:
    upkeep = known(facts.upkeep)
    return upkeep.host_keys if upkeep else ()


def _one_machine(one: NodeFacts, other: NodeFacts) -> bool:
    """Containers on one machine share its boot; two names for one machine are HOST002."""
    first, second = known(one.identity), known(other.identity)
    return first is None or second is None or first.boot_id == second.boot_id
