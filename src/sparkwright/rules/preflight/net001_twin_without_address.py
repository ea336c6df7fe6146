"""The twin of the fabric's netdev has no address; sources disagree whether it needs one.

Detects: a cage of which both twins are up, the one of PCI domain 0 has an IPv4 and the other none, on every node.
Why: NVIDIA's playbook, eugr and Pulsar give each twin an address in a subnet of its own. guardkit and sparkbase give
  the twin none and see full speed, where its MTU is 9000 too and its link-local GIDs are at the same index everywhere.
Evidence: both netdevs with their addresses.
Remedy: none where both rails carry traffic (`check --deep`: about 190 Gb/s together). Else give it an address.
References: https://github.com/NVIDIA/dgx-spark-playbooks (connect-two-sparks); https://github.com/guardkit/dgx-spark;
  https://github.com/DoctorMasterNewb/sparkbase
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import compared, twins
from sparkwright.rules.rule import Context

CODE = "NET001"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "a twin of the fabric's netdev has no address"


def check(context: Context) -> Iterator[Finding]:
    pairs = [pair for facts in compared(context) for pair in twins(facts) if pair[0].link.addresses]
    if any(twin.link.addresses for _, twin in pairs):
        return
    for first, twin in pairs:
        yield Finding(
            CODE,
            SEVERITY,
            first.node,
            f"{twin.name} is up and has no IPv4 address",
            f"{first.shown}; {twin.shown}",
            "some set-ups address both twins, in different subnets; others only the first, and both reach full speed "
            "where MTU and GID index of the twins agree",
            "nothing while both rails carry traffic; else an address in a subnet of its own, the same on all nodes",
        )
