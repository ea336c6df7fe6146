"""Notifications of the owner: `notify:` of the cluster file brought to the head, and tried from there."""

from sparkwright.app.lease import run_or_raise
from sparkwright.app.serve.head_program import service_host_of, unpacked
from sparkwright.app.services import Services
from sparkwright.domain.codec import Unreadable, from_json, to_json
from sparkwright.domain.command import Command
from sparkwright.domain.errors import CommandFailed, UsageError
from sparkwright.domain.notify import FILE, FOLDER, Channel, Delivery, Form, Notify, Receiver, Receivers
from sparkwright.domain.service import Installation
from sparkwright.domain.values import dataclass
from sparkwright.remote import service

_SECONDS = 60.0  # one try has 10 s, and all are made at once
_EXAMPLE = "notify: {channels: [{form: ntfy, url_env: NTFY_URL}]}"


@dataclass(frozen=True, slots=True)
class Applied:
    """The notifications that the head sends from now on. missing: variables of this shell that are not set.

    kept: nothing was written, for an address is missing and the head has an earlier file.
    """

    node: str
    channels: tuple[str, ...]
    missing: tuple[str, ...] = ()
    kept: bool = False


async def apply_notify(services: Services, node: str) -> Applied | None:
    """Write the receivers to the head; None without `notify:`, which leaves the head as it is.

    Raises CommandFailed, Unreachable.
    """
    if (wanted := services.cluster.notify) is None:
        return None
    receivers, missing = _resolved(services, wanted)
    folder = f"{services.state_on(node)}/{FOLDER}"
    if missing and (await services.run(node, service.read(folder, FILE))).stdout.strip():
        return Applied(node, (), missing, kept=True)
    await run_or_raise(services, node, service.write(folder, FILE, to_json(receivers).encode()))
    return Applied(node, tuple(str(one.form) for one in receivers.receivers), missing)


def missing_text(applied: Applied) -> str:
    """A sentence about variables that are not set; '' if none is missing."""
    if not applied.missing:
        return ""
    names = ", ".join(applied.missing)
    kept = "; the addresses that the head has are kept" if applied.kept else "; those channels get nothing"
    return f"notify: {names} not set in this shell{kept}"


async def send_test(services: Services, node: str) -> tuple[Delivery, ...]:
    """Send a test message from the node over each channel; nothing is stored there but our program.

    Raises UsageError without channels or with variables that are not set, CommandFailed, Unreachable.
    """
    wanted = services.cluster.notify
    if wanted is None or not wanted.channels:
        raise UsageError("the cluster file names no channel", f"add to it, for example, `{_EXAMPLE}`")
    receivers, missing = _resolved(services, wanted)
    if missing:
        raise UsageError(f"not set in this shell: {', '.join(missing)}", f"export {missing[0]}=...")
    host = await service_host_of(services, node)
    if not host.python:
        raise CommandFailed(node, f"no Python >= 3.11 there {host.seen and f'({host.seen})'}", "install python3")
    _, runtime = await unpacked(services, node, host)
    where = Installation(node, f"{host.state}/{services.cluster.name}", host.state, host.python, runtime)
    command = Command(where.argv("notify"), stdin=to_json(receivers).encode(), timeout=_SECONDS)
    done = await services.run(node, command)
    try:
        if done.ok:
            return from_json(tuple[Delivery, ...], done.stdout)
        why = done.stderr.strip()[-300:]
    except Unreadable as error:
        why = str(error)
    raise CommandFailed(node, f"the test messages could not be sent: {why}", "")


def _resolved(services: Services, wanted: Notify) -> tuple[Receivers, tuple[str, ...]]:
    """Receivers with their secrets from the environment, and the variables that are not set."""
    names = [name for channel in wanted.channels for name in (channel.url_env, channel.token_env) if name]
    values = {name: services.secrets[name].reveal().strip() for name in names if name in services.secrets}
    missing = tuple(dict.fromkeys(name for name in names if not values.get(name)))
    there = [channel for channel in wanted.channels if not {channel.url_env, channel.token_env} & set(missing)]
    receivers = tuple(_receiver(channel, values) for channel in there)
    return Receivers(receivers, wanted.after, wanted.per_hour), missing


def _receiver(channel: Channel, values: dict[str, str]) -> Receiver:
    if channel.form is Form.MAIL:
        return Receiver(channel.form, to=channel.to, sender=channel.sender, program=channel.program)
    return Receiver(channel.form, values.get(channel.url_env, ""), values.get(channel.token_env, ""))
