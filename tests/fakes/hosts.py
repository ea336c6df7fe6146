"""The nodes of a test."""

from fakes.host import FakeHost


class FakeHosts:
    """Implements ports.Hosts: FakeHosts("spark-1", "spark-2") or FakeHosts(FakeHost(...), ...)."""

    def __init__(self, *hosts: FakeHost | str) -> None:
        made = [FakeHost(host) if isinstance(host, str) else host for host in hosts]
        self.hosts = {host.name: host for host in made}
        self.closed = False

    def __getitem__(self, node: str) -> FakeHost:
        return self.hosts[node]

    async def close(self, persist: bool = True) -> None:
        self.closed = True
