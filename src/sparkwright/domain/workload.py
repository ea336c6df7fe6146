"""A benchmark's workload as data: levels of requests, how they are paced, what is cached."""

from enum import StrEnum

from sparkwright.domain.units import GIB
from sparkwright.domain.values import dataclass

FLOOR = 2 * GIB


class Api(StrEnum):
    CHAT = "chat"
    COMPLETIONS = "completions"


class Text(StrEnum):
    """The kind of text that prompts ask for. Speculative decoding accepts structured text about four times as often as
    prose."""

    PROSE = "prose"
    CODE = "code"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Length:
    """Tokens. Fixed where low == high; uniform between them otherwise; with `median`, log-normal, cut to them."""

    low: int
    high: int
    median: int = 0

    @property
    def mean(self) -> int:
        return self.median or (self.low + self.high) // 2


class Arrival(StrEnum):
    CLOSED = "closed"  # a new request when one ends: `concurrency` at any time
    CONSTANT = "constant"
    POISSON = "poisson"
    BURSTS = "bursts"
    RAMP = "ramp"
    RECORDED = "recorded"  # at the times of the file that is replayed


@dataclass(frozen=True, slots=True)
class Pace:
    """The pace at which requests (or agents) begin. rate: per second, open loop only; concurrency: 0 without a limit.

    burst: requests that begin together, BURSTS only. to_rate: rate at the end, RAMP only.
    """

    arrival: Arrival = Arrival.CLOSED
    concurrency: int = 1
    rate: float = 0.0
    burst: int = 0
    to_rate: float = 0.0


@dataclass(frozen=True, slots=True)
class PlannedTurn:
    """One turn in tokens: its whole prompt, what of it was sent or answered before, what is new (all with frames)."""

    prompt: int
    known: int
    new: int


@dataclass(frozen=True, slots=True)
class Single:
    """Independent requests. depth: tokens of context before `prompt`, sent and cached beforehand where `warm`."""

    prompt: Length
    output: Length
    depth: int = 0
    warm: bool = False
    text: Text = Text.PROSE


@dataclass(frozen=True, slots=True)
class Agent:
    """A loop of an agent: system prompt and tool schemas, then turns that add to a growing history.

    Tokens: system, tools, first (of the task), each_turn (of a tool's result), output (of an answer).
    cached: share of each turn's prompt (0.5 to 1) that the turn before has sent or answered already: it sets the size
    of the new text, in place of each_turn. None: the share is what each_turn makes it.
    cold: the same lengths, but every turn is salted in front, so that nothing of it can come from the cache.
    think: seconds between an answer and the next turn. noise: agents next to it that push it out of the cache.
    """

    turns: int
    system: int
    tools: int
    first: int
    each_turn: int
    output: int
    cached: float | None = None
    think: float = 0.0
    noise: int = 0
    cold: bool = False

    def planned_turns(self) -> tuple[PlannedTurn, ...]:
        """The turns of one loop. With `cached`, (prompt + answer before) is that share of each prompt."""
        prompt = self.system + self.tools + self.first
        turns = [PlannedTurn(prompt, 0, prompt)]
        for _ in range(self.turns - 1):
            known = prompt + self.output
            prompt = round(known / self.cached) if self.cached else known + self.each_turn
            turns.append(PlannedTurn(prompt, known, prompt - known))
        return tuple(turns)


@dataclass(frozen=True, slots=True)
class Replay:
    """Requests of a file. path: JSONL of sparkwright or of a common public format. limit: 0 takes all."""

    path: str
    limit: int = 0
    output: Length | None = None
    timed: bool = False


Shape = Single | Agent | Replay


@dataclass(frozen=True, slots=True)
class Slo:
    """Limits that a request meets or misses, seconds; 0 sets none. share: of requests that must meet all (goodput)."""

    ttft: float = 0.0
    tpot: float = 0.0
    end_to_end: float = 0.0
    share: float = 0.9


@dataclass(frozen=True, slots=True)
class LevelPlan:
    """One point of a curve. requests: of one repeat (agents, where the shape is Agent). warmup: sent before.

    seconds: the level ends after that, finished or not; 0 takes the workload's deadline. rest: idle seconds after it.
    """

    name: str
    shape: Shape
    pace: Pace = Pace()
    requests: int = 1
    warmup: int = 1
    seconds: float = 0.0
    rest: float = 0.0

    @property
    def request_count(self) -> int:
        """Requests of one repeat, without warm-up: each turn of an agent is one."""
        return self.requests * (self.shape.turns if isinstance(self.shape, Agent) else 1)

    @property
    def mean_tokens(self) -> tuple[int, int] | None:
        """Mean (prompt, output) tokens of its requests; None where only the file of a replay knows."""
        match self.shape:
            case Agent():
                prompts = [turn.prompt for turn in self.shape.planned_turns()]
                return sum(prompts) // len(prompts), self.shape.output
            case Single():
                return self.shape.depth + self.shape.prompt.mean, self.shape.output.mean
            case Replay():
                return None

    @property
    def most_tokens(self) -> int:
        """Tokens of its longest request, answer included; 0 where only the file of a replay knows."""
        match self.shape:
            case Agent():
                return self.shape.planned_turns()[-1].prompt + self.shape.output
            case Single():
                return self.shape.depth + self.shape.prompt.high + self.shape.output.high
            case Replay():
                return 0

    def fits_context(self, max_context: int) -> bool:
        """True if the server's context (0: unknown) holds its longest request."""
        return not max_context or self.most_tokens <= max_context


@dataclass(frozen=True, slots=True)
class RateSearch:
    """The highest rate that still meets the SLO, between two rates, to this relative precision."""

    low: float
    high: float
    precision: float = 0.1


@dataclass(frozen=True, slots=True)
class Soak:
    """Settings that a soak adds to its levels, which it repeats for hours.

    probe_every, leave_every: seconds between quality probes, and between clients that leave in the middle of their
    answer; 0: none. floor: bytes available on a node at which it stops.
    """

    probe_every: float = 600.0
    leave_every: float = 30.0
    floor: int = FLOOR


@dataclass(frozen=True, slots=True)
class Workload:
    """name@version identifies what was sent: two runs of the same one, seed and tokenizer can be compared.

    thinking: pinned on or off; None sends nothing of it. search: levels are rates to be found, from the first level.
    """

    name: str
    title: str
    levels: tuple[LevelPlan, ...]
    version: int = 1
    api: Api = Api.CHAT
    seed: int = 0
    repeats: int = 3
    thinking: bool | None = False
    ignore_eos: bool = True
    temperature: float = 0.0
    slo: Slo | None = None
    search: RateSearch | None = None
    deadline: float = 1800.0
    soak: Soak | None = None
