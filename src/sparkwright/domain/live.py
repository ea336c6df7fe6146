"""A supervised deployment: its desired state, its live state for `status`, the exporter and the gateway."""

import re
from collections.abc import Mapping
from enum import StrEnum

from sparkwright.domain.cluster import Cluster
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.replica import ReplicaPlace
from sparkwright.domain.units import DRAIN_SECONDS, duration, gib, percent
from sparkwright.domain.values import dataclass, field


class DeploymentState(StrEnum):
    """RUNNING: the ranks run, and nobody has asked whether it serves; never a supervisor's state."""

    PLANNED = "planned"
    STAGING = "staging"
    STARTING = "starting"
    LOADING = "loading"
    RUNNING = "running"
    READY = "ready"
    DEGRADED = "degraded"
    DRAINING = "draining"
    STOPPED = "stopped"
    ON_DEMAND = "on_demand"
    HALTED = "halted"
    FAILED = "failed"
    BACKING_OFF = "backing_off"
    NEEDS_REBOOT = "needs_reboot"
    NEEDS_POWER_CYCLE = "needs_power_cycle"


SERVING = frozenset({DeploymentState.READY, DeploymentState.DEGRADED})
OVER = frozenset(
    {
        DeploymentState.FAILED,
        DeploymentState.NEEDS_REBOOT,
        DeploymentState.NEEDS_POWER_CYCLE,
        DeploymentState.STOPPED,
        DeploymentState.HALTED,
    }
)


READ_ONLY = "read-only file system"
FOLDER = "state folder"
OF_OTHERS = f"{FOLDER} owned by"


def unwritable_text(word: str, owner: str = "") -> str:
    """The reason why our state folder cannot be written, from what a node told; '' for nothing that we know."""
    others = f"{OF_OTHERS} {owner if re.fullmatch('[A-Za-z0-9._-]{1,32}', owner) else 'another user'}"
    return {"read-only": READ_ONLY, "mode": f"{FOLDER} without permission to write", "owned": others}.get(word, "")


def unwritable_cure(reason: str, node: str, state: str) -> str:
    """The command that shows why, or mends it. state: the folder."""
    if reason == READ_ONLY:
        return f"`dmesg` on {node} shows why the kernel remounted it (often a failing disk)"
    if reason.startswith(OF_OTHERS):
        return f'on {node}: `sudo chown -R "$USER": {state}`'
    return f"on {node}: `chmod -R u+rwX {state}`"


def phase_text(phase: str) -> str:
    """The phase in words for a person."""
    return "on demand, stopped" if phase == DeploymentState.ON_DEMAND else phase.replace("_", " ")


@dataclass(frozen=True, slots=True)
class GatewayUse:
    """The load of one deployment, as the gateway's process counts it. under_way: requests that the engine has; waiting:
    requests held until it is ready; quiet: seconds since the last one ended. heard: seconds since the last byte of an
    answer from the engine, None before the first. trouble: what fails in that process, '' for nothing."""

    under_way: int = 0
    waiting: int = 0
    quiet: float = 0.0
    trouble: str = ""
    heard: float | None = None


@dataclass(frozen=True, slots=True)
class LiveNode:
    """Bytes; rates per second; None where it could not be read. reached: whether the node answered last time; at: when,
    0 while it has not been sampled yet.

    unaccounted: pages that no counter explains. per_hour: robust slope of MemAvailable (negative: shrinking).
    time_left: seconds until the floor at that slope, None when it does not shrink. pressure: PSI memory full avg10, %.
    blind: why its kernel log cannot be read, '' where it can. floor: bytes of MemAvailable below which new work is
    refused, 0 while it is not known. claimed: what the engine's ranks there printed that they need, 0 if they did not.
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
    floor: int = 0
    claimed: int = 0


@dataclass(frozen=True, slots=True)
class LiveRank:
    """phase, text, done of total in unit: how far its start is, as its log shows it; '' and None where it is not known
    or over."""

    rank: int
    node: str
    running: bool
    started: str = ""
    phase: str = ""
    text: str = ""
    done: float | None = None
    total: float | None = None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class LiveEngine:
    """Counters as the engine reports them (totals since its start); None where it has no such number.

    finished: requests that were answered; iterations: engine steps that gave output. deferred: those of `waiting` that
    wait for something else than room. repeating: answers that the engine ended since they repeated themselves, a part
    of `finished`. refused: requests over the engine's own limit of waiting ones.
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
    deferred: float | None = None
    repeating: float | None = None
    refused: float | None = None


@dataclass(frozen=True, slots=True)
class LiveCanary:
    """The last real token that the supervisor asked for. seconds: until it was there; None: it did not come.

    refused: something else came instead at once (HTTP 500, a refused connection): not even a busy engine answers that.
    """

    at: float
    seconds: float | None
    said: str = ""
    refused: bool = False


@dataclass(frozen=True, slots=True)
class LiveRestart:
    """Restarts of a program next to the engine (gateway, key check, supervisor): how often since `up`, and the last
    time."""

    who: str
    count: int
    last: float


@dataclass(frozen=True, slots=True)
class RequestAnswer:
    """The supervisor's answer to a person's request. refused: why it is not done, '' for one that was accepted."""

    request: str
    refused: str = ""
    cure: str = ""


@dataclass(frozen=True, slots=True)
class LivePrefixes:
    """Kept prompts sent to the engine again after its last start. at: when it ended, 0 while it goes on. sent, refused:
    of `kept` so far. tokens: of those sent, as the engine counted. seconds: so far. why: the reason for an early end.
    """

    kept: int
    sent: int = 0
    refused: int = 0
    tokens: int = 0
    seconds: float = 0.0
    at: float = 0.0
    why: str = ""

    @property
    def text(self) -> str:
        """`12 prefixes, 48,000 tokens re-sent in 20 s`."""
        what = f"{self.sent} {'prefix' if self.sent == 1 else 'prefixes'}"
        said = f"{what}, {self.tokens:,} tokens re-sent in {duration(self.seconds)}"
        said += f"; {self.refused} could not be sent" if self.refused else ""
        left = self.kept - self.sent - self.refused
        if left and not self.at:
            return f"{said}; {left} to go"
        return f"{said}; {left} left out: {self.why}" if left else said


@dataclass(frozen=True, slots=True)
class LiveDiskCache:
    """The engine's KV cache on one node's disk, in bytes. free: on that disk."""

    node: str
    used: int
    size: int
    free: int


@dataclass(frozen=True, slots=True)
class LiveCacheTier:
    """A tier of the engine's KV cache beside the GPU's, by the engine's own figures; None for what it does not tell.

    tier: `host` or `disk`. size: bytes that the recipe gives it on each node, 0 if the recipe does not name it. used:
    bytes in it, as the engine counts them; part: how full it is, 0 to 1. queried: prompt tokens that were looked up in
    all tiers; hits: those found in this one. written, read: bytes moved since the engine's start. restored: tokens
    that came back from files after it, of an engine whose slots the supervisor keeps.
    """

    tier: str
    size: int = 0
    used: float | None = None
    part: float | None = None
    queried: float | None = None
    hits: float | None = None
    written: float | None = None
    read: float | None = None
    restored: float | None = None

    @property
    def text(self) -> str:
        """`62 % of 8.0 GiB a node in use; 1,200 of 4,000 prompt tokens found there; 3.0 GiB written, 1.0 GiB read`."""
        of = f"of {queried:,.0f} " if (queried := self.queried) else ""
        found = "hits unknown" if self.hits is None else f"{self.hits:,.0f} {of}prompt tokens found there"
        moves = ((self.written, "written"), (self.read, "read"))
        moved = ", ".join(f"{gib(value)} {what}" for value, what in moves if value is not None)
        back = "" if self.restored is None else f"{self.restored:,.0f} tokens restored after the start"
        return "; ".join(filter(None, (self._fill, found, moved, back)))

    @property
    def _fill(self) -> str:
        size = f"{gib(self.size)} a node" if self.size else ""
        if self.part is not None:
            return f"{percent(self.part)} of {size or 'it'} in use"
        if self.used is not None:
            return f"{gib(self.used)} in use{f', {size}' if size else ''}"
        return f"{size}, use unknown" if size else "use unknown"


@dataclass(frozen=True, slots=True)
class Live:
    """refusing: new requests get 503 at the gateway, for `why`; back_at: epoch seconds, 0 when nobody knows.

    request: nonce of the last one that was accepted. incident: number of the open one, 0 for none. relaunches: since
    `up`. pid: the supervisor's.
    awaited: what it waits for, '' for nothing; due: when a deliberate wait ends, 0 for none; usual: seconds that a
    start takes, 0 where that is not known.
    quiet: what requests that get nothing for some seconds show, while a step of a prompt may explain it; '' else.
    declined: when a start on demand was refused last, 0 for never since it served.
    answers: to the last requests. unverified: since when its ranks could not be verified gone, 0 if they are. up_since:
    when its ranks began to serve, whatever stalls came since; 0 if it does not serve. prefixes: kept prompts that were
    sent again, None where none are kept or it has not begun. cache_tiers: those that the recipe names or the engine
    uses. left: when the supervisor was asked to end and did, 0 while it works.
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
    declined: float = 0.0
    answers: tuple[RequestAnswer, ...] = ()
    unverified: float = 0.0
    up_since: float = 0.0
    prefixes: LivePrefixes | None = None
    disk_cache: tuple[LiveDiskCache, ...] = ()
    cache_tiers: tuple[LiveCacheTier, ...] = ()
    left: float = 0.0

    def answer_to(self, request: str) -> RequestAnswer | None:
        """None for a request that the supervisor has not seen, or has forgotten."""
        found = next((one for one in self.answers if one.request == request), None)
        return found or (RequestAnswer(request) if request and request == self.request else None)


WATCHDOG = 30.0
"""Seconds without a sign of life after which systemd ends a program of ours and starts it again."""
# live.json is written every 2 s, and at once when the state changes.
STALE = 15.0


@dataclass(frozen=True, slots=True)
class Supervised:
    """node: where the supervisor is. live: what it wrote last, None when that cannot be read. now: the node's clock.

    running: whether its process is there. unit: the systemd unit that restarts it, '' for a detached process.
    again: it is being started again. by: who called `up`. endpoint: the gateway's, '' without one. users_unit: the unit
    is one of the user's own systemd. unwritable: why its folder cannot be written, '' if it can. program: digest
    of ours that it runs, '' where that is not known. folder: the state folder there. replica_of: the model of which it
    is a replica, '' for a deployment that stands alone. second: URL of the standby's gateway, '' without one. fenced:
    why the head's gateway does not serve at the moment, '' if it does. taken: by the standby, in place of the head's.
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
    users_unit: bool = False
    unwritable: str = ""
    program: str = ""
    folder: str = ""
    replica_of: str = ""
    second: str = ""
    fenced: str = ""
    taken: bool = False

    @property
    def age(self) -> float | None:
        """Seconds since its last report."""
        return max(0.0, self.now - self.live.at) if self.live else None

    @property
    def current(self) -> Live | None:
        """Its report, if that is current: a supervisor that ended or hangs has none."""
        return self.live if self.running and self.age is not None and self.age < STALE else None

    @property
    def lasts(self) -> str:
        """Time in its state, and the time that it is up if that is longer: a stall of a second is no new start."""
        live = self.current
        if live is None:
            return ""
        text = f" for {duration(max(0.0, self.now - live.since))}"
        if live.phase in SERVING and live.up_since and live.since - live.up_since >= 1.0:
            text += f", up for {duration(self.now - live.up_since)}"
        return text

    @property
    def trouble(self) -> str:
        """A sentence about what is wrong with the supervisor itself, '' when nothing is."""
        if self.current:
            return ""
        last = f"; it last reported {phase_text(self.live.phase)}, {self.age:.0f} s ago" if self.live else ""
        if self.live and self.live.left and not self.running:
            last = f"; it was asked to end {self.age:.0f} s ago, when it reported {phase_text(self.live.phase)}"
        if self.unwritable:
            cure = unwritable_cure(self.unwritable, self.node, self.folder)
            said = f"{self.unwritable} on {self.node}: its supervisor cannot write its report{last}. It goes on once "
            return f"{said}the state folder can be written: {cure}"
        how = "does not answer" if self.running else "is not running"
        return f"its supervisor on {self.node} {how}{last}: {self._next}"

    @property
    def _next(self) -> str:
        """The sentence that says what restarts the supervisor."""
        up = f"the same `sparkwright up` starts one for {self.deployment}"
        if self.again:
            return "it is being started again"
        if not self.running:
            return f"nothing restarts it; {up}"
        if not self.unit:
            return f"nothing ends and restarts it; {up}"
        words = f"{'systemctl --user' if self.users_unit else 'sudo systemctl'} restart {self.unit}"
        return f"systemd restarts it after {WATCHDOG:.0f} s of silence; at once on {self.node}: `{words}`"


VERSION = 1


@dataclass(frozen=True, slots=True)
class Desired:
    """cluster: as the head reaches it (itself `local`, the others by the supervisor's own ssh config).

    secrets are not here: they are in a 0600 file next to it. force: the reason given to override findings.
    memory_floor, stop_floor: bytes of MemAvailable below which new work is refused and the engine stopped (0: none).
    python: as at `up`, for ranks that name no other. time_scale: of the supervisor's waits, 1 but for drills.
    speeds: expected figures (`prefill_tokens_s`). replica: None for a deployment that stands alone.
    fabric: addresses by which the ranks reach each other, () for one node, or if an older `up` wrote it.
    """

    deployment: str
    cluster: Cluster
    recipe: Recipe
    force: str = ""
    by: str = ""
    at: float = 0.0
    allow_reboot: bool = False
    memory_floor: int = 0
    stop_floor: int = 0
    time_scale: float = 1.0
    python: str = "python3"
    speeds: Mapping[str, float] = field(default_factory=dict)
    version: int = VERSION
    replica: ReplicaPlace | None = None
    fabric: tuple[str, ...] = ()


class Ask(StrEnum):
    """restart: a planned one. halt: stop, and stay so until a restart. replace: leave the nodes to an `up`. return,
    leave: it failed; serve again, or do not. yield: from another supervisor: stop, if on demand and idle.
    """

    RESTART = "restart"
    HALT = "halt"
    REPLACE = "replace"
    RETURN = "return"
    LEAVE = "leave"
    YIELD = "yield"


@dataclass(frozen=True, slots=True)
class Request:
    """A person's command to a supervisor: `request.json` in its folder. nonce: of the process that asks.

    age: seconds since it was written or renewed, as its reader found it. drain: seconds that requests under way get.
    successor: of a `replace` by a deployment that rests on the same head, its name: if nobody renews the request, the
    supervisor itself looks whether that one serves.
    """

    ask: Ask
    by: str
    why: str
    nonce: str
    age: float = 0.0
    drain: float = DRAIN_SECONDS
    successor: str = ""
