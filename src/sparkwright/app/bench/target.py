"""The server that is to be measured, what its refusals mean, and what a benchmark needs from outside."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from sparkwright.domain.command import Secret
from sparkwright.domain.errors import NotReady, UsageError
from sparkwright.domain.facts import RankStatus
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.probed import LaunchCommand, Probed, Reply
from sparkwright.domain.run import Lag, Row, Run, RunConditions
from sparkwright.domain.values import dataclass, field, replace
from sparkwright.domain.workload import LevelPlan, Workload
from sparkwright.ports import Clock, Endpoint, LoadClient, RunStore, Tokenizer

_SHOWN = 300
PATIENCE = 60.0  # for a server that says when to come again
SIMULATED = "x-sparkwright-simulated"


class KeyWanted(UsageError):
    """Another key might do."""


@dataclass(frozen=True, slots=True)
class BenchTarget:
    """url: as the user wrote it. model: '' takes the server's own. asked_as: how messages name it, '' for the url.

    behind: the engine, where url is a gateway's, which passes on neither its figures nor its tokenizer.
    """

    url: str
    model: str = ""
    key: Secret | None = None
    asked_as: str = ""
    behind: "BenchTarget | None" = None

    @property
    def engine(self) -> "BenchTarget":
        """The target that serves the engine's own figures."""
        return self.behind or self

    @property
    def root(self) -> str:
        """The server's root, whether or not the user wrote the `/v1` that OpenAI clients want."""
        bare = self.url.rstrip("/")
        for tail in ("/chat/completions", "/completions", "/models", "/v1"):
            bare = bare.removesuffix(tail)
        return bare if "://" in bare else f"http://{bare}"

    @property
    def name(self) -> str:
        return self.asked_as or self.root


async def patient(clock: Clock, target: BenchTarget, ask: Callable[[], Awaitable[Reply]]) -> Reply:
    """An answer that is good, after as much waiting as a 429 or 503 asks for, within the bound.

    Raises UsageError for a missing or wrong key, NotReady for anything else that is no answer.
    """
    waited = 0.0
    while True:
        reply = await ask()
        pause = retry_after(reply)
        if reply.status not in (429, 503) or pause is None or waited + pause > PATIENCE:
            return checked(reply, target)
        await clock.sleep(pause)
        waited += pause


def retry_after(reply: Reply) -> float | None:
    """Seconds that a server asks a client to stay away; a date is not understood."""
    text = reply.headers.get("retry-after", "")
    return max(0.1, float(text)) if text.replace(".", "", 1).isdigit() else None


def checked(reply: Reply, target: BenchTarget) -> Reply:
    """Raises UsageError, NotReady."""
    if reply.status in (401, 403):
        needs = "it wants a key" if target.key is None else "the key that was given is not one of its"
        hint = "name a file that holds the key: --key-file FILE, or set SPARKWRIGHT_API_KEY"
        raise KeyWanted(f"{target.name}: HTTP {reply.status}, {needs}: {server_message(reply)}", hint)
    if reply.status in (429, 503):
        pause = retry_after(reply)
        request = f"; it asks to come again in {pause:.0f} s, more than {PATIENCE:.0f} s" if pause else ""
        hint = "wait until it is less busy, or measure it where nobody else uses it"
        raise NotReady(f"{target.name}: HTTP {reply.status}: {server_message(reply)}{request}", hint)
    return reply


def server_message(reply: Reply) -> str:
    """The server's message, shortened."""
    try:
        tree = read_json(reply.body)
        found = tree.get("error", tree) if isinstance(tree, dict) else tree
        text = str(found.get("message") or found.get("detail") or found) if isinstance(found, dict) else str(found)
    except ValueError:
        text = reply.body
    return one_line(text, _SHOWN) or "(empty body)"


def one_line(text: str, most: int) -> str:
    """Foreign text on one line, cut to `most` characters, without anything that controls a terminal."""
    return "".join(letter for letter in " ".join(text.split()) if letter.isprintable())[:most]


class Screen(Protocol):
    """The display of a run's progress. Never blocks, never fails."""

    def level(self, plan: LevelPlan, repeat: int, of: int) -> None:
        """One repeat of a level begins. repeat: from 0, of `of`."""

    def row(self, row: Row) -> None: ...

    def lag(self, lag: Lag) -> None: ...

    def note(self, text: str) -> None: ...

    def done(self) -> None:
        """The repeat has ended."""


@dataclass(frozen=True, slots=True)
class ClientMachine:
    """The one that measures. client: version and Python. clock: how it is disciplined. nonce: of this call."""

    client: str
    host: str
    clock: str
    nonce: str


@dataclass(frozen=True, slots=True)
class Bench:
    """tokenizer: how prompts of an engine are counted."""

    asker: Endpoint
    client: LoadClient
    runs: RunStore
    clock: Clock
    machine: ClientMachine
    tokenizer: Callable[[Endpoint, BenchTarget, Probed], Awaitable[Tokenizer]]


@dataclass(frozen=True, slots=True)
class DeploymentInfo:
    """A deployment of this cluster, by its head's rank. nodes: a line each of those it runs on.

    tunnelled: reached through ssh. gateway: URL of the gateway that is measured, '' for the engine itself.
    """

    head: RankStatus
    nodes: tuple[str, ...]
    names: tuple[str, ...]
    launched: LaunchCommand
    tunnelled: bool = False
    gateway: str = ""


async def no_memory() -> Mapping[str, int]:
    return {}


async def no_incidents() -> Mapping[float, str]:
    return {}


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """The settings of a benchmark and the way to its endpoint. files: path -> text of what the workload replays.

    resume: the run to continue. model: '' takes the server's own. keys: tried in this order; with key_given the first
    is the user's own. gateway: URL to go through, '' for the deployment's own; None goes to the engine, or to the
    gateway of a model with replicas. memory: bytes available by node, {} where the nodes are not ours. incidents: when
    each was opened -> what it is.
    """

    workload: Workload
    resume: Run | None = None
    tags: tuple[str, ...] = ()
    note: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    model: str = ""
    keys: tuple[Secret | None, ...] = (None,)
    key_given: bool = False
    gateway: str | None = None
    memory: Callable[[], Awaitable[Mapping[str, int]]] = no_memory
    incidents: Callable[[], Awaitable[Mapping[float, str]]] = no_incidents

    @property
    def own_key(self) -> Secret | None:
        """The key that the user gave, None without one."""
        return self.keys[0] if self.key_given else None

    def with_keys_of(self, cluster: Sequence[Secret | None]) -> "BenchRequest":
        """The request with the keys of a cluster's gateway to try, too; one for somebody else's service comes last."""
        first, *general = self.keys
        found = (self.own_key,) if self.own_key else (first, *cluster, *general)
        return replace(self, keys=tuple(filter(None, found)) or (None,))


@dataclass(frozen=True, slots=True)
class PreparedBench:
    """An endpoint that answered, and what would be done with it. bench: asks it, and trusts its certificate.

    levels: those that fit the server's context. left_out: a sentence for each other one. unfinished: a run like it
    that can be resumed.
    """

    bench: Bench
    target: BenchTarget
    probed: Probed
    request: BenchRequest
    levels: tuple[LevelPlan, ...]
    left_out: tuple[str, ...]
    tokenizer: Tokenizer
    conditions: RunConditions
    unfinished: str = ""

    @property
    def workload(self) -> Workload:
        return self.request.workload

    @property
    def requests(self) -> int:
        return self.workload.repeats * sum(plan.request_count for plan in self.levels)

    @property
    def tokens(self) -> int:
        """Prompt and output, of those that are known beforehand."""
        return self.workload.repeats * sum(plan.request_count * sum(plan.mean_tokens or ()) for plan in self.levels)

    def with_workload(self, workload: Workload) -> "PreparedBench":
        """The same endpoint and levels under other settings."""
        return replace(self, request=replace(self.request, workload=workload))
