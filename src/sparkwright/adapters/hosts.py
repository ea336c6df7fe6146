"""The way to each node of a cluster."""

from sparkwright.adapters.audit import whoami
from sparkwright.adapters.local import local_host
from sparkwright.adapters.node_host import NodeHost
from sparkwright.adapters.ssh import SshSettings, ssh_host
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.errors import UsageError


class ClusterHosts:
    """Implements ports.Hosts. who: `user@host` for the nodes' audit logs (default: this process's user).

    settings.environ is also the environment of commands on local nodes, before Node.env.
    """

    def __init__(self, cluster: Cluster, settings: SshSettings | None = None, who: str | None = None) -> None:
        self._cluster = cluster
        self._settings = settings or SshSettings()
        self._who = who or whoami()
        self._made: dict[str, NodeHost] = {}

    def __getitem__(self, node: str) -> NodeHost:
        """Raises UsageError for a node that the cluster does not have."""
        if node not in self._cluster.names:
            names = ", ".join(self._cluster.names)
            raise UsageError(f"{node} is no node of cluster {self._cluster.name}", f"its nodes are {names}")
        if node not in self._made:
            self._made[node] = self._make(node)
        return self._made[node]

    async def close(self, persist: bool = True) -> None:
        """persist: leave the shared ssh connections open for the next call (they end by themselves after 60 s)."""
        for host in self._made.values():
            await host.close(persist)
        self._made.clear()

    def _make(self, name: str) -> NodeHost:
        node = self._cluster.node(name)
        if node.is_local:
            return local_host(node, self._who, self._settings.environ)
        return ssh_host(node, self._settings, self._who)
