"""The standby: a second node for gateway and supervision when the head is gone, and never at the same time."""

from sparkwright.domain.cluster import Cluster
from sparkwright.domain.service import Service
from sparkwright.domain.values import dataclass

FOLDER = "_standby"
"""Folder of the role on both nodes, next to those of deployments; no deployment can have this name."""
ROLE, TERM_FILE, RETURN_FILE, TREE = "role.json", "term.json", "return", "state"
SECOND, NEEDS_HEAD = "second", "needs-head"
"""Files of a deployment: its second URL, in `door` on the head; and on the standby a mark that it cannot do without
the head, with the nodes of its plan."""
INHERITED, PAUSED = "from-head", "paused"
"""On the standby, in a deployment's folder: what its supervisor on the head knew last; and a mark of a person at work,
who wants no supervisor meanwhile."""
TERM = 12.0
"""Seconds for which a node promises its vote."""
MOST_VOTERS = 5


@dataclass(frozen=True, slots=True)
class StandbyRole:
    """The role as one of the two nodes has it. node: this one. cluster: as this node reaches the others.

    voters: nodes whose majority lets one of the two serve. programs: of the gateways, started by the standby when it
    takes over. tree: the standby's copy of what a gateway needs, an absolute folder there. url: of this node's gateway.
    supervisor: the words that start a deployment's supervisor on the standby; its folder there is the last one.
    """

    node: str
    head: str
    standby: str
    cluster: Cluster
    voters: tuple[str, ...]
    tree: str
    programs: tuple[Service, ...] = ()
    url: str = ""
    term: float = TERM
    supervisor: tuple[str, ...] = ()

    @property
    def other(self) -> str:
        return self.standby if self.node == self.head else self.head


@dataclass(frozen=True, slots=True)
class Seal:
    """The right to supervise: of two, the one with the higher number. number 0: nobody's. See remote/seal.py."""

    number: int = 0
    node: str = "-"


@dataclass(frozen=True, slots=True)
class Term:
    """The time for which a node may serve. until: seconds since its boot, `boot` the id of that.

    why: the reason why it may not, in words for clients. holder: node that has the votes, '' if nobody is known to.
    at: wall clock of the last renewal, for people. seal: under which `node` supervises, 0 while it has none yet.
    """

    boot: str
    until: float
    why: str = ""
    holder: str = ""
    at: float = 0.0
    node: str = ""
    seal: int = 0

    def is_held(self, boot: str, now: float) -> bool:
        return self.boot == boot and now < self.until


def voters_of(cluster: Cluster) -> tuple[str, ...]:
    """The head, the standby and other nodes, an odd number of at most five.

    With two nodes the standby alone: if the head cannot reach it, the head cannot know which of the two is cut off.
    """
    first = (cluster.supervisor_node, cluster.standby)
    found = (*first, *(name for name in cluster.names if name not in first))[:MOST_VOTERS]
    if len(found) == 2:
        return (cluster.standby,)
    return found if len(found) % 2 else found[:-1]
