"""A supervised deployment as its supervisor saw it last: for `status`, the exporter and the gateway."""

from dataclasses import dataclass

from sparkwright.domain.states import DeploymentState


@dataclass(frozen=True, slots=True)
class LiveNode:
    """Bytes; rates per second; None where it could not be read. reached: whether the node answered last time; at: when,
    0 while it has not been looked at yet.

    unaccounted: pages that no counter explains. per_hour: robust slope of MemAvailable (negative: shrinking).
    time_left: seconds until the floor at that slope, None when it does not shrink. pressure: PSI memory full avg10, %.
    blind: why its kernel log cannot be read, '' where it can.
    """

    node: str
    at: float
    reached: bool
    total: int | None = None
    available: int | None = None
    free: int | None = None
    swap_used: int | None = None
    swap_rate: float | None = None
    unaccounted: int | None = None
    pressure: float | None = None
    per_hour: float | None = None
    time_left: float | None = None
    gpu_busy: float | None = None
    gpu_temperature: float | None = None
    gpu_power: float | None = None
    gpu_clock: float | None = None
    blind: str = ""


@dataclass(frozen=True, slots=True)
class LiveRank:
    rank: int
    node: str
    running: bool
    started: str = ""


@dataclass(frozen=True, slots=True)
class LiveEngine:
    """Counters as the engine tells them (totals since its start); None where it has no such number.

    finished: requests that were answered; iterations: engine steps that gave output.
    """

    at: float
    running: float | None = None
    waiting: float | None = None
    kv_usage: float | None = None
    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    prefix_queries: float | None = None
    prefix_hits: float | None = None
    draft_tokens: float | None = None
    accepted_tokens: float | None = None
    preemptions: float | None = None
    drafts: float | None = None
    finished: float | None = None
    iterations: float | None = None


@dataclass(frozen=True, slots=True)
class LiveCanary:
    """The last real token that the supervisor asked for. seconds: until it was there; None: it did not come.

    refused: something else came instead at once (HTTP 500, a refused connection): not even a busy engine says that.
    """

    at: float
    seconds: float | None
    said: str = ""
    refused: bool = False


@dataclass(frozen=True, slots=True)
class LiveRestart:
    """Of a program beside the engine (gateway, key check, supervisor): how often since `up`, and when last."""

    who: str
    count: int
    last: float


@dataclass(frozen=True, slots=True)
class Live:
    """refusing: new requests get 503 at the gateway, for `why`; back_at: epoch seconds, 0 when nobody knows.

    request: nonce of the last one that is obeyed.

    incident: number of the open one, 0 for none. relaunches: since `up`. pid: the supervisor's.
    awaited: what it waits for, '' for nothing; due: when a deliberate wait ends, 0 for none; usual: seconds that a
    start takes, 0 where that is not known.
    quiet: what requests that get nothing for some seconds show, while a step of a prompt may explain it; '' else.
    """

    at: float
    deployment: str
    phase: DeploymentState
    since: float
    reason: str = ""
    refusing: bool = False
    why: str = ""
    back_at: float = 0.0
    incident: int = 0
    last_incident: int = 0
    incidents: int = 0
    relaunches: int = 0
    troubles: tuple[tuple[str, str], ...] = ()
    ranks: tuple[LiveRank, ...] = ()
    nodes: tuple[LiveNode, ...] = ()
    engine: LiveEngine | None = None
    canary: LiveCanary | None = None
    engine_address: str = ""
    simulated: bool = False
    pid: int = 0
    quiet: str = ""
    awaited: str = ""
    due: float = 0.0
    usual: float = 0.0
    request: str = ""
    restarts: tuple[LiveRestart, ...] = ()
