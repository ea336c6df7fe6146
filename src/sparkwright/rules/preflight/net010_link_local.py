"""The fabric has nothing but addresses that may change at boot.

Detects: a netdev of an ACTIVE RDMA port all of whose IPv4 addresses are 169.254.x.y.
Why: it works, and the addresses are made anew at boot, while host files, firewalls and other tools' settings keep the
  old ones. sparkwright itself asks at every start.
Evidence: netdev and addresses.
Remedy: fixed addresses, in one subnet a rail.
References: https://github.com/chenboju/dgx-spark-serving
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import compared, rails
from sparkwright.rules.rule import Context

CODE = "NET010"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "the fabric's addresses may change at boot"


def check(context: Context) -> Iterator[Finding]:
    for facts in compared(context):
        for rail in rails(facts):
            if rail.networks and all(net.is_link_local for net in rail.networks):
                yield Finding(
                    CODE,
                    SEVERITY,
                    facts.node,
                    f"{rail.name} has a link-local address only",
                    rail.shown,
                    "no address was set, and the system made one up",
                    "fixed addresses in netplan, one subnet a rail, the same on all nodes",
                )
