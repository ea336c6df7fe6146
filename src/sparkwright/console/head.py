"""The services for use cases that the console runs: the cluster as the head node reaches it."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from sparkwright.adapters.machine import whoami
from sparkwright.adapters.ssh import SshSettings
from sparkwright.app.services import Services
from sparkwright.console.board import DeploymentWatch
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import UsageError
from sparkwright.domain.progress import Happening
from sparkwright.gateway.keys import BYTES
from sparkwright.wiring import head_access, open_services, socket_folder


class SilentSink:
    """Implements ports.Sink: the page shows the state itself."""

    def report(self, happening: Happening) -> None:
        pass


@dataclass
class ShownKeys:
    """Implements ports.Keyring: a key is shown once, on the page of who made it, and kept nowhere."""

    kept: list[str] = field(default_factory=list)

    def fresh(self) -> bytes:
        return secrets.token_bytes(BYTES)

    def save(self, cluster: str, name: str, content: str) -> str:
        self.kept.append(content.strip())
        return ""

    def text(self, cluster: str, name: str) -> str:
        return ""

    def saved(self, cluster: str) -> tuple[tuple[str, Secret], ...]:
        return ()


@asynccontextmanager
async def services(watch: DeploymentWatch, who: str, keyring: ShownKeys | None = None) -> AsyncIterator[Services]:
    """Yields the services. who: the key's name, for leases and audit. Raises UsageError if the deployment's settings
    are unknown."""
    desired = watch.desired
    if desired is None:
        raise UsageError(f"{watch.name}: what it is to serve cannot be read", "`sparkwright up` writes it again")
    who = f"{whoami()} (console, key {who})"
    ssh = SshSettings(control=socket_folder(watch.home / "console"))
    async with open_services(head_access(watch.home, desired.cluster, who, ssh), SilentSink()) as made:
        yield replace(made, python=desired.python, keyring=keyring, time_scale=desired.time_scale)
