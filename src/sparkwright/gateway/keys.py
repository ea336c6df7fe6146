"""The keys of the gateway: what one looks like, and the file on the head node that knows them by their hashes.

A key is 24 random bytes: no list of guesses finds it from its hash, so the hash needs neither salt nor slowness.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from sparkwright.domain.codec import Unreadable, from_json, to_json
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import UsageError
from sparkwright.domain.values import dataclass, replace

PREFIX = "sk-sw-"
BYTES = 24
FIRST = "default"
VERSION = 2
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


class Role(StrEnum):
    """client: the API. viewer: the console, read-only, and no API. operator: both, and the console's actions."""

    CLIENT = "client"
    VIEWER = "viewer"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Key:
    """deployment: the only one that it opens; '' for every one of this head node. created: seconds since the epoch.

    per_minute, at_once: requests; tokens_a_day: of prompts and answers, by UTC; 0 for no limit. end_loops,
    reasoning_tokens: of each answer (gateway/guard.py).
    """

    name: str
    sha256: str
    created: float = 0.0
    by: str = ""
    deployment: str = ""
    role: Role = Role.CLIENT
    per_minute: int = 0
    at_once: int = 0
    tokens_a_day: int = 0
    end_loops: bool = False
    reasoning_tokens: int = 0

    @property
    def opens(self) -> str:
        return self.deployment or "all deployments"

    @property
    def limits(self) -> str:
        """The limits as text, '' for none."""
        found = ((self.per_minute, "a minute"), (self.at_once, "at once"), (self.tokens_a_day, "tokens a day"))
        told = [f"{number:,} {what}" for number, what in found if number]
        told += [f"{self.reasoning_tokens:,} reasoning tokens an answer"] if self.reasoning_tokens else []
        return ", ".join([*told, *(["ends loops"] if self.end_loops else [])])


@dataclass(frozen=True, slots=True)
class Keys:
    """The file. Newest last; (name, deployment) is there once."""

    keys: tuple[Key, ...] = ()
    version: int = 1


def key_from(random: bytes) -> Secret:
    return Secret(PREFIX + random.hex())


def digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def parse(text: str | bytes) -> Keys:
    """Raises Unreadable, also for a version that this one does not know: it may restrict further who may enter.

    We write no empty file, not even for no keys: one that is empty has lost them.
    """
    if not text.strip():
        raise Unreadable("it is empty")
    keys = from_json(Keys, text)
    if not 1 <= keys.version <= VERSION:
        raise Unreadable(f"version {keys.version}; this sparkwright reads versions 1 to {VERSION}")
    return keys


def text_of(keys: Keys) -> str:
    """Version 2 only where a key opens less than a program that knows no roles and limits would let it."""
    restricts = any(key.role is Role.VIEWER or key.limits for key in keys.keys)
    return to_json(replace(keys, version=VERSION if restricts else 1), indent=1) + "\n"


def key_owner(keys: Iterable[Key], deployment: str, shown: Iterable[str], replica_of: str = "") -> Key | None:
    """The key among those that a client showed. Every known one is compared in full: timing reveals nothing.

    A key for the model-wide deployment opens each of its replicas.
    """
    found = None
    digests = [digest(one) for one in shown]
    for key in keys:
        fits = key.deployment in ("", deployment, replica_of)
        for given in digests:
            same = hmac.compare_digest(given.encode(), key.sha256.encode())
            found = key if same and fits else found
    return found


def shown_in(headers: Mapping[str, str]) -> tuple[str, ...]:
    """The keys in a request's headers (small letters): OpenAI's clients, Anthropic's, Azure's."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else ""
    return tuple(one for one in (bearer, headers.get("x-api-key", ""), headers.get("api-key", "")) if one)


def add_key(keys: Keys, key: Key) -> Keys:
    """Raises UsageError when the name is taken or is none."""
    if not _NAME.fullmatch(key.name):
        raise UsageError(f"key {key.name!r}: a name has small letters, digits, `.`, `_` and `-`, at most 63")
    if any((one.name, one.deployment) == (key.name, key.deployment) for one in keys.keys):
        hint = f"another name, or first `sparkwright keys revoke {key.name}`"
        raise UsageError(f"key {key.name} for {key.opens} is there already", hint)
    return replace(keys, keys=(*keys.keys, key))


def limited(keys: Keys, name: str, **limits: int | None) -> Keys:
    """The keys with other limits for all of one name; None keeps a limit. Raises UsageError for an unknown name."""
    if name not in (known := [one.name for one in keys.keys]):
        raise UsageError(f"no key {name}", f"keys: {', '.join(known) or 'none'}")
    new: dict[str, Any] = {limit: value for limit, value in limits.items() if value is not None}
    return replace(keys, keys=tuple(replace(one, **new) if one.name == name else one for one in keys.keys))


def without(keys: Keys, name: str, deployment: str = "") -> tuple[Keys, tuple[Key, ...]]:
    """The rest, and what was taken away: all of that name, or only the one for `deployment`. Raises UsageError."""
    gone = tuple(one for one in keys.keys if one.name == name and deployment in ("", one.deployment))
    if not gone:
        has = ", ".join(f"{one.name} ({one.opens})" for one in keys.keys) or "none"
        raise UsageError(f"no key {name}{' for ' + deployment if deployment else ''}", f"keys: {has}")
    return replace(keys, keys=tuple(one for one in keys.keys if one not in gone)), gone


ROUTE, FRONT = "door.json", "gateway.json"


@dataclass(frozen=True, slots=True)
class RouteSetting:
    """One deployment as the gateway on `port` (0: none) knows it. engine: `host:port`. models: names that it serves.
    limit: bytes of a body. key_env: name of the engine's own key in the supervisor's secrets, '' for an engine without
    one. routes: `METHOD /v1/path` that clients may call; nothing else reaches the engine. websockets: paths on which a
    client may change to one. metrics: port on loopback of its figures. patience: seconds that a request waits for a
    deployment started on demand, 0 for others. end_loops, reasoning_tokens, answer_tokens: of each answer
    (gateway/guard.py). context: tokens, 0 if not known. remember: bytes of prompts that are kept for the next start, 0
    for none, for remember_hours after their last use. replica_of: name of the
    model-wide deployment of which this one is a replica, '' for one that stands alone."""

    deployment: str
    engine: str
    limit: int
    port: int = 0
    metrics: int = 0
    key_env: str = ""
    models: tuple[str, ...] = ()
    routes: tuple[str, ...] = ()
    websockets: tuple[str, ...] = ()
    patience: float = 0.0
    end_loops: bool = False
    reasoning_tokens: int = 0
    answer_tokens: int = 0
    context: int = 0
    remember: int = 0
    remember_hours: float = 24.0
    replica_of: str = ""


@dataclass(frozen=True, slots=True)
class FrontSetting:
    """A head node's gateway on one port, whatever is behind it. keys: path of the head's keys file. metrics: port.

    open_to: how its Caddy listens and by which certificate; all deployments behind it share that. names: in it.
    """

    port: int
    keys: str
    metrics: int = 0
    open_to: str = ""
    names: tuple[str, ...] = ()
