"""What should be serving: all that a supervisor needs to bring it back without the machine that `up` was called on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sparkwright.domain.cluster import Cluster
from sparkwright.domain.recipe import Recipe

VERSION = 1


@dataclass(frozen=True, slots=True)
class Desired:
    """cluster: as the head reaches it (itself `local`, the others by the supervisor's own ssh config).

    secrets are not here: they are in a 0600 file beside it. force: the reason given to override findings.
    memory_floor, stop_floor: bytes of MemAvailable below which new work is refused and the engine stopped (0: none).
    python: as at `up`, for ranks that name no other. time_scale: of the supervisor's waits, 1 but for drills.
    speeds: expected figures (`prefill_tokens_s`).
    """

    deployment: str
    cluster: Cluster
    recipe: Recipe
    force: str = ""
    by: str = ""
    at: float = 0.0
    allow_reboot: bool = False
    memory_floor: int = 0
    stop_floor: int = 0
    time_scale: float = 1.0
    python: str = "python3"
    speeds: Mapping[str, float] = field(default_factory=dict)
    version: int = VERSION


class Ask(StrEnum):
    """restart: a planned one. replace: leave the nodes to an `up`. return, leave: it failed; serve again, or do not."""

    RESTART = "restart"
    REPLACE = "replace"
    RETURN = "return"
    LEAVE = "leave"


@dataclass(frozen=True, slots=True)
class Request:
    """A person's command to a supervisor: `request.json` in its folder. nonce: of the process that asks.

    age: seconds since it was written or renewed, as its reader found it.
    """

    ask: Ask
    by: str
    why: str
    nonce: str
    age: float = 0.0
