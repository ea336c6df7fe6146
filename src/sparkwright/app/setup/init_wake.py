"""The cards that a magic packet could wake each node by, for the cluster file that `init` writes."""

from collections.abc import Mapping

from sparkwright.domain.cluster import Cluster
from sparkwright.domain.fabric_facts import Network, WakeCard
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.unknown import known_or_none
from sparkwright.facts.cabling import is_cage

_DEFAULT = ("default", "0.0.0.0/0")
_RADIO = "wl"  # a card of a wireless network is not woken by a packet to its address
_NO_ADDRESS = "00:00:00:00:00:00"


def wake_cards(cluster: Cluster, facts: Mapping[str, NodeFacts]) -> dict[str, WakeCard]:
    """Node -> its card; nodes without one, those that name one already, and a node that is alone are left out.

    A card counts if its driver and firmware can wake the node, armed or not.
    """
    if len(cluster.nodes) < 2:
        return {}
    networks = {node.name: known_or_none(facts[node.name].network) for node in cluster.nodes if not node.wake}
    chosen = {name: _card(network) for name, network in networks.items() if network}
    return {name: card for name, card in chosen.items() if card}


def _card(network: Network) -> WakeCard | None:
    """The card of the default route, else the only one; which of several is connected is not guessed."""
    able = [one for one in network.cards or () if one.armed is not None and _is_ordinary(one)]
    routed = {route.interface for route in network.routes if route.destination in _DEFAULT}
    here = [one for one in able if one.interface in routed] or able
    return here[0] if len(here) == 1 else None


def _is_ordinary(card: WakeCard) -> bool:
    return not is_cage(card.interface) and not card.interface.startswith(_RADIO) and card.mac != _NO_ADDRESS
