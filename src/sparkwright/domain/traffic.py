"""What the load client is given and what it gives back: bytes to send, and the times of what came."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from sparkwright.domain.workload import Pace


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
class Job:
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
    shared out over the reads by the length of their text. Times are kept as an array, of 8 bytes each and not of 32: a
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
    seconds, asked for by a 429 or 503. simulated: the server says that it is.
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


@dataclass(frozen=True, slots=True)
class Lag:
    """How far the client itself was behind, seconds: its loop's delay (p50, p99, most) and CPU used over the level.

    cores: CPU seconds per second of the busiest of its processes.
    """

    p50: float = 0.0
    p99: float = 0.0
    most: float = 0.0
    cpu: float = 0.0
    cores: float = 0.0
    processes: int = 1
