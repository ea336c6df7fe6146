"""One supervisor at work: the services as the head node sees them, and the loop with them."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from sparkwright.adapters.hooks import Hooks
from sparkwright.adapters.machine import whoami
from sparkwright.adapters.notify import Notifier
from sparkwright.adapters.sqlite.store import SqliteStore
from sparkwright.adapters.ssh import SshSettings
from sparkwright.adapters.watchdog import watched_by_systemd
from sparkwright.app.services import Services
from sparkwright.domain.errors import UsageError
from sparkwright.domain.live import DeploymentState, Desired, Live
from sparkwright.supervisor.context import DeploymentContext
from sparkwright.supervisor.core.state import Policy
from sparkwright.supervisor.home import Home, Log
from sparkwright.supervisor.loop import supervise
from sparkwright.wiring import head_access, new_launch_key, open_services, socket_folder

_LOOK_AGAIN = 2.0
# Of systemd and Python for their own children; a rank that is started from here must not have them.
_NOT_FOR_RANKS = ("INVOCATION_ID", "JOURNAL_STREAM", "NOTIFY_SOCKET", "SYSTEMD_EXEC_PID", "MEMORY_PRESSURE_WATCH")


def main(path: Path) -> int:
    """Supervises until it is asked to end (SIGTERM: the ranks stay as they are). Raises Busy when another one does."""
    log = Log(path / "log", time.time)
    home = Home(path, log.write)
    with home.locked():
        asyncio.run(watched_by_systemd(_until_ended(home, log)))
    return 0


async def _until_ended(home: Home, log: Log) -> None:
    work = asyncio.create_task(_work(home, log))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, work.cancel)
    try:
        await work
    except asyncio.CancelledError:
        log.write("asked to end; the ranks continue to run")


async def _work(home: Home, log: Log) -> None:
    try:
        desired = home.desired()
    except UsageError as error:
        # Shows why nothing is done, until a readable desired state comes
        why = f"{error.message}; {error.hint}"
        log.write(f"warning: {why}")
        now = time.time()
        while home.wanted():
            wrong = (("desired-file", why),)
            home.show(Live(time.time(), home.path.name, DeploymentState.DEGRADED, now, why, troubles=wrong))
            await asyncio.sleep(_LOOK_AGAIN)
        return
    log.write(f"supervising {desired.deployment} ({desired.recipe.label}), process {os.getpid()}")
    async with _services(home, log, desired) as services, _records(home.path, log) as (store, hooks, notifier):
        policy = Policy(allow_reboot=desired.allow_reboot).scaled(desired.time_scale)
        try:
            await supervise(DeploymentContext(services, desired, home, store, (hooks, notifier), policy))
        finally:
            if not home.wanted():
                await store.ended(desired.deployment, time.time(), "taken down, or taken over by another `up`")


@asynccontextmanager
async def _services(home: Home, log: Log, desired: Desired) -> AsyncIterator[Services]:
    environ = {k: v for k, v in os.environ.items() if k not in _NOT_FOR_RANKS and not k.startswith("PYTHON")}
    ssh = SshSettings(control=socket_folder(home.path), connect_timeout=5, persist=10, environ=environ)
    async with open_services(head_access(home.path, desired.cluster, f"{whoami()} (supervisor)", ssh), log) as made:
        yield replace(
            made,
            nonce=home.nonce(made.nonce),
            secrets=home.secrets(),
            python=desired.python,
            launch_key=new_launch_key(),
        )


@asynccontextmanager
async def _records(home: Path, log: Log) -> AsyncIterator[tuple[SqliteStore, Hooks, Notifier]]:
    store, state = SqliteStore(_state(home), log.write), _state(home)
    hooks, notifier = Hooks(state, log.write), Notifier(state, log.write)
    try:
        yield store, hooks, notifier
    finally:
        await asyncio.gather(hooks.aclose(), notifier.aclose())
        await store.aclose()


def _state(home: Path) -> Path:
    return home.parents[1]
