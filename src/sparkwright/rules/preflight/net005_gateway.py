"""Traffic to other networks leaves through the fabric.

Detects: a route with a gateway, the default route among them, on a netdev of an RDMA port.
Why: the link between two nodes leads nowhere else: updates, downloads and name look-ups hang, and engines that
  announce the address of the default route announce one that only the other node can reach.
Evidence: the route.
Remedy: no gateway on the fabric (`ipv4.never-default yes`, or no `routes:` in netplan).
References: https://github.com/eugr/spark-vllm-docker (docs/NETWORKING.md)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import fabric_netdevs, wired
from sparkwright.rules.reading import known
from sparkwright.rules.rule import Context

CODE = "NET005"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "a gateway on the fabric"


def check(context: Context) -> Iterator[Finding]:
    for facts in wired(context):
        network = known(facts.network)
        for route in network.routes if network else ():
            if route.gateway and route.interface in fabric_netdevs(facts):
                yield Finding(
                    CODE,
                    SEVERITY,
                    facts.node,
                    f"the fabric's {route.interface} has a gateway",
                    f"ip route: {route.destination} via {route.gateway} dev {route.interface}",
                    "the cable to the other node is taken for a way to the world",
                    f"take the route out of netplan (or: nmcli connection modify NAME ipv4.never-default yes); "
                    f"until the next boot: sudo ip route del {route.destination} via {route.gateway} "
                    f"dev {route.interface}",
                )
