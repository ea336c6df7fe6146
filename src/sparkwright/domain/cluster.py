"""The machines: nodes, how they are reached, and the fabric between them."""

from urllib.parse import urlsplit

from sparkwright.domain.notify import Notify
from sparkwright.domain.values import dataclass, field


@dataclass(frozen=True, slots=True)
class Fabric:
    """One node's side of the link. None means: find it on the node."""

    address: str | None = None
    interface: str | None = None
    hcas: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class NodePaths:
    """Folders on a node; `~` is the home of the ssh user there.

    models: root of local-path models. hub: Hugging Face hub cache. cache: engine compile caches.
    state: leases, pid files, desired state and the audit log.
    """

    models: str = "~/models"
    hub: str = "~/.cache/huggingface/hub"
    cache: str = "~/.cache/sparkwright"
    state: str = "~/.local/state/sparkwright"


@dataclass(frozen=True, slots=True)
class Node:
    """ssh: destination as given to OpenSSH (`host`, `user@host`, an alias), or `local` for this machine.

    env: extra environment for every command on this node (used by the simulated nodes of the demo).
    wake: MAC address of the card that a magic packet wakes it by, '' where nobody may.
    """

    name: str
    ssh: str
    fabric: Fabric = field(default_factory=Fabric)
    paths: NodePaths = field(default_factory=NodePaths)
    env: tuple[tuple[str, str], ...] = ()
    wake: str = ""

    @property
    def is_local(self) -> bool:
        return self.ssh == "local"

    @property
    def host(self) -> str:
        """Host in the ssh destination, which may be an alias of ssh's configuration; '' for this machine."""
        if self.is_local:
            return ""
        if self.ssh.startswith("ssh://"):
            return urlsplit(self.ssh).hostname or ""
        return self.ssh.rpartition("@")[2]


@dataclass(frozen=True, slots=True)
class Transfer:
    """Settings of copies between nodes. streams: parallel connections; 0: more are added while the rate grows.

    limit: bytes a second, 0: none. yields: an engine serves on one of the nodes: a copy takes what it leaves.
    """

    streams: int = 0
    limit: int = 0
    yields: bool = False


@dataclass(frozen=True, slots=True)
class Cluster:
    """Nodes in order; `head` is the node of rank 0. ignore: codes of findings that the owner has decided not to see.

    notes: what its file has that is no mistake, and has no effect. notify: None leaves what the head has as it is.
    supervised_on: node of supervisor and gateway, '' for the head; another one for a replica elsewhere. standby: node
    that takes the gateway over, '' for none.
    """

    name: str
    nodes: tuple[Node, ...]
    head: str
    source: str = ""
    simulated: bool = False
    ignore: tuple[str, ...] = ()
    transfer: Transfer = field(default_factory=Transfer)
    notes: tuple[str, ...] = ()
    notify: Notify | None = None
    supervised_on: str = ""
    standby: str = ""

    def node(self, name: str) -> Node:
        """The node of that name. Raises KeyError."""
        return {node.name: node for node in reversed(self.nodes)}[name]

    @property
    def supervisor_node(self) -> str:
        """The node with the supervisor, the gateway and the keys."""
        return self.supervised_on or self.head

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(n.name for n in self.nodes)

    @property
    def ordered(self) -> tuple[Node, ...]:
        """Head first, then the others as written."""
        return (self.node(self.head), *(n for n in self.nodes if n.name != self.head))
