"""Who looks: a session is a cookie that names a key and is signed; it is worth as much as its key still is."""

import hmac
import os
import secrets
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from sparkwright.domain.command import Secret
from sparkwright.domain.values import dataclass
from sparkwright.gateway.keys import Key, Keys, Role, owner

_SECRET = "console.secret"
_LASTS = 7 * 24 * 3600
_NAMED = 16


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
        self._keys, self._now = keys, now
        self._shown: dict[str, Secret] = {}
        self.cookie = f"sparkwright-{name}"

    def begin(self, shown: str) -> tuple[str, str]:
        """The cookie's value, or '' and why there is none."""
        key = next((key for key in self._keys().keys if owner([key], key.deployment, [shown.strip()])), None)
        if key is None:
            return "", "This key is not known here or was revoked."
        if key.role is Role.CLIENT:
            hint = "`sparkwright keys add NAME --role viewer` makes one for this page."
            return "", f"Key {key.name} opens the API only; {hint}"
        self._shown[key.sha256] = Secret(shown.strip())
        named = f"{key.sha256[:_NAMED]}.{int(self._now()) + _LASTS}"
        return f"{named}.{self._signed('session', named)}", ""

    def visitor(self, value: str) -> Visitor | None:
        """None for what we did not sign, what is over, and a key that was revoked."""
        named, _, signature = value.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._signed("session", named).encode()):
            return None
        name, _, until = named.partition(".")
        if not until.isdigit() or int(until) < self._now():
            return None
        known = (key for key in self._keys().keys if key.role is not Role.CLIENT)
        key = next((key for key in known if key.sha256[:_NAMED] == name), None)
        return Visitor(key, self._signed("form", value)) if key else None

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
    fresh, new = secrets.token_bytes(32), path.with_suffix(".new")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(fresh)
    new.replace(path)
    return fresh
