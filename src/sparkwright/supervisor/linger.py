"""Linger of the user that this supervisor belongs to: without it systemd ends the user's services ten seconds after the
last login."""

import os
import pwd
import re
from pathlib import Path

from sparkwright.domain.errors import NodeError
from sparkwright.domain.incident import IncidentEvent
from sparkwright.remote.service import enable_linger
from sparkwright.supervisor.event_bus import EventBus

TROUBLE = "linger"
"""Kind of the trouble, and of the event when linger is enabled again."""
LINGER, CGROUP = Path("/var/lib/systemd/linger"), Path("/proc/self/cgroup")
_LOOK_EVERY = 2.0
# A service of the user's own systemd, as `up` installs them; a program in a session is nobody's service.
_OWN_UNIT = re.compile(r"/user@\d{1,10}\.service/.*/sparkwright-[^/\n]+\.service$", re.MULTILINE)


async def watch_linger(bus: EventBus, linger: Path = LINGER, cgroup: Path = CGROUP) -> None:
    """Enable again what somebody disabled while it serves; `down` takes it back. linger: the folder with a file for
    each user that lingers."""
    while is_user_service(cgroup):
        await keep_linger(bus, linger)
        await bus.context.pause(_LOOK_EVERY)


def is_user_service(cgroup: Path = CGROUP) -> bool:
    """True if the user's own systemd keeps this process running."""
    try:
        return bool(_OWN_UNIT.search(cgroup.read_text()))
    except OSError:
        return False


async def keep_linger(bus: EventBus, linger: Path = LINGER) -> None:
    """One look. Where linger cannot be enabled, that is a trouble until it is."""
    context, user = bus.context, pwd.getpwuid(os.getuid()).pw_name
    if (linger / user).exists():
        bus.set_trouble(TROUBLE, "")
        return
    node = context.supervisor_node
    try:
        done = await context.services.run(node, enable_linger(context.services.cluster.node(node).paths.state))
        why = "" if done.ok else done.stderr.strip()[-200:] or f"exit {done.exit_code}"
    except NodeError as error:
        why = error.message
    what = f"linger of {user} was disabled on {node}"
    if why:
        fate = "systemd ends supervisor and gateway there once nobody is logged in"
        cure = f"on {node}: sudo loginctl enable-linger {user}"
        bus.set_trouble(TROUBLE, f"{what}, and cannot be enabled again ({why}): {fate}; {cure}")
        return
    said = f"{what}, and is enabled again: without it systemd ends supervisor and gateway once nobody is logged in"
    context.notice(f"{context.name}: {said}", warning=True)
    await context.store.note(context.name, IncidentEvent(context.now(), TROUBLE, said), context.seen.incident)
    bus.set_trouble(TROUBLE, "")
