"""What the use cases need from the world. Adapters implement these; tests have one fake for each.

What measuring needs beside them is in ports_bench.py.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from sparkwright.domain.calibration import Calibration, Conditions
from sparkwright.domain.command import Command, Completed, Secret
from sparkwright.domain.deployment import Answer, Phase
from sparkwright.domain.desired import Request
from sparkwright.domain.facts import Unknown
from sparkwright.domain.incident import Deployed, Incident, IncidentEvent, News
from sparkwright.domain.live import Live
from sparkwright.domain.published import Published
from sparkwright.supervision.state import State


class Host(Protocol):
    """One node. Argv tuples go in, quoting happens once, inside; every call has the command's timeout.

    All methods raise Unreachable when the node cannot be reached or its host key is not the known one.
    A program that fails is not an exception: look at Completed.exit_code.
    """

    @property
    def name(self) -> str: ...

    async def run(self, command: Command) -> Completed:
        """Runs one command. At its timeout the command is killed on the node and exit_code is 124."""
        ...

    async def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        """Runs independent commands side by side in one round trip; answers in the order asked."""
        ...

    def stream(self, command: Command) -> AsyncIterator[str]:
        """Lines of stdout and stderr as they come (timeout not applied). Closing the iterator ends the command."""
        ...

    async def put(self, content: bytes, path: str, mode: int = 0o644) -> None:
        """Writes a file atomically (temporary name, then rename), never wider than `mode` in between; makes parents."""
        ...

    def tunnel(self, address: str, port: int) -> AbstractAsyncContextManager[str]:
        """While open, `http://host:port` on this machine reaches address:port as seen from the node."""
        ...


class Hosts(Protocol):
    """The way to each node's Host; connections are made on first use and shared."""

    def __getitem__(self, node: str) -> Host: ...

    async def close(self) -> None: ...


class Endpoint(Protocol):
    """An OpenAI-compatible server. Speaks the OpenAI API only."""

    async def ask(self, base_url: str, model: str, prompt: str, max_tokens: int, key: Secret | None) -> Answer:
        """A streamed chat completion; tokens are taken from `usage`. Raises NotReady with what came instead."""
        ...

    async def greedy(self, base_url: str, model: str, prompt: str, max_tokens: int, key: Secret | None) -> Answer:
        """As `ask` with temperature 0: the same question has the same answer again."""
        ...

    async def models(self, base_url: str, key: Secret | None) -> tuple[str, ...]:
        """Served model ids; () when nothing answers."""
        ...

    async def page(self, base_url: str, path: str, key: Secret | None) -> str | None:
        """What the server shows there (`/metrics`); None when it does not answer, or not with 200."""
        ...

    async def knock(self, url: str) -> int:
        """The status that a GET without a key has there, 0 for no answer; whose certificate it is does not matter."""
        ...


class ModelHub(Protocol):
    """Where models are published."""

    async def look(self, model: str, revision: str = "") -> Published | Unknown | None:
        """What it says of a model; Unknown with why when it says no, None when it cannot be reached. Never raises."""
        ...


class Program(Protocol):
    """What a supervisor needs on its node beside Python itself."""

    @property
    def digest(self) -> str:
        """The same for the same content."""
        ...

    def archive(self) -> bytes:
        """tar.gz."""
        ...


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def monotonic(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class Artifacts(Protocol):
    """Evidence kept on this machine."""

    def save(self, deployment: str, name: str, text: str) -> str:
        """Stores text beside the other evidence of this run of this process; returns the path shown to the user."""
        ...


class Keyring(Protocol):
    """Keys to front doors on this machine: they are for the person who called, and no node keeps them."""

    def fresh(self) -> bytes:
        """24 random bytes."""
        ...

    def keep(self, cluster: str, name: str, content: str) -> str:
        """Writes a file that only this user can read; returns the path shown to the user."""
        ...

    def kept(self, cluster: str) -> tuple[tuple[str, Secret], ...]:
        """(path, key) of those made from this machine, `default` first."""
        ...


class Calibrations(Protocol):
    """What engines said at earlier starts, kept on this machine."""

    def save(self, calibration: Calibration) -> str:
        """Keeps it in place of an earlier one of the same family and place; returns why it could not, '' if it did."""
        ...

    def like(self, conditions: Conditions) -> tuple[Calibration, ...]:
        """All that is kept of the family of these conditions; what cannot be read counts as not kept."""
        ...


class Journal(Protocol):
    """What must outlive a supervisor, in its folder on the head node."""

    def load(self) -> State | None:
        """What the one before was about; None without one, or when it cannot be read (which it has told then)."""
        ...

    def save(self, state: State) -> str:
        """On the disk before it returns; why it could not be kept, '' if it was."""
        ...

    def show(self, live: Live) -> None:
        """For whoever looks: status, door, exporter. Never fails."""
        ...

    def wanted(self) -> bool:
        """Whether the desired state is still the one that this supervisor was started for."""
        ...

    def request(self) -> Request | None:
        """What a person asks of this supervisor now."""
        ...

    def answered(self) -> None:
        """The request is fulfilled, or void."""
        ...

    def recall(self) -> dict[str, float]:
        """Small figures by name, as remembered."""
        ...

    def remember(self, figures: Mapping[str, float]) -> None: ...

    def wrong(self) -> Mapping[str, str]:
        """Kind of trouble -> what is wrong with its files now, and the hint, in a sentence."""
        ...


class Store(Protocol):
    """What the head node remembers of its deployments. Never raises: what it cannot write is dropped and told once."""

    async def began(self, deployed: Deployed) -> None:
        """A desired state is armed anew; incidents that were left open are closed."""
        ...

    async def ended(self, deployment: str, at: float, why: str) -> None: ...

    async def note(self, deployment: str, event: IncidentEvent, incident: int = 0) -> None: ...

    async def open(self, incident: Incident) -> Incident:
        """With its number and its folder; the deployment's incident that is still open is gone on with."""
        ...

    async def explain(self, number: int, cause: str, code: str, fix: tuple[str, ...]) -> None: ...

    async def close(self, number: int, at: float, outcome: str, serving_at: float = 0.0) -> None: ...

    async def counts(self, deployment: str) -> tuple[int, int]:
        """How many incidents it had, and the last one's number."""
        ...

    async def trim(self, number: int) -> None:
        """Cuts the incident's folder to what may be kept of one."""
        ...

    def wrong(self) -> str:
        """Why it keeps no history now, or what was lost of it, with the hint; '' when nothing is wrong."""
        ...


class Herald(Protocol):
    """Tells whoever asked to be told: hooks."""

    def announce(self, news: News) -> None:
        """Returns at once and never fails."""
        ...


@dataclass(frozen=True, slots=True)
class Keep:
    """All that a supervisor leaves behind."""

    journal: Journal
    store: Store
    herald: Herald


@dataclass(frozen=True, slots=True)
class StepStarted:
    step: str
    detail: str = ""
    usual: float = 0.0


@dataclass(frozen=True, slots=True)
class StepDone:
    step: str
    seconds: float
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """Of a step or of one rank's phase: done of total in unit; total None when it is not known."""

    step: str
    node: str
    done: float | None
    total: float | None
    unit: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class RankPhase:
    """A rank entered a phase; usual: its usual seconds (0: not known)."""

    rank: int
    node: str
    phase: Phase
    text: str = ""
    done: float | None = None
    total: float | None = None
    unit: str = ""
    usual: float = 0.0


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that the user should read now."""

    text: str
    warning: bool = False


Happening = StepStarted | StepDone | Progress | RankPhase | Notice


class Sink(Protocol):
    """Where use cases tell what happens. Never blocks, never fails."""

    def tell(self, happening: Happening) -> None: ...
