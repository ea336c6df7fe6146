"""NetworkManager gives a fabric netdev an address of its own making.

Detects: an active NetworkManager profile with ipv4.method link-local on a netdev of an ACTIVE RDMA port; with method
  auto it is info. Not where all rails of all nodes are link-local, as NVIDIA's playbook for two nodes may have it: they
  are alike, and NET010 tells that their addresses may change.
Why: it adds a random 169.254 address to one twin, so that the GID tables of the nodes no longer agree; the next start
  ends with `ibv_modify_qp ... Invalid argument`. netplan's own profiles are made so for a netdev without addresses.
Evidence: profile, netdev and method.
Remedy: method disabled for it. netplan and a reboot make the profile anew: `link-local: []` there keeps it.
References: https://github.com/guardkit/dgx-spark; https://github.com/NVIDIA/dgx-spark-playbooks (connect-two-sparks)
"""

from collections.abc import Iterator

from sparkwright.domain.fabric_facts import Profile
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import rails, wired
from sparkwright.rules.reading import known
from sparkwright.rules.rule import Context

CODE = "NET009"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "NetworkManager makes up addresses for the fabric"
_MADE_UP = "link-local"


def check(context: Context) -> Iterator[Finding]:
    here = [(facts, _profiles(facts)) for facts in wired(context)]
    alike = all(found and {p.ipv4 for p in found} == {_MADE_UP} and _each(facts, found) for facts, found in here)
    for facts, found in here if not alike else ():
        for profile in found:
            if profile.ipv4 in (_MADE_UP, "auto"):
                yield _finding(facts.node, profile)


def _profiles(facts: NodeFacts) -> tuple[Profile, ...]:
    """Those of the node's rails."""
    network = known(facts.network)
    names = {rail.name for rail in rails(facts)}
    return tuple(profile for profile in (network.profiles if network else ()) if profile.interface in names)


def _each(facts: NodeFacts, found: tuple[Profile, ...]) -> bool:
    return {profile.interface for profile in found} == {rail.name for rail in rails(facts)}


def _finding(node: str, profile: Profile) -> Finding:
    made_up = profile.ipv4 == _MADE_UP
    return Finding(
        CODE,
        SEVERITY if made_up else Severity.INFO,
        node,
        f"NetworkManager sets {profile.interface} up by itself",
        f"profile {profile.name}: ipv4.method {profile.ipv4} on {profile.interface}",
        "it adds a 169.254 address to one twin, and the GID tables of the nodes differ from then on"
        if made_up
        else "without a DHCP server on the link it tries again and again, and each try may renumber the GID table",
        f"on {node}: sudo nmcli connection modify '{profile.name}' ipv4.method disabled "
        f"ipv6.method link-local && sudo nmcli device reapply {profile.interface}   # a netdev with "
        "addresses: manual; and `link-local: []` in netplan, or it comes back",
    )
