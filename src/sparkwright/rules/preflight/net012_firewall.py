"""A firewall is on and does not let the fabric through.

Detects: ufw, firewalld or nftables is on, and lets in all traffic of no, or not of every, ACTIVE rail. Where the rules
  can only be read by root, that it is on is all that is said (info).
Why: ping passes and RDMA hangs; the ranks' sockets time out minutes later. Each twin needs its own rule.
Evidence: the firewall, and the netdevs that its rules let in.
Remedy: let in what comes over each rail. Not done by itself: a firewall is the owner's.
References: https://github.com/bytebunkerlabs/dgx-spark-serve
"""

from collections.abc import Iterator

from sparkwright.domain.fabric_facts import Firewall
from sparkwright.domain.facts import Unknown
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import Rail, parsed, rails, wired
from sparkwright.rules.reading import known
from sparkwright.rules.rule import Context

CODE = "NET012"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "a firewall stands in the fabric's way"


def check(context: Context) -> Iterator[Finding]:
    for facts in wired(context):
        network = known(facts.network)
        firewall = network.firewall if network else None
        closed = [rail.name for rail in rails(facts) if firewall and not _lets_in(firewall, rail)]
        if firewall and closed:
            yield _finding(facts.node, firewall, closed)


def _lets_in(firewall: Firewall, rail: Rail) -> bool:
    """By its name, or by the networks that it is in."""
    allowed = known(firewall.allows) or ()
    open_to = [network for word in allowed if (network := parsed(word))]
    own = [net for net in rail.networks if any(net.subnet_of(network) for network in open_to)]
    return rail.name in allowed or bool(own and len(own) == len(rail.networks))


def _finding(node: str, firewall: Firewall, closed: list[str]) -> Finding:
    unread = isinstance(firewall.allows, Unknown)
    told = "its rules can be read by root only" if isinstance(firewall.allows, Unknown) else ", ".join(firewall.allows)
    return Finding(
        CODE,
        Severity.INFO if unread else SEVERITY,
        node,
        f"{firewall.name} is on" if unread else f"{firewall.name} does not let {' and '.join(closed)} in",
        f"{firewall.name}: active; {told or 'no interface is let in'}",
        "without a rule for each rail ping passes and RDMA hangs without a word",
        f"on {node}: " + " && ".join(_allow(firewall.name, name) for name in closed),
    )


def _allow(firewall: str, interface: str) -> str:
    if firewall == "ufw":
        return f"sudo ufw allow in on {interface}"
    if firewall == "nftables":
        return f"sudo nft list ruleset   # it needs: iifname {interface} accept"
    return f"sudo firewall-cmd --permanent --zone=trusted --change-interface={interface} && sudo firewall-cmd --reload"
