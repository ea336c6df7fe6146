"""The node's name in the local network has become another one.

Detects: avahi-daemon of a GB10 says that it announces the hostname with a number behind it (`spark-1-5.local`). A
  warning where the cluster file reaches the node by a name that ends in .local.
Why: avahi takes the next number when it believes that the name is taken, mostly because it hears itself through
  Docker's bridges. Whoever asks for the old name then reaches nobody; numbers beyond 500 were seen.
Evidence: avahi's own words.
Remedy: let it speak on the wired port only. An update of DGX OS may write that file anew.
References: https://github.com/DoctorMasterNewb/sparkbase (suffixes up to -528)
"""

import re
from collections.abc import Iterator

from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.facts.upkeep import AVAHI
from sparkwright.rules.reading import known, node_of, sparks
from sparkwright.rules.rule import Context

CODE = "NET018"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the node is announced under another name"
_SAYS = re.compile(r"Host name is ([^\s.]+)\.")


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        own, announced = _names(facts)
        if own and re.fullmatch(re.escape(own) + "-[0-9]{1,5}", announced, re.IGNORECASE):
            node = node_of(context, facts.node)
            used = node is not None and node.ssh.endswith(".local")
            yield Finding(
                CODE,
                SEVERITY if used else Severity.INFO,
                facts.node,
                f"{own}.local is announced as {announced}.local",
                f"{AVAHI}: Host name is {announced}.local; hostname {own}",
                "avahi believes that the name is taken, mostly because it hears itself through Docker's bridges",
                "allow-interfaces=enP7s7 below [server] in /etc/avahi/avahi-daemon.conf; "
                "sudo systemctl restart avahi-daemon",
            )


def _names(facts: NodeFacts) -> tuple[str, str]:
    """The first word of the hostname, and what avahi announces; '' for what is not known."""
    identity, upkeep = known(facts.identity), known(facts.upkeep)
    unit = upkeep.units.get(AVAHI) if upkeep else None
    said = _SAYS.search(unit.says) if unit else None
    return (identity.hostname.partition(".")[0] if identity else "", said[1] if said else "")
