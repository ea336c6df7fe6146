"""The key check's configuration of one deployment, written by `up` next to Caddy's own."""

from dataclasses import dataclass

FILE = "door.json"


@dataclass(frozen=True, slots=True)
class GatewaySetting:
    """keys: path of the head's keys file. limit: bytes of a body. key_env: name of the engine's own key in the

    supervisor's secrets, '' for an engine without one. metrics: port on loopback for the figures. routes: `METHOD
    /v1/path` that clients may call; nothing else reaches the engine.
    """

    deployment: str
    keys: str
    limit: int
    key_env: str = ""
    metrics: int = 0
    routes: tuple[str, ...] = ()
