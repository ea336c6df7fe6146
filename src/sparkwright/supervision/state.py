"""What the supervisor remembers of one deployment. Written to disk after every step, so that it can be killed anywhere.

All times are seconds since the epoch: they must mean the same after a restart of the supervisor or of its node.
"""

from dataclasses import dataclass
from enum import StrEnum

from sparkwright.domain.deployment import DeploymentState


class Work(StrEnum):
    """The one thing that is being done about the deployment; its end comes back as an event."""

    NONE = ""
    CAPTURE = "capture"
    STOP = "stop"
    LAUNCH = "launch"
    WATCH = "watch"
    REBOOT = "reboot"


class Recovery(StrEnum):
    """What a fault asks for. Field guide F4 says which faults a relaunch cannot mend."""

    NONE = "none"
    REFUSE = "refuse"
    RELAUNCH = "relaunch"
    STOP = "stop"
    REBOOT = "reboot"
    POWER_CYCLE = "power cycle"


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
    """incident: number of the open one, 0 for none. launches: when the supervisor launched, within the guard's windows.

    attempt: launches since the deployment was last stable. due: when the back-off ends. ready_at: since when it serves
    without a fault, 0 when it does not. troubles: (kind, sentence) of what is wrong and does not stop it from serving.
    recovery: what the fault under way asks for; what the incident's diagnosis said may raise it. relaunch_counted: the
    launch under way is in `launches` already, so that going on after a restart is no second one.
    boots: (node, boot marker) before a reboot that was asked for.
    """

    phase: DeploymentState
    since: float
    reason: str = ""
    work: Work = Work.NONE
    recovery: Recovery = Recovery.NONE
    incident: int = 0
    attempt: int = 0
    launches: tuple[float, ...] = ()
    due: float = 0.0
    ready_at: float = 0.0
    refusing: bool = False
    troubles: tuple[tuple[str, str], ...] = ()
    boots: tuple[tuple[str, str], ...] = ()
