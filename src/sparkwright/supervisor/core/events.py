"""The events of a deployment, as the loop reports them to the machine. `at`: seconds since the epoch.

turn: of the work that ended so. The answer to another turn is late or comes twice, and changes nothing.
"""

from sparkwright.domain.values import dataclass
from sparkwright.supervisor.core.state import Recovery


@dataclass(frozen=True, slots=True)
class Tick:
    at: float


@dataclass(frozen=True, slots=True)
class Resumed:
    """The supervisor has begun, or begun again; what the nodes report of the ranks now.

    running, ended: rank numbers of the desired start. unseen: ranks on nodes that could not be asked.
    boots: markers, the head's first. alive: when the supervisor before this one lived last, 0 if unknown.
    """

    at: float
    running: tuple[int, ...]
    ended: tuple[int, ...]
    unseen: tuple[int, ...]
    boots: tuple[tuple[str, str], ...] = ()
    alive: float = 0.0


@dataclass(frozen=True, slots=True)
class Fault:
    """A detector's verdict. kind: stable word (`rank-exited`, `frozen`, `spin`, `leak`, `garbage`, ...).

    what: a sentence with the figures. evidence: the lines or figures that prove it. A recovery of NONE is a trouble
    that is shown and does not stop anything. since: when clients began to get nothing, 0 where that is `at`.
    """

    at: float
    kind: str
    what: str
    recovery: Recovery
    evidence: tuple[str, ...] = ()
    since: float = 0.0


@dataclass(frozen=True, slots=True)
class Cleared:
    """A trouble, or what new work was refused for, is over. since, what: of a stall, for the history."""

    at: float
    kind: str
    since: float = 0.0
    what: str = ""


@dataclass(frozen=True, slots=True)
class Captured:
    """The evidence is saved as incident `incident`. recovery: what the diagnosis asks for, NONE without an answer."""

    at: float
    incident: int
    recovery: Recovery = Recovery.NONE
    cause: str = ""
    turn: int = 0


@dataclass(frozen=True, slots=True)
class Stopped:
    """All ranks were stopped. left: what could not be verified gone, also because its node cannot be asked.

    retained: nodes whose memory did not come back. boots: (node, boot marker) of the nodes that answered.

    recovery: what rules make of that (REBOOT, POWER_CYCLE), NONE when a relaunch may be tried.
    """

    at: float
    left: tuple[str, ...] = ()
    retained: tuple[str, ...] = ()
    recovery: Recovery = Recovery.NONE
    why: str = ""
    boots: tuple[tuple[str, str], ...] = ()
    turn: int = 0


@dataclass(frozen=True, slots=True)
class Launched:
    """All ranks have been started. boots: as of Stopped."""

    at: float
    boots: tuple[tuple[str, str], ...] = ()
    turn: int = 0


@dataclass(frozen=True, slots=True)
class Ready:
    """A real token has come."""

    at: float
    turn: int = 0


@dataclass(frozen=True, slots=True)
class LaunchFailed:
    """The start ended without a token; its ranks are stopped and its logs kept. busy: somebody else holds the lease.

    refused: by the plan, before anything was started. unseen: a node could not be asked; nothing was started either.
    """

    at: float
    why: str
    recovery: Recovery = Recovery.RELAUNCH
    busy: bool = False
    refused: bool = False
    unseen: bool = False
    turn: int = 0


@dataclass(frozen=True, slots=True)
class Rebooted:
    """All nodes are back with new boot markers, and what they need is up again."""

    at: float
    turn: int = 0


@dataclass(frozen=True, slots=True)
class RebootFailed:
    at: float
    why: str
    turn: int = 0


@dataclass(frozen=True, slots=True)
class Disarmed:
    """A person has taken over: `down`, or an `up` that starts something else."""

    at: float


@dataclass(frozen=True, slots=True)
class Restart:
    """A person asks for a restart. why: who; request: its nonce."""

    at: float
    why: str = "restarted"
    request: str = ""


@dataclass(frozen=True, slots=True)
class Idle:
    """Served on demand, and nobody has asked for long enough."""

    at: float
    why: str = "stopped without a request"


@dataclass(frozen=True, slots=True)
class Demand:
    """Requests wait at the gateway for it to be there."""

    at: float


@dataclass(frozen=True, slots=True)
class Halt:
    """A person wants it stopped until a restart. why, request: as of Restart."""

    at: float
    why: str = "stopped"
    request: str = ""


@dataclass(frozen=True, slots=True)
class Replaced:
    """An `up` takes the nodes to start something else on them; it renews its request meanwhile."""

    at: float
    why: str = "being replaced"


@dataclass(frozen=True, slots=True)
class Returned:
    """The replacement has ended. again: start what served before; else a person has to act. halted: another deployment
    serves in its place, and it rests until a restart."""

    at: float
    why: str = "not replaced"
    again: bool = True
    halted: bool = False
    turn: int = 0


Answer = Captured | Stopped | Launched | Ready | LaunchFailed | Rebooted | RebootFailed | Returned
Event = Tick | Resumed | Fault | Cleared | Disarmed | Restart | Halt | Idle | Demand | Replaced | Answer
