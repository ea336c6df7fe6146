"""A benchmark's workload as it is written: pydantic models, used at this border only (docs/reference/workloads.md)."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from sparkwright.domain.workload import FLOOR
from sparkwright.recipes.values import Matching, Part, Seconds, Size, Text, Within, seconds, shown_value

_NAME = Matching(r"[a-z0-9][a-z0-9._-]{0,62}", "small letters, digits, `.`, `_` and `-`, at most 63, as in my-agents")
_TITLE = Matching(r"[^\n]{1,100}", "one line of at most 100 characters")
_TOKENS = Within(1, 16_777_216, "more than 16 Mi tokens no known model takes")
_DEPTH = Within(0, 16_777_216, "more than 16 Mi tokens no known model takes")
_COUNT = Within(1, 1_000_000, "each is stored as a row")
_WARMUP = Within(0, 1000, "they are sent at every repeat")
_USERS = Within(1, 20_000, "each is a connection, and a client has about 28,000 ports to one address")
_RATE = Within(0.001, 100_000, "requests a second; slower than one in 1000 s is no load", zero=True)
_REPEATS = Within(1, 100, "one repeat has no spread; more than 100 nobody waits for")
_TURNS = Within(1, 1000, "an agent's loop has at least one turn")
_SHARE = Within(0.5, 0.99, "it sets the size of new text: under 0.5 each turn more than doubles the prompt")
_MET = Within(0.01, 1.0, "it is the share of requests that must meet the limits")
_PRECISION = Within(0.01, 0.5, "finer than 1 % is inside the noise of any server")
_HEAT = Within(0.0, 2.0, "servers take temperatures from 0 to 2")
_SEED = Within(0, 2**53, "it is a whole number that JSON keeps")
_VERSION = Within(1, 10_000, "it counts up when what is sent changes")
_NOISE = Within(0, 1000, "each is a loop of its own")


def _short(value: Any) -> float:
    """Seconds of `500ms`, `2s` or a bare number."""
    text = "" if isinstance(value, bool) else str(getattr(value, "text", value)).strip()
    if text.endswith("ms"):
        return seconds(text.removesuffix("ms")) / 1000
    return seconds(value)


def _length(value: Any) -> Any:
    """A bare number is a fixed length."""
    return {"from": value, "to": value} if isinstance(value, int) and not isinstance(value, bool) else value


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _replay_path(value: Any) -> Any:
    if isinstance(value, str) and value.strip():
        return value
    raise ValueError(f"found {shown_value(value)}; expected the path of a file")


Short = Annotated[float, BeforeValidator(_short)]


class LengthPart(Part):
    low: Annotated[int, _TOKENS] = Field(alias="from")
    high: Annotated[int, _TOKENS] = Field(alias="to")
    median: Annotated[int, _DEPTH] = 0


Lengths = Annotated[LengthPart, BeforeValidator(_length)]
Depths = Annotated[list[Annotated[int, _DEPTH]], BeforeValidator(_listed)]
Users = Annotated[list[Annotated[int, _USERS]], BeforeValidator(_listed)]
Rates = Annotated[list[Annotated[float, _RATE]], BeforeValidator(_listed)]


class SinglePart(Part):
    prompt: Lengths
    output: Lengths
    depth: Depths = Field(default_factory=lambda: [0])
    warm: bool = False
    text: Literal["prose", "code", "json"] = "prose"


class AgentPart(Part):
    turns: Annotated[int, _TURNS]
    system: Annotated[int, _TOKENS] = 1000
    tools: Annotated[int, _DEPTH] = 0
    first: Annotated[int, _TOKENS] = 500
    each_turn: Annotated[int, _TOKENS] = 1000
    output: Annotated[int, _TOKENS] = 200
    cached: Annotated[float, _SHARE] | None = None
    think: Seconds = 0.0
    noise: Annotated[int, _NOISE] = 0
    cold_twin: bool = False


class ReplayPart(Part):
    path: Annotated[Text, BeforeValidator(_replay_path)]
    limit: Annotated[int, _DEPTH] = 0
    output: Lengths | None = None
    timed: bool = False


class LevelPart(Part):
    """One of single, agent, replay. Lists of depth, concurrency or rate mean one level each.

    per_user: requests for each of `concurrency`, in place of `requests`.
    """

    name: Annotated[Text, _TITLE] = ""
    single: SinglePart | None = None
    agent: AgentPart | None = None
    replay: ReplayPart | None = None
    arrival: Literal["closed", "constant", "poisson", "bursts", "ramp"] | None = None
    concurrency: Users | None = None
    rate: Rates = Field(default_factory=lambda: [0.0])
    burst: Annotated[int, _DEPTH] = 0
    to_rate: Annotated[float, _RATE] = 0.0
    requests: Annotated[int, _COUNT] = 1
    per_user: Annotated[int, _DEPTH] = 0
    warmup: Annotated[int, _WARMUP] = 1
    seconds: Seconds = 0.0
    rest: Seconds = 0.0


class SloPart(Part):
    ttft: Short = 0.0
    tpot: Short = 0.0
    end_to_end: Short = 0.0
    share: Annotated[float, _MET] = 0.9


class SearchPart(Part):
    low: Annotated[float, _RATE]
    high: Annotated[float, _RATE]
    precision: Annotated[float, _PRECISION] = 0.1


class SoakPart(Part):
    probe_every: Seconds = 600.0
    leave_every: Seconds = 30.0
    floor: Size = FLOOR


class WorkloadPart(Part):
    name: Annotated[Text, _NAME] = ""
    title: Annotated[Text, _TITLE]
    version: Annotated[int, _VERSION] = 1
    api: Literal["chat", "completions"] = "chat"
    seed: Annotated[int, _SEED] = 0
    repeats: Annotated[int, _REPEATS] = 3
    thinking: bool | Literal["unset"] = False
    ignore_eos: bool = True
    temperature: Annotated[float, _HEAT] = 0.0
    deadline: Seconds = 1800.0
    slo: SloPart | None = None
    search: SearchPart | None = None
    soak: SoakPart | None = None
    levels: list[LevelPart]
