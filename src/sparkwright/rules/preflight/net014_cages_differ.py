"""The nodes have their cable in different cages.

Detects: no cage (by the netdev's name) is ACTIVE on all nodes.
Why: sparkwright finds interface and HCAs for each node. Other tools give one interface name to all, and the rank that
  lacks it ends with Gloo's `Unable to find address for: enp1s0f1np1`.
Evidence: the cage of each node.
Remedy: nothing here; the same cage everywhere if other tools are to be used too.
References: https://github.com/eugr/spark-vllm-docker; https://github.com/guardkit/dgx-spark
"""

from collections.abc import Iterator

from sparkwright.domain.fabric_facts import cage
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import compared, rails
from sparkwright.rules.rule import Context

CODE = "NET014"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "the nodes have their cable in different cages"


def check(context: Context) -> Iterator[Finding]:
    cages = {facts.node: {cage(rail.name) for rail in rails(facts)} for facts in compared(context)}
    cabled = {node: names for node, names in cages.items() if names}
    if len(cabled) > 1 and not set.intersection(*cabled.values()):
        yield Finding(
            CODE,
            SEVERITY,
            ", ".join(cabled),
            "the cable is in another cage on each node",
            "; ".join(f"{node}: {', '.join(sorted(names))}" for node, names in cabled.items()),
            "each node's interface has another name, and tools that give one name to all ranks fail",
            "nothing for sparkwright; for other tools put the cable into the same cage, and reboot all with it in",
        )
