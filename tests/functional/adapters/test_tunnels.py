"""Tunnels that outlive the command, through a real sshd."""

import asyncio
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from fakes.nodes import settings
from fakes.ports import free_port
from fakes.sshd import Sshd
from patience import PATIENCE
from sparkwright.adapters.tunnels import Tunnel, Tunnels
from sparkwright.domain.errors import Unreachable, UsageError

OPEN = """
import asyncio, sys
from pathlib import Path
from sparkwright.adapters.ssh import SshSettings
from sparkwright.adapters.tunnels import Tunnel, Tunnels
folder, config, control, port = sys.argv[1:]
able = Tunnels(Path(folder), SshSettings(config=Path(config), control=Path(control)))
print(asyncio.run(able.open(Tunnel("a", "node", int(port)))))
"""


@pytest.fixture
def tunnels(tmp_path: Path, ssh_server: Sshd) -> Tunnels:
    return Tunnels(tmp_path / "tunnels", settings(ssh_server))


async def test_a_tunnel_outlives_its_command_until_it_is_stopped(
    tunnels: Tunnels, ssh_server: Sshd, tmp_path: Path
) -> None:
    """Another process opens it; it is listed here, opened again without a second ssh, and gone once stopped."""
    port = free_port()
    words = [str(tmp_path / "tunnels"), str(ssh_server.config), str(ssh_server.control), str(port)]
    done = subprocess.run([sys.executable, "-c", OPEN, *words], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "True\n"
    assert await tunnels.listed() == (Tunnel("a", "node", port),)
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()
    assert not await tunnels.open(Tunnel("a", "node", port))
    assert await tunnels.stop("a")
    assert not await tunnels.stop("a")
    assert await tunnels.listed() == ()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


async def test_a_tunnel_whose_other_side_is_gone_is_listed_as_ended(tunnels: Tunnels, ssh_server: Sshd) -> None:
    """Not silently forgotten: it can be opened again, and stopping it forgets it."""
    one = Tunnel("a", "node", free_port())
    await tunnels.open(one)
    await _lose(tunnels, ssh_server)
    assert await tunnels.open(one)
    assert not (await tunnels.listed())[0].ended
    await _lose(tunnels, ssh_server)
    assert not await tunnels.stop("a")
    assert await tunnels.listed() == ()


async def _lose(tunnels: Tunnels, sshd: Sshd) -> None:
    for process in _sessions(sshd):
        with suppress(ProcessLookupError):  # a child may end with its parent
            os.kill(process, signal.SIGKILL)
    async with asyncio.timeout(PATIENCE):
        while not (await tunnels.listed())[0].ended:
            await asyncio.sleep(0.05)


def _sessions(sshd: Sshd) -> list[int]:
    """The processes that the server runs for its clients; without root each has a child that holds the connection."""
    assert sshd._process
    return _below(sshd._process.pid)


def _below(parent: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(parent)], capture_output=True, text=True).stdout.split()
    return [*(int(pid) for pid in found), *(below for pid in found for below in _below(int(pid)))]


async def test_a_port_that_is_taken_is_named(tunnels: Tunnels) -> None:
    """Somebody else's listener is not taken for a tunnel."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(UsageError, match=f"port {port} of this machine is taken"):
        await tunnels.open(Tunnel("a", "node", port))
    server.close()
    await server.wait_closed()


async def test_a_machine_that_does_not_answer_is_named(tunnels: Tunnels) -> None:
    """A failed ssh leaves nothing behind, and is explained as everywhere else."""
    with pytest.raises(Unreachable):
        await tunnels.open(Tunnel("a", "nobody.invalid", free_port()))
    assert await tunnels.listed() == ()
