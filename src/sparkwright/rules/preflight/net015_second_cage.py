"""Both cages have a cable, and not all four netdevs have an address.

Detects: both cages of a node are ACTIVE, and of their netdevs some have an IPv4 address and some none.
Why: guardkit saw the link halved (10.25 GB/s) until all four were addressed. A second cable between the same two
  nodes adds no bandwidth at all: one cage's two rails already take what the NIC has.
Evidence: the netdevs with their addresses.
Remedy: one cable less, or addresses for all four.
References: https://github.com/guardkit/dgx-spark; https://github.com/eugr/spark-vllm-docker
"""

from collections.abc import Iterator

from sparkwright.domain.fabric_facts import cage
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import rails, wired
from sparkwright.rules.rule import Context

CODE = "NET015"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "both cages are cabled and not all netdevs have an address"


def check(context: Context) -> Iterator[Finding]:
    for facts in wired(context):
        here = rails(facts)
        bare = [rail.name for rail in here if not rail.link.addresses]
        if len({cage(rail.name) for rail in here}) > 1 and 0 < len(bare) < len(here):
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                f"two cables, and no address on {', '.join(bare)}",
                "; ".join(rail.shown for rail in here),
                "traffic meets on the rails that have one: half the speed of a single cable was seen",
                "between two nodes: take one cable out and reboot both; in a ring: an address for each netdev",
            )
