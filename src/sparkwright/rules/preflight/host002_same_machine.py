"""Two entries of the cluster file are one machine.

Detects: the same boot id and the same hostname behind two nodes that are reached over ssh. Simulated clusters and
  nodes with `ssh: local` mean it.
Why: two ranks would share one GPU and one memory pool, and wait for a peer that is themselves.
Evidence: boot id and hostname.
Remedy: correct the ssh address of one of them.
References: https://github.com/luisefigueroa/pulsar-gb10-vllm-stack checks each node's identity before a start.
"""

from collections.abc import Iterator
from itertools import combinations

from sparkwright.domain.facts import Identity, NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, node_of
from sparkwright.rules.rule import Context

CODE = "HOST002"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "two nodes of the cluster file are one machine"


def check(context: Context) -> Iterator[Finding]:
    if context.cluster.simulated:
        return
    for one, other in combinations([f for f in context.facts.values() if _is_remote(context, f)], 2):
        first, second = known(one.identity), known(other.identity)
        if first and second and _same(first, second):
            yield Finding(
                CODE,
                SEVERITY,
                f"{one.node}, {other.node}",
                "both are one machine",
                f"hostname {first.hostname} and boot id {first.boot_id} on both",
                "two entries of the cluster file lead to one machine (a wrong address, an alias, a reused DHCP lease)",
                f"correct the ssh address of {one.node} or {other.node} in the cluster file",
            )


def _is_remote(context: Context, facts: NodeFacts) -> bool:
    node = node_of(context, facts.node)
    return node is not None and not node.is_local


def _same(one: Identity, other: Identity) -> bool:
    return bool(one.boot_id) and (one.boot_id, one.hostname) == (other.boot_id, other.hostname)
