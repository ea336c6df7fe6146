"""The keys of a head node's gateways: made, listed, revoked. On the node there are only their hashes."""

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime

from sparkwright.app.services import Services
from sparkwright.domain.codec import Unreadable, from_json
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import CommandFailed, UsageError
from sparkwright.domain.values import dataclass
from sparkwright.gateway.keys import FIRST, Key, Keys, Role, add_key, digest, key_from, limited, parse, text_of, without
from sparkwright.gateway.usage import DAY, Used
from sparkwright.remote import gateway as commands
from sparkwright.remote.host import script

_MOST_ROWS = 5000
_TRIES = 50  # who loses one has lost it to somebody who is done: as many may write at once
_READ = 'cat "$(x "$1")/door/keys.json" 2>/dev/null; exit 0'


@dataclass(frozen=True, slots=True)
class Made:
    """path: of the file with the key on this machine."""

    key: Key
    secret: Secret
    path: str


async def listed(services: Services) -> Keys:
    """Raises CommandFailed for a file that cannot be read, Unreachable."""
    return (await _read(services))[0]


async def read_usage(services: Services, days: int) -> tuple[Used, ...]:
    """The usage of each key in the last `days` days, by UTC, oldest first. Raises CommandFailed, Unreachable."""
    head = services.cluster.supervisor_node
    since = datetime.fromtimestamp(services.clock.now() - (days - 1) * DAY, UTC).date().isoformat()
    done = await services.run(head, commands.read_usage(_state(services), since, _MOST_ROWS))
    try:
        if done.ok:
            return from_json(tuple[Used, ...], done.stdout)
        why = done.stderr.strip()[-300:]
    except Unreadable as error:
        why = str(error)
    raise CommandFailed(head, f"what keys used cannot be read: {why}", "usage.sqlite is next to its keys.json")


async def limit_key(services: Services, name: str, **limits: int | None) -> None:
    """None leaves a limit as it is, 0 removes it. Raises UsageError when there is no key of that name."""
    await _change(services, lambda keys: limited(keys, name, **limits), f"key {name} limited")


async def create_key(
    services: Services, name: str, deployment: str = "", role: Role = Role.CLIENT, **limits: int | None
) -> Made:
    """limits: as of `limit_key`. Raises UsageError when the name is taken."""
    if (ring := services.keyring) is None:
        raise UsageError("no place to keep a key on this machine")
    secret = key_from(ring.fresh())
    key = Key(name, digest(secret.reveal()), services.clock.now(), services.who, deployment, role)
    key = limited(Keys((key,)), name, **limits).keys[0]
    await _change(services, lambda keys: add_key(keys, key), f"key {name} made")
    file = f"{name}@{deployment}.key" if deployment else f"{name}.key"
    try:
        return Made(key, secret, ring.save(services.cluster.name, file, secret.reveal() + "\n"))
    except UsageError:
        await revoke(services, name, deployment)  # nobody has it, and its name would be taken
        raise


async def ensure_key(services: Services, deployment: str) -> str:
    """The file here with a key that opens this deployment: made earlier, or `default`, where no key opens it yet.

    '' where only other machines have one.
    """
    if services.keyring is None:
        return ""
    known = (await listed(services)).keys
    opening = {key.sha256 for key in known if key.deployment in ("", deployment) and key.role is not Role.VIEWER}
    if not opening:
        return (await create_key(services, FIRST, role=Role.OPERATOR)).path
    files = services.keyring.saved(services.cluster.name)
    return next((path for path, secret in files if digest(secret.reveal()) in opening), "")


async def revoke(services: Services, name: str, deployment: str = "") -> tuple[Key, ...]:
    """Revokes the keys of that name and returns them; new requests get 401 at once. Raises UsageError if there is
    none."""
    before, after = await _change(services, lambda keys: without(keys, name, deployment)[0], f"key {name} revoked")
    return tuple(key for key in before.keys if key not in after.keys)


async def _change(services: Services, change: Callable[[Keys], Keys], why: str) -> tuple[Keys, Keys]:
    """The keys before and after. Two who write at the same time both succeed: the second one reads again."""
    head = services.cluster.supervisor_node
    for _ in range(_TRIES):
        before, known = await _read(services)
        after = change(before)
        done = await services.run(head, commands.swap_keys(_state(services), known, text_of(after), why))
        if done.ok:
            return before, after
        if done.exit_code != commands.CHANGED:
            raise CommandFailed(head, f"the keys cannot be written: {done.stderr.strip()}", "see the disk's space")
    raise CommandFailed(head, f"the keys were changed by somebody else {_TRIES} times meanwhile", "try again")


async def _read(services: Services) -> tuple[Keys, str]:
    """The keys, and the hash of their file ('' without one)."""
    head, state = services.cluster.supervisor_node, _state(services)
    text = (await services.run(head, script(_READ, state))).stdout
    try:
        return (parse(text), hashlib.sha256(text.encode()).hexdigest()) if text else (Keys(), "")
    except Unreadable as error:
        hint = "move it away; the gateway then knows no key, and `sparkwright keys add NAME` makes new ones"
        raise CommandFailed(head, f"{state}/door/keys.json cannot be read: {error}", hint) from error


def _state(services: Services) -> str:
    return services.state_on(services.cluster.supervisor_node)
