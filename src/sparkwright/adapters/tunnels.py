"""Tunnels that outlive the command: an ssh of their own each, which its control socket finds again and ends."""

import asyncio
import hashlib
import json
from pathlib import Path

from sparkwright.adapters import process
from sparkwright.adapters.artifacts import private_folder, write
from sparkwright.adapters.ssh import SshSettings, control_folder, private_socket, translate
from sparkwright.domain.errors import UsageError
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.values import asdict, dataclass, replace

_WAIT = 40.0


@dataclass(frozen=True, slots=True)
class Tunnel:
    """port: on this machine's loopback, and on that of `destination`. ended: its ssh is gone, and nobody stopped it."""

    name: str
    destination: str
    port: int
    since: float = 0.0
    ended: bool = False


class Tunnels:
    """folder: of a note a tunnel, `NAME.json`. Control sockets are next to those of the shared connections."""

    def __init__(self, folder: Path, settings: SshSettings) -> None:
        self._folder, self._settings = folder, settings

    async def open(self, tunnel: Tunnel) -> bool:
        """Opens the tunnel; True if it is a new one. Raises UsageError for a taken port, Unreachable."""
        if await self._runs(tunnel.name):
            target = (tunnel.destination, tunnel.port)
            if (known := self._read(tunnel.name)) and (known.destination, known.port) == target:
                return False
            await self.stop(tunnel.name)
        if await _taken(tunnel.port):
            hint = f"stop what has it (`ss -ltnp sport = :{tunnel.port}`), or give serving.gateway.port another number"
            raise UsageError(f"port {tunnel.port} of this machine is taken", hint)
        private_folder(self._folder)
        control = self._socket(tunnel.name)
        private_socket(control.parent, control)
        control.unlink(missing_ok=True)
        await self._start(tunnel)
        write(self._folder / f"{tunnel.name}.json", json.dumps(asdict(tunnel)).encode(), sync=False)
        return True

    async def listed(self) -> tuple[Tunnel, ...]:
        """The tunnels that run, and those that ended without being stopped: the other side was away too long."""
        found = []
        for path in sorted(self._folder.glob("*.json")):
            if known := self._read(path.stem):
                found.append(replace(known, ended=not await self._runs(path.stem)))
            else:
                self._forget(path.stem)
        return tuple(found)

    async def stop(self, name: str) -> bool:
        """Ends the tunnel; True if there was one."""
        running = await self._runs(name)
        if running:
            await self._order("exit", name)
        self._forget(name)
        return running

    async def _start(self, tunnel: Tunnel) -> None:
        settings, spec = self._settings, f"127.0.0.1:{tunnel.port}:127.0.0.1:{tunnel.port}"
        config = ("-F", str(settings.config)) if settings.config else ()
        options = ["BatchMode=yes", f"ConnectTimeout={settings.connect_timeout}", "ExitOnForwardFailure=yes"]
        options += ["ServerAliveInterval=15", "ServerAliveCountMax=4", "RemoteCommand=none", "ControlMaster=yes"]
        options += [f"ControlPath={self._socket(tunnel.name)}", "ControlPersist=no", "LogLevel=ERROR"]
        argv = (settings.program, *config, "-f", "-N", "-T", "-a", *(f"-o{one}" for one in options), "-L", spec)
        code, stderr = await process.run_program((*argv, "--", tunnel.destination), _WAIT, self._settings.environ)
        if code:
            raise translate(tunnel.name, tunnel.destination, stderr, f"ssh {tunnel.destination}")

    async def _runs(self, name: str) -> bool:
        return self._socket(name).exists() and await self._order("check", name)

    async def _order(self, order: str, name: str) -> bool:
        argv = (self._settings.program, "-F", "none", "-S", str(self._socket(name)), "-O", order, "--", "tunnel")
        return (await process.run_program(argv, 5.0, self._settings.environ))[0] == 0

    def _socket(self, name: str) -> Path:
        digest = hashlib.sha256(f"{self._folder}\n{name}".encode()).hexdigest()[:16]
        return (self._settings.control or control_folder()) / f"tunnel-{digest}"

    def _read(self, name: str) -> Tunnel | None:
        try:
            return Tunnel(**read_json((self._folder / f"{name}.json").read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def _forget(self, name: str) -> None:
        for path in (self._folder / f"{name}.json", self._socket(name)):
            path.unlink(missing_ok=True)


async def _taken(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True
