"""The fabric's netdevs are bonded; sources disagree whether that is right.

Detects: a bond with a netdev of an RDMA port as member.
Why: the notes of two users (seeds 000 and 001) run over bond0 and measured 109 Gb/s of RDMA. NVIDIA's playbook and
  most guides use the twins as two rails; NVCheckup lists bonded twins as a misconfiguration: a bond sends one
  connection over one member, and RoCE goes by the members, not by the bond's address.
Evidence: the bond and its members.
Remedy: measure both ways with `check --deep`; two rails without a bond reach about 190 Gb/s.
References: https://github.com/thatcooperguy/NVCheckup; https://github.com/NVIDIA/dgx-spark-playbooks
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import fabric_netdevs, nics
from sparkwright.rules.rule import Context

CODE = "NET007"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "the fabric's netdevs are bonded"


def check(context: Context) -> Iterator[Finding]:
    for facts, nic in nics(context) if not context.recipe else ():
        for bond, members in nic.bonds.items():
            if fabric_netdevs(facts) & set(members):
                yield Finding(
                    CODE,
                    SEVERITY,
                    facts.node,
                    f"{bond} joins {' and '.join(members)}",
                    f"{bond}: {' '.join(members)}",
                    "some run so at 109 Gb/s; most use the twins as two rails, which a bond hides from NCCL",
                    "nothing while it is fast enough; else two addresses in two subnets instead of the bond",
                )
