"""Incidents of a deployment, as the head node remembers them. Times are seconds since the epoch, but for `Uptime`."""

from sparkwright.domain.units import duration
from sparkwright.domain.values import dataclass, replace

CHANGED = "changed"
CLOCK = "clock"
HANDED, UNWATCHED, WATCHED = "handed", "unwatched", "watched"
TAKEN_OVER = "taken over"


@dataclass(frozen=True, slots=True)
class Uptime:
    """A moment by a clock that nobody sets: seconds since that boot, sleep included. boot: id; node: '' if unknown."""

    boot: str
    seconds: float
    node: str = ""


@dataclass(frozen=True, slots=True)
class IncidentEvent:
    """kind: a stable word (`opened`, `captured`, `stopped`, `launched`, `ready`, ...); text: a sentence.

    CHANGED: what differs from when the deployment last served. CLOCK: the head's clock was set by `step` seconds just
    before `at`. UNWATCHED: its supervisor was asked to end, and WATCHED: one has begun again. HANDED: the `up` that
    took it over goes on, and the next supervisor knows when it serves.
    """

    at: float
    kind: str
    text: str = ""
    step: float = 0.0


@dataclass(frozen=True, slots=True)
class Incident:
    """number: unique on its head node, 0 before the store has given one. kind, what, evidence: of the fault.

    opened_at: when clients began to get nothing: the last sign of life before the fault, or the first request after it.
    cause, code, fix: of its diagnosis, '' and () without one. closed_at: 0 while it is open. serving_at: when a real
    token came again, 0 when none did. events: what was done and when. folder: where the evidence is, on the head.

    boot_node, boot, began_up: when clients began to get nothing, in seconds since that boot of the head; negative
    before it, '' if unknown. away_seconds: from then until a real token came, 0 if unknown. away_word: '' if the clock
    since boot measured it; after a reboot of the head `about`, by its calendar, or `at least`, since that reboot.
    """

    deployment: str
    kind: str
    what: str
    opened_at: float
    number: int = 0
    evidence: tuple[str, ...] = ()
    cause: str = ""
    code: str = ""
    fix: tuple[str, ...] = ()
    closed_at: float = 0.0
    outcome: str = ""
    serving_at: float = 0.0
    folder: str = ""
    simulated: bool = False
    events: tuple[IncidentEvent, ...] = ()
    boot_node: str = ""
    boot: str = ""
    began_up: float = 0.0
    away_seconds: float = 0.0
    away_word: str = ""

    def began(self, at: float, up: Uptime) -> "Incident":
        """The incident with its begin by the clock that nobody sets. at, up: the same moment, just now."""
        return replace(self, boot_node=up.node, boot=up.boot, began_up=up.seconds - (at - self.opened_at))

    def closed(self, at: float, outcome: str, serving_at: float, up: Uptime | None) -> "Incident":
        """The incident at its end. up: the same moment as `serving_at`."""
        there = replace(self, closed_at=at, outcome=outcome, serving_at=serving_at)
        if not (serving_at and up and self.boot):
            return there
        same_node, calendar = self.boot_node == up.node, serving_at - self.opened_at
        if same_node and self.boot == up.boot and self.began_up >= 0:
            return replace(there, away_seconds=up.seconds - self.began_up)
        if same_node and up.seconds > calendar:
            return replace(there, away_seconds=up.seconds, away_word="at least")
        return replace(there, away_seconds=max(calendar, 0.0), away_word="about")

    def served(self, at: float, up: Uptime | None) -> "Incident":
        """The incident with the end of its outage, where a person took it over and clients still waited. at, up: now,
        as it serves."""
        waits = self.closed_at and not self.serving_at and self.outcome == TAKEN_OVER
        return self.closed(at, self.outcome, at, up) if waits else self

    @property
    def is_open(self) -> bool:
        return not self.closed_at

    @property
    def unwatched_at(self) -> float:
        """Time at which its supervisor was asked to end and left it open; 0 if one watches, or if that is not known."""
        told = next((one for one in reversed(self.events) if one.kind in (UNWATCHED, WATCHED)), None)
        return told.at if self.is_open and told and told.kind == UNWATCHED else 0.0

    @property
    def outcome_text(self) -> str:
        """Its end for people, as `serving again`; of one that is open, if nothing watches it."""
        if not self.is_open:
            return self.outcome
        return "open, not watched" if self.unwatched_at else "open"

    @property
    def is_handed(self) -> bool:
        """True if an `up` took it over from a supervisor that has ended, and nobody has seen it serve since."""
        handed = any(event.kind == HANDED for event in self.events)
        return handed and not self.serving_at and self.outcome == TAKEN_OVER

    @property
    def changed(self) -> str:
        """The latest difference from the time it last served; '' if unknown."""
        return next((event.text for event in reversed(self.events) if event.kind == CHANGED), "")

    @property
    def away(self) -> float | None:
        """Seconds from the first request that got nothing until it served again, None when it did not or a calendar
        that was set back is all that is known."""
        calendar = self.serving_at - self.opened_at
        return self.away_seconds or (calendar if self.serving_at and calendar >= 0 else None)

    @property
    def away_text(self) -> str:
        """`away` for people: `16 s`, `about 3 min`; '' when it did not serve again."""
        return "" if self.away is None else f"{self.away_word} {duration(self.away)}".lstrip()


@dataclass(frozen=True, slots=True)
class DeploymentRecord:
    """A desired state that was armed. nodes: head first."""

    deployment: str
    at: float
    recipe: str
    recipe_hash: str = ""
    engine: str = ""
    nodes: tuple[str, ...] = ()
    by: str = ""
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class News:
    """The event passed to hooks. what: `opened`, `closed`, `given-up`, `degraded` or `recovered`; text: a sentence.

    state: the deployment's. incident: its number, 0 for none. fault: what the incident was; away: seconds without
    service, None where that is not known; away_word: of Incident. No secrets.
    """

    what: str
    text: str
    deployment: str
    at: float
    state: str = ""
    incident: int = 0
    folder: str = ""
    simulated: bool = False
    fault: str = ""
    away: float | None = None
    away_word: str = ""
