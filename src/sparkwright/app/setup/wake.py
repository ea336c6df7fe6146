"""A node woken by another one of its cluster."""

from sparkwright.app.services import Services
from sparkwright.domain.command import shell_command
from sparkwright.domain.errors import CommandFailed, NodeError, NotReady, UsageError
from sparkwright.domain.values import dataclass
from sparkwright.remote.wake import send_magic_packet

_LOOK_EVERY = 5.0
_ALIVE = shell_command("exit 0", timeout=10.0)


@dataclass(frozen=True, slots=True)
class Woken:
    """networks: broadcast addresses of the sender. seconds: until the node answered, None where nobody waited."""

    node: str
    mac: str
    sender: str
    networks: tuple[str, ...]
    seconds: float | None = None


async def wake_peer(services: Services, name: str, wait: float) -> Woken:
    """Send a magic packet from the first other node that answers, and wait for the node to answer ssh.

    Raises UsageError for a node without an address to wake it by, CommandFailed if nobody can send one, NotReady.
    """
    if name not in services.cluster.names:
        raise UsageError(f"no node {name}", f"nodes: {', '.join(services.cluster.names)}")
    node = services.cluster.node(name)
    if not node.wake:
        hint = "`sparkwright facts` lists its cards while it is on; write `wake: MAC` into its part of the cluster file"
        raise UsageError(f"{name}: the cluster file has no `wake` for it", hint)
    why = "it is the only node, and cannot wake itself"
    for sender in (one for one in services.cluster.names if one != name):
        try:
            done = await services.run(sender, send_magic_packet(node.wake))
        except NodeError as error:
            why = error.message
            continue
        if done.ok:
            seconds = await _until_back(services, name, wait) if wait else None
            return Woken(name, node.wake, sender, tuple(done.stdout.split()), seconds)
        why = f"{sender}: {done.stderr.strip()[-200:] or 'it is in no network with a broadcast address'}"
    raise CommandFailed(name, f"no node could send a magic packet: {why}")


async def _until_back(services: Services, name: str, wait: float) -> float:
    began = services.clock.monotonic()
    while True:
        try:
            await services.run(name, _ALIVE)
            return services.clock.monotonic() - began
        except NodeError as error:
            if services.clock.monotonic() - began >= wait:
                hint = "check its power, and `sparkwright check` (HOST027) when it is on"
                raise NotReady(f"{name} did not answer within {wait:.0f} s: {error.message}", hint) from None
        await services.clock.sleep(_LOOK_EVERY)
