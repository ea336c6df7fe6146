"""Sockets of the programs on the head."""

import socket
import stat
from pathlib import Path

import pytest

from sparkwright.adapters.unix_socket import ServiceSocket


def test_whoever_sees_the_socket_can_connect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards clients that come while a process begins: the name is there only once it listens."""
    there: list[bool] = []

    class ObservedSocket(socket.socket):
        def listen(self, backlog: int = 0, /) -> None:
            there.append(Path("service.sock").exists())
            super().listen(backlog)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(socket, "socket", ObservedSocket)
    with ServiceSocket(tmp_path, "service.sock").listener, socket.socket(socket.AF_UNIX) as client:
        client.connect("service.sock")
    assert there == [False]
    (found,) = tmp_path.iterdir()
    assert found.name == "service.sock" and stat.S_IMODE(found.stat().st_mode) == 0o600
