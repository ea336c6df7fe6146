"""The nodes have different numbers of working HCAs.

Detects: the numbers of ACTIVE RDMA ports differ between nodes with at least one.
Why: NCCL pairs rails; with two at one end and one at the other half of the traffic has nowhere to go, or the ranks
  wait for each other. Lists of HCAs are per rank for that reason.
Evidence: the ACTIVE ports of each node.
Remedy: bring the missing twin up; a port that is DOWN though its physical state is LINK_UP needs its netdev up.
References: https://github.com/luisefigueroa/pulsar-gb10-vllm-stack (HCAs are recorded for each rank)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import wired
from sparkwright.rules.reading import known
from sparkwright.rules.rule import Context

CODE = "RDMA009"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the nodes have different numbers of working HCAs"


def check(context: Context) -> Iterator[Finding]:
    active = {f.node: [port.device for port in known(f.rdma) or () if port.active] for f in wired(context)}
    cabled = {node: names for node, names in active.items() if names}
    if len({len(names) for names in cabled.values()}) > 1:
        fewest = min(cabled, key=lambda node: len(cabled[node]))
        yield Finding(
            CODE,
            SEVERITY,
            fewest,
            f"{len(cabled[fewest])} HCA is ACTIVE here, more elsewhere"
            if len(cabled[fewest]) == 1
            else f"{len(cabled[fewest])} HCAs are ACTIVE here, more elsewhere",
            "; ".join(f"{node}: {', '.join(names)}" for node, names in cabled.items()),
            "a twin's netdev is down on this node, or a cable is seated badly",
            f"on {fewest}: rdma link; then sudo ip link set NETDEV up for the twin that is DOWN",
        )
