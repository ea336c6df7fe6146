"""What the supervisor remembers of one deployment. Written to disk after every step, so that it can be killed anywhere.

All times are seconds since the epoch: they must mean the same after a restart of the supervisor or of its node.
"""

from dataclasses import dataclass
from enum import StrEnum

from sparkwright.domain.deployment import DeploymentState
from sparkwright.supervision.effects import Announce, Close


class Work(StrEnum):
    """The one thing that is being done about the deployment; its end comes back as an event."""

    NONE = ""
    CAPTURE = "capture"
    STOP = "stop"
    LAUNCH = "launch"
    WATCH = "watch"
    REBOOT = "reboot"
    SWAP = "swap"


class Recovery(StrEnum):
    """What a fault asks for. Field guide F4 says which faults a relaunch cannot mend."""

    NONE = "none"
    REFUSE = "refuse"
    RELAUNCH = "relaunch"
    STOP = "stop"
    REBOOT = "reboot"
    POWER_CYCLE = "power cycle"


STALLED = "stalled"
"""A trouble that hooks hear of only when it lasts."""

ALIVE = "alive"
"""A figure of the journal: when a supervisor has shown itself last, as it was at the start of this one."""

DISK_FULL = "disk-full"
"""A trouble that is part of the answer to why it does not serve, whatever else has ended it."""

RESTING = frozenset(
    {
        DeploymentState.READY,
        DeploymentState.DEGRADED,
        DeploymentState.STOPPED,
        DeploymentState.FAILED,
        DeploymentState.NEEDS_REBOOT,
        DeploymentState.NEEDS_POWER_CYCLE,
    }
)


@dataclass(frozen=True, slots=True)
class State:
    """reason: why it is in this phase. incident: number of the open one, 0 for none. fault, cause, evidence: what is
    wrong, as its detector and then its diagnosis said it.

    turn: works begun so far; the answer to another turn is late. recovery: what the fault under way asks for; what its
    diagnosis or the stop shows may raise it. gone: all ranks were verified gone, and nothing was launched since.
    attempt: launches since the deployment was last stable. launches: when, within the guard's windows. counted: the
    next launch is in `launches` already: it was cut off with the supervisor, or somebody else held the lease.
    due: when the back-off ends. unverified: since when ranks could not be verified gone. ready_at: since when it
    serves, 0 when it does not. refusing: the gateway answers 503. troubles, refusals: (kind, sentence) of what does
    not stop it from serving, and of what new work is refused for. boots: (node, boot marker) as last seen. rebooted:
    by us, once in this incident. down: when the service ended last. rebooters: nodes that a person has rebooted since.
    planned: a person asked for the launch under way; it does not count. lost: since when clients get nothing, for the
    fault under way. unannounced: since when a stall lasts that hooks have not heard of, 0 for none. owed: what the last
    step closed and announced; said again if the supervisor is killed now.
    """

    phase: DeploymentState
    since: float
    reason: str = ""
    work: Work = Work.NONE
    turn: int = 0
    fault: str = ""
    cause: str = ""
    evidence: tuple[str, ...] = ()
    recovery: Recovery = Recovery.NONE
    incident: int = 0
    gone: bool = False
    attempt: int = 0
    launches: tuple[float, ...] = ()
    counted: bool = False
    due: float = 0.0
    unverified: float = 0.0
    ready_at: float = 0.0
    refusing: bool = False
    troubles: tuple[tuple[str, str], ...] = ()
    refusals: tuple[tuple[str, str], ...] = ()
    boots: tuple[tuple[str, str], ...] = ()
    rebooted: bool = False
    down: float = 0.0
    rebooters: tuple[str, ...] = ()
    planned: bool = False
    lost: float = 0.0
    unannounced: float = 0.0
    owed: tuple[Close | Announce, ...] = ()
