"""Signs of life to systemd."""

import asyncio
import os
import socket
from pathlib import Path

from sparkwright.adapters import watchdog
from sparkwright.adapters.watchdog import Watchdog, watched_by_systemd


async def test_a_loop_that_runs_reports_ready_and_then_signs_of_life(tmp_path: Path, monkeypatch) -> None:
    """Guards the protocol, and that no child inherits it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.setblocking(False)
        given = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "40000", "WATCHDOG_PID": str(os.getpid())}
        for name, value in given.items():
            monkeypatch.setenv(name, value)

        async def work() -> list[bytes]:
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(10):
                return [await loop.sock_recv(systemd, 100) for _ in range(3)]

        assert await watched_by_systemd(work()) == [b"READY=1", b"WATCHDOG=1", b"WATCHDOG=1"]
    assert not set(given) & set(os.environ)


async def test_without_systemd_nothing_is_sent() -> None:
    """Guards detached services, and a watchdog that is meant for another process."""
    assert Watchdog.take({}) == Watchdog("", 0.0)
    assert Watchdog.take({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": f"{os.getpid()}1"}).every == 0.0
    assert Watchdog.take({"WATCHDOG_USEC": "30000000"}).every == 7.5
    assert Watchdog.take({"WATCHDOG_USEC": "soon"}).every == 0.0
    Watchdog("/nobody/listens").notify("READY=1")
    assert await watchdog.watched_by_systemd(asyncio.sleep(0, "done")) == "done"
