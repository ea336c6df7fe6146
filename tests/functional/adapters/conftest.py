"""A real sshd on loopback, and nodes of every kind."""

import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from fakes.host import FakeHost
from fakes.nodes import make_node, settings
from fakes.sshd import MISSING, Sshd
from sparkwright.adapters.hosts import local_host
from sparkwright.adapters.node_host import NodeHost
from sparkwright.adapters.ssh import ssh_host
from sparkwright.domain.command import Command, Completed


@pytest.fixture(scope="session")
def ssh_server() -> Iterator[Sshd]:
    if MISSING:
        pytest.skip(MISSING)
    server = Sshd()
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture(params=["local", "ssh"])
async def node_host(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[NodeHost]:
    if request.param == "local":
        made = local_host(make_node(tmp_path, "local"), "ann@laptop")
    else:
        made = ssh_host(make_node(tmp_path), settings(request.getfixturevalue("ssh_server")), "ann@laptop")
    yield made
    await made.close()


@pytest.fixture(params=["fake", "local", "ssh"])
async def any_host(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[NodeHost | FakeHost]:
    if request.param == "fake":
        made: NodeHost | FakeHost = FakeHost("spark-1", default=really)
    elif request.param == "local":
        made = local_host(make_node(tmp_path, "local"), "ann@laptop")
    else:
        made = ssh_host(make_node(tmp_path), settings(request.getfixturevalue("ssh_server")), "ann@laptop")
    yield made
    await made.close()


def really(command: Command) -> Completed:
    """Lets the fake answer what a shell would."""
    environ = {**os.environ, **command.env}
    try:
        done = subprocess.run(command.argv, input=command.stdin or b"", env=environ, capture_output=True)
    except FileNotFoundError as error:
        return Completed(127, "", str(error))
    return Completed(done.returncode, done.stdout.decode(), done.stderr.decode())
