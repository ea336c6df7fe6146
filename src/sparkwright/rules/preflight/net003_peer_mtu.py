"""The two ends of a rail have different MTUs.

Detects: netdevs of RDMA ports on two nodes that share a subnet and have different MTUs.
Why: what the larger end sends whole, the other drops: ping and ssh work, large transfers stand still.
Evidence: both ends with subnet and MTU.
Remedy: the larger one on both ends; change the worker first.
References: https://github.com/guardkit/dgx-spark; `ping -M do -s 8972 PEER` proves jumbo frames end to end.
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import Rail, netplan, rails, wired
from sparkwright.rules.mtu import raised
from sparkwright.rules.rule import Context

CODE = "NET003"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the two ends of a rail have different MTUs"


def check(context: Context) -> Iterator[Finding]:
    everyone = [rail for facts in wired(context) for rail in rails(facts)]
    for rail in everyone:
        peers = [r for r in everyone if r.node != rail.node and set(r.networks) & set(rail.networks)]
        highest = max(peers, key=lambda peer: peer.link.mtu, default=rail)
        if rail.link.mtu < highest.link.mtu:
            yield _finding(context, rail, highest)


def _finding(context: Context, low: Rail, high: Rail) -> Finding:
    return Finding(
        CODE,
        SEVERITY,
        low.node,
        f"{low.name} has MTU {low.link.mtu}, its peer {high.link.mtu}",
        f"{low.node} {low.shown} mtu {low.link.mtu}; {high.node} {high.shown} mtu {high.link.mtu}",
        "large packets of the peer are dropped here without a word, while ping works",
        netplan(low, f"mtu: {high.link.mtu}"),
        raised(context, low, high.link.mtu),
    )
