"""A Caddy that hangs in front of the gateway: named, ended, and never mistaken for one that is away or busy."""

from __future__ import annotations

import os
import signal

import pytest

from fakes.clock import FakeClock
from functional.gateway.conftest import Opened
from patience import wait_until
from sparkwright.adapters.hung_server import is_answering, kill_listener, listener_of
from sparkwright.domain.live import WATCHDOG
from sparkwright.gateway.caddy import ADMIN
from sparkwright.supervisor.proxy import caddy_watch
from sparkwright.supervisor.proxy.caddy_watch import CaddyWatch


@pytest.mark.full
async def test_a_stopped_caddy_is_named_and_killed(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards clients that would hang for ever: systemd has no watchdog for Caddy. One that answers is left alone."""
    gateway = opened("127.0.0.1:1")
    monkeypatch.chdir(gateway.folder)
    caddy, clock = gateway.processes["caddy"], FakeClock()
    watch = CaddyWatch(gateway.folder, clock)
    clock.advance(10 * WATCHDOG)
    with monkeypatch.context() as patched:
        patched.setattr(caddy_watch, "_WITHIN", 60.0)
        await watch.look()
    assert watch.trouble == "" and listener_of(ADMIN) == caddy.pid
    os.kill(caddy.pid, signal.SIGSTOP)
    wait_until(lambda: "Caddy answers nothing" in str(gateway.flights()), "the gateway's process tells it")
    for _ in range(2):
        await watch.look()
        clock.advance(WATCHDOG)
    assert "Caddy answers nothing" in watch.trouble and caddy.poll() is None
    await watch.look()
    assert caddy.wait(60) == -signal.SIGKILL and watch.trouble == ""
    assert listener_of(ADMIN) == kill_listener(ADMIN) == 0
    await watch.look()
    assert watch.trouble == "", "one that is away is systemd's"
    assert await is_answering("http://127.0.0.1:1/", 3.0)
