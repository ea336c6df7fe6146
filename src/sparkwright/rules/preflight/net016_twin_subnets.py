"""The first rails of two nodes meet, and their twins are in different subnets.

Detects: on two nodes netdevs of domain 0 share a subnet, both twins have addresses, and the twins share none.
Why: RoCE is not routed: every connection over the second rail times out (`curr state INIT, next state RTR`), or NCCL
  hangs with it, while the first rail and ping are in order.
Evidence: the twins with their addresses.
Remedy: one subnet for the first rail and one for the second, the same two on all nodes.
References: https://github.com/NVIDIA/dgx-spark-playbooks; https://github.com/DoctorMasterNewb/sparkbase
"""

from collections.abc import Iterator
from itertools import combinations

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import Rail, twins, wired
from sparkwright.rules.rule import Context

CODE = "NET016"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the twins of two nodes are in different subnets"


def check(context: Context) -> Iterator[Finding]:
    pairs = [pair for facts in wired(context) for pair in twins(facts)]
    for (first, twin), (other, far) in combinations(pairs, 2):
        addressed = bool(twin.networks and far.networks)
        if first.node != other.node and _meet(first, other) and addressed and not _meet(twin, far):
            yield Finding(
                CODE,
                SEVERITY,
                f"{first.node}, {other.node}",
                f"{twin.name} and {far.name} share no subnet",
                f"{first.node} {twin.shown}; {other.node} {far.shown}; the first rails: {first.shown}, {other.shown}",
                "RoCE does not cross subnets: the second rail cannot be used, and NCCL may hang with it",
                f"give both an address in one subnet, another than {first.networks[0]}",
            )


def _meet(one: Rail, other: Rail) -> bool:
    return bool(set(one.networks) & set(other.networks))
