"""One supervisor at work: the services as its node sees them, and the loop with them.

Where a standby could take its place it works only while it has the right to; see authority.py.
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
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
from sparkwright.supervisor.authority import RightReader, SealedHosts, is_copy, records_folder
from sparkwright.supervisor.context import DeploymentContext
from sparkwright.supervisor.core.state import Policy
from sparkwright.supervisor.home import Home, Log
from sparkwright.supervisor.loop import supervise
from sparkwright.wiring import head_access, new_launch_key, open_services, socket_folder

_LOOK_AGAIN = 2.0
_RIGHT_EVERY, _ASK_AGAIN = 1.0, 1.0
STOOD_DOWN = "stood-down"
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
            _show_idle(home, "desired-file", why, now)
            await asyncio.sleep(_LOOK_AGAIN)
        return
    log.write(f"supervising {desired.deployment} ({desired.recipe.label}), process {os.getpid()}")
    async with _services(home, log, desired) as services, _records(home.path, log) as (store, hooks, notifier):
        policy = Policy(allow_reboot=desired.allow_reboot).scaled(desired.time_scale)
        state = str(home.path.parents[1]) if is_copy(home.path) else ""

        def context(services: Services) -> DeploymentContext:
            return DeploymentContext(services, desired, home, store, (hooks, notifier), policy, state=state)

        try:
            if can_be_followed(home.path, desired):
                await _work_with_right(home, log, services, context)
            else:
                await supervise(context(services))
        finally:
            if not home.wanted():
                await store.ended(desired.deployment, time.time(), "taken down, or taken over by another `up`")


def can_be_followed(home: Path, desired: Desired) -> bool:
    """True if another node could supervise it, too: none of its ranks needs the head."""
    head = desired.cluster.supervisor_node
    return is_copy(home) or head not in [node.name for node in desired.cluster.ordered[: desired.recipe.nodes]]


def _show_idle(home: Home, kind: str, why: str, since: float) -> None:
    """Shows why nothing is done."""
    home.show(Live(time.time(), home.path.name, DeploymentState.DEGRADED, since, why, troubles=((kind, why),)))


async def _work_with_right(
    home: Home, log: Log, services: Services, context: Callable[[Services], DeploymentContext]
) -> None:
    """Supervises while it has the right to. Without it the ranks are left to the one who has."""
    rights, since, said = RightReader(home.path), time.time(), ""
    while home.wanted():
        if not (why := rights.read().why):
            said = ""
            hosts = SealedHosts(services.hosts, services.cluster, rights)
            work = asyncio.create_task(supervise(context(replace(services, hosts=hosts))))
            lost = asyncio.create_task(_until_lost(rights, hosts))
            try:
                await asyncio.wait({work, lost}, return_when=asyncio.FIRST_COMPLETED)
                if not lost.done():
                    work.result()
                    return
            finally:
                await _cancelled(work, lost)
            since = time.time()
            await asyncio.sleep(_ASK_AGAIN)
            continue
        if why != said:
            log.write(f"stands down: {why}")
            said = why
        _show_idle(home, STOOD_DOWN, f"not supervised from here: {why}", since)
        await asyncio.sleep(_ASK_AGAIN)


async def _until_lost(rights: RightReader, hosts: SealedHosts) -> None:
    """Returns when it may not act any more, or a node takes commands of another one only."""
    while not rights.read().why:
        with suppress(TimeoutError):
            async with asyncio.timeout(_RIGHT_EVERY):
                await hosts.refused.wait()
                return


async def _cancelled(*tasks: "asyncio.Task[None]") -> None:
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            raise result


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
    state = records_folder(home)
    store = SqliteStore(state, log.write)
    hooks, notifier = Hooks(state, log.write), Notifier(state, log.write)
    try:
        yield store, hooks, notifier
    finally:
        await asyncio.gather(hooks.aclose(), notifier.aclose())
        await store.aclose()
