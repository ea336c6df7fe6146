"""What a node tells of the supervisor of a deployment."""

from dataclasses import dataclass

from sparkwright.domain.live import Live

# live.json is written every 2 s, and at once when the state changes.
_STALE = 15.0


@dataclass(frozen=True, slots=True)
class Supervised:
    """node: where the supervisor is. live: what it wrote last, None when that cannot be read. now: the node's clock.

    running: whether its process is there. unit: the systemd unit that brings it back, '' for a detached process.
    again: it is being started again. by: who called `up`. endpoint: the gateway's, '' without one.
    """

    deployment: str
    node: str
    now: float
    running: bool
    live: Live | None = None
    unit: str = ""
    by: str = ""
    endpoint: str = ""
    again: bool = False

    @property
    def age(self) -> float | None:
        """Seconds since it last told anything."""
        return max(0.0, self.now - self.live.at) if self.live else None

    @property
    def current(self) -> Live | None:
        """What it says, if that is the truth now: a supervisor that ended or hangs says nothing."""
        return self.live if self.running and self.age is not None and self.age < _STALE else None

    @property
    def trouble(self) -> str:
        """A sentence about what is wrong with the supervisor itself, '' when nothing is."""
        if self.current:
            return ""
        last = f"; it last said {self.live.phase}, {self.age:.0f} s ago" if self.live else ""
        how = "does not answer" if self.running else "is not running"
        next_ = "it is being started again" if self.again else "nothing would bring it back"
        return f"its supervisor on {self.node} {how}{last}: {next_}"
