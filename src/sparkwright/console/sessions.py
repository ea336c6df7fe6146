"""Sessions of the console: a signed cookie that names a key and has an id of its own.

It is worth as much as its key still is, until its time is up or somebody signs out.
"""

import hmac
import json
import os
import secrets
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from sparkwright.domain.command import Secret
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.values import dataclass
from sparkwright.gateway.keys import Key, Keys, Role, key_owner

_SECRET = "console.secret"
_LASTS = 7 * 24 * 3600
_NAMED = 16
_ENDED, _MOST_ENDED = "console.ended", 10_000


@dataclass(frozen=True, slots=True)
class Visitor:
    """token: what a form of this session must carry."""

    key: Key
    token: str

    @property
    def operates(self) -> bool:
        return self.key.role is Role.OPERATOR


class Sessions:
    """folder: private; the secret in it outlives this process. keys: as they are now, each for what it may see.

    name: of this gateway: browsers keep the cookies of all ports of a host together.
    """

    def __init__(self, folder: Path, name: str, keys: Callable[[], Keys], now: Callable[[], float]) -> None:
        self._secret = _secret(folder / _SECRET)
        self._ended_file = folder / _ENDED
        self._ended = _ended(self._ended_file)
        self._keys, self._now = keys, now
        self._shown: dict[str, Secret] = {}
        self.cookie = f"sparkwright-{name}"

    def begin(self, shown: str) -> tuple[str, str]:
        """The cookie's value, or '' and why there is none."""
        key = next((key for key in self._keys().keys if key_owner([key], key.deployment, [shown.strip()])), None)
        if key is None:
            return "", "This key is not known here or was revoked."
        if key.role is Role.CLIENT:
            hint = "`sparkwright keys add NAME --role viewer` makes one for this page."
            return "", f"Key {key.name} opens the API only; {hint}"
        self._shown[key.sha256] = Secret(shown.strip())
        named = f"{key.sha256[:_NAMED]}.{int(self._now()) + _LASTS}.{secrets.token_hex(8)}"
        return f"{named}.{self._signed('session', named)}", ""

    def visitor(self, value: str) -> Visitor | None:
        """None for what we did not sign, what is over or was ended, and a key that was revoked."""
        named, _, signature = value.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signed("session", named).encode()):
            return None
        name, until, number = named.split(".") if named.count(".") == 2 else ("", "", "")
        if not until.isdigit() or int(until) < self._now() or number in self._ended:
            return None
        known = (key for key in self._keys().keys if key.role is not Role.CLIENT)
        key = next((key for key in known if key.sha256[:_NAMED] == name), None)
        return Visitor(key, self._signed("form", value)) if key else None

    def end(self, value: str) -> None:
        """Sign out: the cookie opens nothing any more, also after a restart of this process."""
        if self.visitor(value) is None:
            return
        _, until, number, _ = value.split(".")
        self._ended = {one: end for one, end in self._ended.items() if end >= self._now()} | {number: int(until)}
        kept = dict(list(self._ended.items())[-_MOST_ENDED:])
        _replace(self._ended_file, json.dumps(kept).encode())

    def secret(self, visitor: Visitor) -> Secret | None:
        """The visitor's key itself, as long as this process lives: it is kept nowhere."""
        known = {key.sha256 for key in self._keys().keys}
        self._shown = {name: one for name, one in self._shown.items() if name in known}
        return self._shown.get(visitor.key.sha256)

    def _signed(self, what: str, text: str) -> str:
        return hmac.new(self._secret, f"{what}:{text}".encode(), sha256).hexdigest()


def _secret(path: Path) -> bytes:
    """Made once; a file that is too short is replaced."""
    if path.exists() and len(found := path.read_bytes()) >= 32:
        return found
    fresh = secrets.token_bytes(32)
    _replace(path, fresh)
    return fresh


def _replace(path: Path, content: bytes) -> None:
    new = path.with_name(f"{path.name}.new")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    new.replace(path)


def _ended(path: Path) -> dict[str, int]:
    """Ids of sessions that were ended, with the end of their time; {} where none can be read."""
    try:
        found = read_json(path.read_bytes())
    except (OSError, ValueError):
        return {}
    rows = found.items() if isinstance(found, dict) else ()
    return {str(name): until for name, until in rows if isinstance(until, int)}
