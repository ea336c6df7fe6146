"""Incidents of a deployment, as the head node remembers them. All times are seconds since the epoch."""

from sparkwright.domain.values import dataclass

CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class IncidentEvent:
    """kind: a stable word (`opened`, `captured`, `stopped`, `launched`, `ready`, ...); text: a sentence.

    CHANGED: what differs from when the deployment last served.
    """

    at: float
    kind: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Incident:
    """number: unique on its head node, 0 before the store has given one. kind, what, evidence: of the fault.

    opened_at: when clients began to get nothing: the last sign of life before the fault, or the first request after it.
    cause, code, fix: of its diagnosis, '' and () without one. closed_at: 0 while it is open. serving_at: when a real
    token came again, 0 when none did. events: what was done and when. folder: where the evidence is, on the head.
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

    @property
    def is_open(self) -> bool:
        return not self.closed_at

    @property
    def changed(self) -> str:
        """The latest difference from the time it last served; '' if unknown."""
        return next((event.text for event in reversed(self.events) if event.kind == CHANGED), "")

    @property
    def away(self) -> float | None:
        """Seconds from the first request that got nothing until it served again, None when it did not."""
        return self.serving_at - self.opened_at if self.serving_at else None


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
    service, None where that is not known. No secrets.
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
