"""A deployment that a test leads from phase to phase."""

from dataclasses import replace

from sparkwright.domain.live import DeploymentState
from sparkwright.supervisor.core.events import Answer, Captured, Fault, Launched, LaunchFailed, Resumed, Stopped
from sparkwright.supervisor.core.machine import first_state, step
from sparkwright.supervisor.core.state import Policy, Recovery, State

POLICY = Policy()
RESTING = frozenset(
    {
        DeploymentState.READY,
        DeploymentState.DEGRADED,
        DeploymentState.STOPPED,
        DeploymentState.ON_DEMAND,
        DeploymentState.FAILED,
        DeploymentState.NEEDS_REBOOT,
        DeploymentState.NEEDS_POWER_CYCLE,
        DeploymentState.HALTED,
    }
)
T0 = 1_000_000.0
BOOTS = (("spark-1", "a"), ("spark-2", "b"))
NEW_BOOTS = (("spark-1", "c"), ("spark-2", "d"))


class DeploymentLife:
    """A deployment from its first state on; answers carry the turn of the work that is under way."""

    def __init__(self, policy: Policy = POLICY, state: State | None = None) -> None:
        self.policy, self.state = policy, state or first_state(T0)

    def handle(self, event):
        """The effects; an answer belongs to the work that is under way."""
        if isinstance(event, Answer):
            event = replace(event, turn=self.state.turn)
        self.state, effects = step(self.state, event, self.policy)
        return effects

    def at(self):
        return self.state.phase, self.state.work

    def broken(self, at: float = T0 + 700, recovery: Recovery = Recovery.RELAUNCH):
        return self.handle(Fault(at, "rank-exited", "rank 1 ended with 137", recovery, ("exit 137",)))

    def stopped(self, at: float = T0 + 703, **said):
        """Broken, captured as incident 1, and stopped."""
        self.broken()
        self.handle(Captured(T0 + 701, 1))
        return self.handle(Stopped(at, boots=BOOTS, **said))

    def loading(self) -> None:
        self.stopped()
        self.handle(Launched(T0 + 710))

    def failed_launch(self, at: float):
        """The launch that is under way fails; what comes of it once its ranks are stopped."""
        self.handle(LaunchFailed(at, "rank 0 ended with 1"))
        self.handle(Captured(at + 1, 1))
        return self.handle(Stopped(at + 2))


def resumed(at: float, running=(), ended=(), unseen=(), boots=BOOTS) -> Resumed:
    return Resumed(at, running, ended, unseen, boots)


def effect_kinds(effects) -> list[type]:
    return [type(effect) for effect in effects]
