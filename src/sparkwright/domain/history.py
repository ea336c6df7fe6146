"""The last day of a deployment, a row a minute, and its requests. Times are seconds since the epoch."""

from sparkwright.domain.values import dataclass

MINUTE, KEPT = 60, 25 * 3600


@dataclass(frozen=True, slots=True)
class NodeMinute:
    """Means of a minute; None: not known. available, total: bytes of memory; °C and watts of the GPU."""

    node: str
    available: float | None = None
    total: float | None = None
    temperature: float | None = None
    power: float | None = None


@dataclass(frozen=True, slots=True)
class Minute:
    """One minute of a deployment. at: its beginning. state: the worst of it. serving: share of its reports, 0 to 1, in
    which it took requests.

    decode, prefill: tokens a second; running: requests; kv: share of the cache in use. None: not known.
    """

    deployment: str
    at: int
    state: str
    serving: float
    decode: float | None = None
    prefill: float | None = None
    running: float | None = None
    kv: float | None = None
    nodes: tuple[NodeMinute, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request at the gateway; its texts are not stored. at: when it began. status: what the client got.

    outcome: finished, uncounted, cut, failed (the engine), refused (the gateway), looped or reasoned (ended
    by its guard). first: seconds until the first byte
    of a streamed answer, None of others. seconds: until its end. prompt, cached, completion: tokens, None: not counted.
    """

    at: float
    key: str
    model: str
    path: str
    status: int
    outcome: str
    seconds: float
    first: float | None = None
    prompt: int | None = None
    cached: int | None = None
    completion: int | None = None

    @property
    def per_token(self) -> float | None:
        """Seconds a token after the first one; None where the answer was no stream or has no two tokens."""
        if self.first is None or self.completion is None or self.completion < 2:
            return None
        return (self.seconds - self.first) / (self.completion - 1)


@dataclass(frozen=True, slots=True)
class RequestSpan:
    """Requests that began in a stretch of time. failed: by the engine; refused: by the gateway (429, 503).

    first, per_token: means in seconds of finished streams; None without any.
    """

    at: int
    requests: int
    failed: int
    refused: int
    first: float | None
    per_token: float | None
