"""The supervisor's memory of one deployment, its policy, and the effects that its machine orders."""

from enum import StrEnum

from sparkwright.domain.live import DeploymentState
from sparkwright.domain.values import dataclass, fields, replace

_LEAST_ANSWER = 5.0  # seconds for an answer on a busy machine


@dataclass(frozen=True, slots=True)
class Policy:
    """backoffs: waits before the second, third, ... launch; the first launch after a stable service waits for nothing.

    windows: (launches, seconds): so many within so long, and it gives up. stable: seconds; a launch that served for so
    long has held and does not count, and the count of attempts begins again. again: wait before a launch that found the
    lease taken, and between tries to stop ranks that cannot be verified gone (the first one after backoffs[0]);
    patience: so long, then it gives up. incident's own figures: detectors name what they use. allow_reboot: the user's
    word.
    """

    backoffs: tuple[float, ...] = (5.0, 30.0, 120.0, 600.0)
    windows: tuple[tuple[int, float], ...] = ((3, 1800.0), (6, 21600.0))
    stable: float = 300.0
    again: float = 30.0
    patience: float = 21600.0
    canary_every: float = 15.0
    canary_limit: float = 10.0
    sample_every: float = 5.0
    allow_reboot: bool = False

    def scaled(self, by: float) -> "Policy":
        """The same with every time multiplied: drills cannot wait for half an hour. An answer takes as long in a drill
        as elsewhere, so that its limit stays above a few seconds."""
        times = {f.name: getattr(self, f.name) * by for f in fields(self) if isinstance(getattr(self, f.name), float)}
        times["canary_limit"] = max(times["canary_limit"], min(self.canary_limit, _LEAST_ANSWER))
        backoffs = tuple(wait * by for wait in self.backoffs)
        return replace(self, backoffs=backoffs, windows=tuple((n, span * by) for n, span in self.windows), **times)


@dataclass(frozen=True, slots=True)
class Capture:
    """Save all evidence, run the diagnosis -> Captured.

    incident 0: open one, or continue the one that is open already (the supervisor was killed before it noted it).
    since: when clients began to get nothing.
    """

    incident: int
    kind: str
    what: str
    evidence: tuple[str, ...] = ()
    turn: int = 0
    since: float = 0.0


@dataclass(frozen=True, slots=True)
class StopRanks:
    """TERM, KILL, verify all ranks gone, then look whether the memory came back -> Stopped."""

    turn: int = 0


@dataclass(frozen=True, slots=True)
class Launch:
    """Old ranks gone, fabric inspected again, workers first -> Launched or LaunchFailed."""

    turn: int = 0


@dataclass(frozen=True, slots=True)
class WatchRanks:
    """Follow the start until a real token -> Ready or LaunchFailed."""

    turn: int = 0


@dataclass(frozen=True, slots=True)
class Reboot:
    """All nodes together; verified by their boot markers -> Rebooted or RebootFailed.

    before: (node, marker). A node that has another marker by now has been rebooted and is only waited for: the head's
    own reboot ends the supervisor, and the next one goes on. A node without a marker here -> RebootFailed.
    """

    before: tuple[tuple[str, str], ...] = ()
    turn: int = 0


@dataclass(frozen=True, slots=True)
class SwapRanks:
    """Leave the nodes to the `up` that replaces this deployment, until it ends -> Returned."""

    turn: int = 0


@dataclass(frozen=True, slots=True)
class Refuse:
    """The gateway answers 503. back_at: when it should be back (epoch seconds, 0: not known)."""

    why: str
    back_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Admit:
    """The gateway lets requests through."""


@dataclass(frozen=True, slots=True)
class Close:
    """The incident is over (0: the one that is open, if any; closed twice, it is over once).

    outcome: `serving again`, `given up`, `needs a reboot`, `needs a power cycle`, `taken over`.
    """

    incident: int
    outcome: str


@dataclass(frozen=True, slots=True)
class ServedAgain:
    """Clients are served after an incident that a person has taken over: its outage ends only now."""


@dataclass(frozen=True, slots=True)
class Record:
    """An outage that was over without a restart, for the history: from `since` until `at`."""

    kind: str
    what: str
    since: float
    at: float


@dataclass(frozen=True, slots=True)
class Announce:
    """Hooks and the log: `opened`, `closed`, `given-up`, `degraded`, `recovered`, `waiting`."""

    what: str
    text: str


Told = Refuse | Admit | Close | ServedAgain | Record | Announce
Effect = Capture | StopRanks | Launch | WatchRanks | Reboot | SwapRanks | Told


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
    """The recovery that a fault needs. recovery.py lists the faults that a relaunch cannot fix."""

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


@dataclass(frozen=True, slots=True)
class State:
    """reason: why it is in this phase. incident: number of the open one, 0 for none. fault, cause, evidence: what is
    wrong, by its detector and then by its diagnosis.

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
    step closed and announced; announced again if the supervisor is killed now. idle: nobody asks for it: it is being
    stopped, is stopped, or is started by a request. declined: when such a start was refused, 0 for never.
    halted: a person asked for the stop under way. handed: a person took over while clients got nothing, and they wait.
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
    halted: bool = False
    handed: bool = False
    lost: float = 0.0
    unannounced: float = 0.0
    owed: tuple[Close | Announce, ...] = ()
    idle: bool = False
    declined: float = 0.0
