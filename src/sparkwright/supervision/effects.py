"""What the machine wants done. At most one of the first six is under way at any time; each ends in an event.

turn: number of the work; the event that it ends in carries the same. The loop cancels a work when another begins.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capture:
    """Save all evidence, run the diagnosis -> Captured.

    incident 0: open one, or go on with the one that is open already (the supervisor was killed before it noted it).
    since: when clients began to get nothing.
    """

    incident: int
    kind: str
    what: str
    evidence: tuple[str, ...] = ()
    turn: int = 0
    since: float = 0.0


@dataclass(frozen=True, slots=True)
class Stop:
    """TERM, KILL, verify all ranks gone, then look whether the memory came back -> Stopped."""

    turn: int = 0


@dataclass(frozen=True, slots=True)
class Launch:
    """Old ranks gone, fabric looked at again, workers first -> Launched or LaunchFailed."""

    turn: int = 0


@dataclass(frozen=True, slots=True)
class Watch:
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
class Swap:
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
    """The incident is over (0: the one that is open, if any; said twice, it is over once).

    outcome: `serving again`, `given up`, `needs a reboot`, `needs a power cycle`, `taken over`.
    """

    incident: int
    outcome: str


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


Effect = Capture | Stop | Launch | Watch | Reboot | Swap | Refuse | Admit | Close | Record | Announce
