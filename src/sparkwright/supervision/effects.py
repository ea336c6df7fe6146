"""What the machine wants done. At most one of the first five is under way at any time; each ends in an event."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capture:
    """Open the incident (or go on with `incident`), save all evidence, run the diagnosis -> Captured."""

    incident: int
    kind: str
    what: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stop:
    """TERM, KILL, verify all ranks gone, then look whether the memory came back -> Stopped."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Old ranks gone, fabric looked at again, workers first -> Launched or LaunchFailed."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Follow the start until a real token -> Ready or LaunchFailed."""


@dataclass(frozen=True, slots=True)
class Reboot:
    """All nodes together; verified by their boot markers -> Rebooted or RebootFailed."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """The front door answers 503. back_at: when it should be back (epoch seconds, 0: not known)."""

    why: str
    back_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Admit:
    """The front door lets requests through."""


@dataclass(frozen=True, slots=True)
class Close:
    """The incident is over. outcome: `serving again`, `given up`, `needs a reboot`, `taken over`, ..."""

    incident: int
    outcome: str


@dataclass(frozen=True, slots=True)
class Announce:
    """Hooks and the log: `opened`, `closed`, `given-up`, `degraded`, `recovered`."""

    what: str
    text: str


Effect = Capture | Stop | Launch | Watch | Reboot | Refuse | Admit | Close | Announce
