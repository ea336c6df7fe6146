"""A benchmark run as it is stored: its jobs, conditions, levels, and every request that was sent."""

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from sparkwright.domain.evaluation import Evaluation
from sparkwright.domain.values import dataclass, field
from sparkwright.domain.workload import LevelPlan, Pace, Workload


@dataclass(frozen=True, slots=True)
class Turn:
    """One request of a session, as pieces of JSON text: the body is `head`, the history so far, `tail`.

    new: messages (JSON objects, joined by commas) that this turn adds to the history before it is sent; a completion
    has its whole body in `head` and nothing else. answer: whether the model's own answer joins the history
    afterwards. think: seconds after the turn before.
    prompt_tokens, output_tokens, cached_tokens: as planned; the row repeats them, and whether it is warm-up.
    """

    head: str
    new: str
    tail: str
    answer: bool = False
    think: float = 0.0
    prompt_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    warmup: bool = False


@dataclass(frozen=True, slots=True)
class Session:
    """Turns that follow each other: one for independent requests. number: its place in the level.

    at: seconds after the level's start at which it is to begin; None begins when the pace lets it (closed loop).
    counted: False for noise, whose rows are kept and left out of statistics.
    """

    number: int
    turns: tuple[Turn, ...]
    at: float | None = None
    counted: bool = True


@dataclass(frozen=True, slots=True)
class LoadJob:
    """One level, one repeat, for the client. url: of the request, whole; headers with the key are handed over apart.

    limits, seconds: connect, until the first byte, between two reads, for the whole job.
    """

    url: str
    sessions: tuple[Session, ...]
    pace: Pace
    connect: float = 10.0
    first_byte: float = 1800.0
    silence: float = 120.0
    whole: float = 1800.0
    keep_text: bool = False


@dataclass(frozen=True, slots=True)
class Reads:
    """Reads of one stream that carried tokens. at: seconds since it was sent; tokens: in each, by rising time.

    exact: each read's count is known (continuous usage, or one token a chunk by the total); else the total was
    shared out over the reads by the length of their text. Times are an array, of 8 bytes each and not of 32: a
    long run has ten million.
    """

    at: Sequence[float] = ()
    tokens: tuple[int, ...] = ()
    exact: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", array("d", self.at))


@dataclass(frozen=True, slots=True)
class Row:
    """One request as it went; a failed one is a row, too. Times in seconds.

    intended, sent: since the level's start; sent is when the last byte of the request was given to the kernel.
    headers: until the response's first byte, since `sent`; first: until the first token of any kind (reasoning
    counts), None when none came; first_content: until the first that was no reasoning; end: until the last byte.
    usage counts come from the server, None where it gave none. error: '' when it went well; kind: a short word for
    counting (http-429, cut, aborted, silence, refused, error-in-stream, no-usage, no-tokens, not-sent). retry_after:
    seconds, asked for by a 429 or 503. simulated: the server marks it.
    """

    session: int
    turn: int
    intended: float
    sent: float
    headers: float | None = None
    first: float | None = None
    first_content: float | None = None
    end: float | None = None
    status: int = 0
    reads: Reads = Reads()
    chunks: int = 0
    bytes: int = 0
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    finish: str = ""
    kind: str = ""
    error: str = ""
    retry_after: float | None = None
    simulated: bool = False
    counted: bool = True
    warmup: bool = False
    planned_prompt: int = 0
    planned_output: int = 0
    planned_cached: int = 0
    text: str = ""

    @classmethod
    def from_wire(cls, session: int, turn: int, reported: Mapping[str, Any], **planned: Any) -> "Row":
        """reported: what a worker writes, fields by name, reads as (at, tokens, exact); planned: what the job gives."""
        at, tokens, exact = reported["reads"]
        return cls(session, turn, **{**reported, "reads": Reads(tuple(at), tuple(tokens), exact)}, **planned)


@dataclass(frozen=True, slots=True)
class Lag:
    """The client's own delay, seconds: its loop's delay (p50, p99, most) and CPU used over the level.

    cores: CPU seconds per second of the busiest of its processes.
    """

    p50: float = 0.0
    p99: float = 0.0
    most: float = 0.0
    cpu: float = 0.0
    cores: float = 0.0
    processes: int = 1


@dataclass(frozen=True, slots=True)
class RunConditions:
    """The conditions of a run; '' if unknown. ours: the endpoint is a deployment of this cluster.

    tokenizer: how prompt lengths were made (`/tokenize of the server`, `file <sha>`, `estimate`). nodes: a line each.
    front_door: URL of the one that a deployment of ours was measured through, '' for the engine itself.
    flags: the engine's argv of rank 0 without secrets. clock: the client's, and how it is disciplined.
    """

    endpoint: str
    model: str
    ours: bool = False
    deployment: str = ""
    front_door: str = ""
    recipe: str = ""
    recipe_hash: str = ""
    image: str = ""
    engine: str = ""
    engine_version: str = ""
    flags: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    max_context: int = 0
    tokenizer: str = ""
    client: str = ""
    client_host: str = ""
    seed: int = 0
    clock: str = ""
    simulated: bool = False

    @property
    def missing(self) -> tuple[str, ...]:
        """The missing fields of provenance; a run of our own deployment is not valid without them."""
        wanted = ("recipe_hash", "engine", "engine_version", "flags", "nodes") if self.ours else ("model",)
        return tuple(name for name in wanted if not getattr(self, name))


@dataclass(frozen=True, slots=True)
class Scrape:
    """The server's counters at one moment (words of engines/data/engines), and the nodes' memory if they are ours.

    at: seconds since the level's start. memory: node -> bytes available.
    """

    at: float
    figures: Mapping[str, float] = field(default_factory=dict)
    memory: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StatedFigures:
    """One figure as another tool printed it, without the requests behind it; None: not stated.

    name: of `summary.METRICS` in its unit, or the tool's own word, which only an export to that tool's format reads.
    deviation: the standard one. count: values behind the figure, 0 where it is not stated. values: these, if stated.
    """

    name: str
    mean: float | None = None
    deviation: float | None = None
    median: float | None = None
    p90: float | None = None
    p99: float | None = None
    least: float | None = None
    most: float | None = None
    count: int = 0
    values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Totals:
    """Requests and output tokens of a level of which no single request is known. failed: kind -> requests."""

    sent: int = 0
    good: int = 0
    output_tokens: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Level:
    """One repeat of one level. doubts: why its figures may not count (client behind, server restarted, ...).

    complete: False where the run ended, or was killed, before all of its requests had an end.
    stated, totals: of an imported level whose tool prints figures and not requests.
    """

    plan: LevelPlan
    repeat: int
    began: float
    seconds: float = 0.0
    rows: tuple[Row, ...] = ()
    lag: Lag = field(default_factory=Lag)
    scrapes: tuple[Scrape, ...] = ()
    doubts: tuple[str, ...] = ()
    complete: bool = True
    stated: tuple[StatedFigures, ...] = ()
    totals: Totals | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """id: as users name it (r-20261122-7f3a). state: running, done, stopped. imported: from which tool, '' if ours.

    evaluation: of `eval`, which has no levels; None of a benchmark.
    """

    id: str
    began: float
    workload: Workload
    conditions: RunConditions
    state: str = "running"
    ended: float = 0.0
    levels: tuple[Level, ...] = ()
    tags: tuple[str, ...] = ()
    note: str = ""
    imported: str = ""
    evaluation: Evaluation | None = None


@dataclass(frozen=True, slots=True)
class RunListing:
    """A run without its requests. workload: name@version. done of planned: repeats of levels that are complete.

    kind: bench, or eval and what it asked.
    """

    id: str
    began: float
    ended: float
    state: str
    workload: str
    model: str
    endpoint: str
    engine: str = ""
    engine_version: str = ""
    simulated: bool = False
    done: int = 0
    planned: int = 0
    requests: int = 0
    errors: int = 0
    tags: tuple[str, ...] = ()
    note: str = ""
    imported: str = ""
    kind: str = "bench"
