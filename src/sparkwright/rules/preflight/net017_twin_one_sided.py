"""One node's twin has an IPv4 address and another's has none.

Detects: cages with both twins ACTIVE on two nodes, of which one node's twin has an IPv4 address and the other's none.
Why: their GID tables differ: one offers an IPv4 GID, the other link-local ones, and the connection of this rail ends
  with `ibv_modify_qp ... Invalid argument`. Both ways work where all nodes do the same (NET001).
Evidence: the twins with their addresses.
Remedy: an address for all twins, or for none.
References: https://github.com/guardkit/dgx-spark (NetworkManager gave one twin a 169.254 address)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import twins, wired
from sparkwright.rules.rule import Context

CODE = "NET017"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "one node's twin has an address and another's has none"


def check(context: Context) -> Iterator[Finding]:
    seconds = [twin for facts in wired(context) for first, twin in twins(facts) if first.networks]
    bare = [twin for twin in seconds if not twin.networks]
    addressed = [twin for twin in seconds if twin.networks and twin.node not in {b.node for b in bare}]
    for twin in bare if addressed else ():
        yield Finding(
            CODE,
            SEVERITY,
            twin.node,
            f"{twin.name} has no address, {addressed[0].node}'s twin has one",
            "; ".join(f"{rail.node} {rail.shown}" for rail in (twin, *addressed)),
            "the two ends offer different kinds of GID, and connections over this rail fail",
            f"give {twin.name} an address in {addressed[0].networks[0]}, or take the others' away",
        )
