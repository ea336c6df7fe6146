"""SSH as its owner would have set it up: one key per side, known host keys, checking always on."""

from pathlib import Path

from testbed.settings import ContainerSettings, NodeSpec
from testbed.shell import run

CONFIG = """\
Host {name}
  HostName {address}
  User spark
  IdentityFile {identity}
  IdentitiesOnly yes
  UserKnownHostsFile {known_hosts}
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  PasswordAuthentication no
"""


class HostKeys:
    def __init__(self, settings: ContainerSettings) -> None:
        self._specs = (*settings.nodes, settings.spare)
        self.folder = settings.ssh
        self.identity = self.folder / "id_ed25519"
        self.between_nodes = self.folder / "nodes_ed25519"
        self.known_hosts = self.folder / "known_hosts"
        self.config = self.folder / "config"

    def make(self) -> None:
        """Makes the missing keys; they last as long as the testbed's data."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        for path in (self.identity, self.between_nodes, *map(self.host_key, self._specs)):
            if not path.exists():
                run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "sparkwright-testbed", "-f", str(path)])
        self.known_hosts.write_text(self.known_hosts_text())
        self.config.write_text("\n".join(map(self._config_of, self._specs)))

    def host_key(self, spec: NodeSpec) -> Path:
        return self.folder / f"{spec.name}_host_ed25519"

    def public(self, key: Path) -> str:
        return key.with_suffix(".pub").read_text()

    def host_public(self, spec: NodeSpec) -> str:
        """Type and key, without the comment."""
        return " ".join(self.public(self.host_key(spec)).split()[:2])

    def known_hosts_text(self) -> str:
        lines = []
        for spec in self._specs:
            names = ",".join((spec.name, spec.mgmt, spec.fabric, spec.fabric_b))
            lines.append(f"{names} {self.host_public(spec)}\n")
        return "".join(lines)

    def _config_of(self, spec: NodeSpec) -> str:
        return CONFIG.format(name=spec.name, address=spec.mgmt, identity=self.identity, known_hosts=self.known_hosts)
