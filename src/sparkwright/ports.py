"""The interfaces of the use cases to the outside. Adapters implement these; tests have one fake for each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol

from sparkwright.domain.calibration import Calibration, Conditions
from sparkwright.domain.command import Command, Completed, Secret
from sparkwright.domain.deployment import Answer
from sparkwright.domain.incident import Uptime
from sparkwright.domain.live import GatewayUse
from sparkwright.domain.plan_history import PredictionError
from sparkwright.domain.progress import Happening
from sparkwright.domain.recipe import ModelKind

if TYPE_CHECKING:  # only what measures, or plans, needs them
    from sparkwright.domain.evaluation import Evaluation
    from sparkwright.domain.probed import Reply
    from sparkwright.domain.run import Lag, Level, LoadJob, Row, Run, RunListing
    from sparkwright.domain.workload import Workload
    from sparkwright.engines.flag_data import FlagLibrary


class Host(Protocol):
    """One node. Takes argv tuples and quotes once, inside; every call has the command's timeout.

    All methods raise Unreachable for an unreachable node or an unknown host key; a failing program is no exception.
    """

    @property
    def name(self) -> str: ...

    async def run(self, command: Command) -> Completed:
        """Runs one command. At its timeout the command is killed on the node and exit_code is 124."""

    async def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        """Runs independent commands side by side in one round trip; answers in the order asked."""

    def stream(self, command: Command) -> AsyncIterator[str]:
        """Lines of stdout and stderr as they come (timeout not applied). Closing the iterator ends the command."""

    async def put(self, content: bytes, path: str, mode: int = 0o644) -> None:
        """Writes a file atomically (temporary name, then rename), never wider than `mode` in between; makes parents."""

    async def address(self) -> str:
        """Host name or address that this machine connects to; '' for this machine itself. Does not ask the node."""

    def tunnel(self, address: str, port: int) -> AbstractAsyncContextManager[str]:
        """Opens a tunnel: `http://host:port` on this machine reaches address:port as seen from the node."""


class Hosts(Protocol):
    """The way to each node's Host; connections are made on first use and shared."""

    def __getitem__(self, node: str) -> Host: ...

    async def close(self, persist: bool = True) -> None:
        """persist: the next call of sparkwright may use the same connections. They are made again on next use."""


UNTRUSTED = -1
"""In place of a status: the TLS handshake failed because the certificate is not trusted."""


class Endpoint(Protocol):
    """An OpenAI-compatible server. Speaks the OpenAI API only."""

    async def get(self, url: str, key: Secret | None, seconds: float) -> Reply:
        """Any answer. Raises NotReady without one in time."""

    async def post(self, url: str, body: str, key: Secret | None, seconds: float) -> Reply:
        """Posts and returns the reply, like `get`; body: JSON."""

    async def ask(self, base_url: str, model: str, prompt: str, max_tokens: int, key: Secret | None) -> Answer:
        """A streamed chat completion; tokens are taken from `usage`. Raises NotReady with what came instead."""

    async def prove(self, base_url: str, model: str, kind: ModelKind, key: Secret | None) -> Answer:
        """One real answer of a model that does not chat; its text describes it. Raises NotReady with what came."""

    async def greedy(self, base_url: str, model: str, prompt: str, max_tokens: int, key: Secret | None) -> Answer:
        """Asks with temperature 0, like `ask`: the same question has the same answer again."""

    async def models(self, base_url: str, key: Secret | None) -> tuple[str, ...]:
        """Served model ids; () when nothing answers."""

    async def page(self, base_url: str, path: str, key: Secret | None) -> str | None:
        """The server's page at that path (`/metrics`); None if it does not answer, or not with 200."""

    async def gateway_use(self, socket: str, deployment: str) -> GatewayUse | None:
        """Its requests at the gateway with this socket; None when that is silent."""

    async def probe(self, url: str, root: str = "") -> int:
        """Status of a GET without a key, 0 for no answer. root: PEM of the one CA to trust, '' for any certificate;

        UNTRUSTED where the server's is not verified by it.
        """


class Program(Protocol):
    """Our own code, as a supervisor needs it on its node; digest: the same for the same content."""

    @property
    def digest(self) -> str: ...

    def archive(self) -> bytes:
        """tar.gz."""


class Clock(Protocol):
    """Seconds; `now` since the epoch, `monotonic` without the time in which the machine sleeps."""

    def now(self) -> float: ...

    def monotonic(self) -> float: ...

    def uptime(self) -> Uptime: ...

    async def sleep(self, seconds: float) -> None: ...


class Callers(Protocol):
    """Our processes on this machine. A mark is one process's alone: another machine, boot or container has others."""

    def own_mark(self) -> str:
        """'' where processes cannot be told apart: then nobody is said to have ended."""

    def has_ended(self, mark: str) -> bool:
        """True only if that process was here and is gone; False where that cannot be known."""


class Keyring(Protocol):
    """API keys of gateways on this machine, each 24 random bytes: they are the caller's, and no node stores them."""

    def fresh(self) -> bytes: ...

    def save(self, cluster: str, name: str, content: str) -> str:
        """Writes a file that only this user can read; returns the path shown to the user."""

    def text(self, cluster: str, name: str) -> str:
        """Content of a file that was saved; '' without one."""

    def saved(self, cluster: str) -> tuple[tuple[str, Secret], ...]:
        """(path, key) of those made from this machine, `default` first."""


class Calibrations(Protocol):
    """The memory figures of earlier starts, saved on this machine."""

    def save(self, calibration: Calibration) -> str:
        """Keeps it in place of an earlier one of the same family and place; returns why it could not, '' if it did."""

    def like(self, conditions: Conditions) -> tuple[Calibration, ...]:
        """All that is kept of the family of these conditions; what cannot be read counts as not kept."""


class FlagStore(Protocol):
    """Options of engines that the owner had read, saved on this machine."""

    def load(self) -> FlagLibrary:
        """The kept data and what ships; what cannot be read counts as not kept."""

    def save(self, row: Mapping[str, Any]) -> str:
        """Keep a document of engines.own_data; returns its path. Raises StoreError."""


class PlanHistory(Protocol):
    """Predictions of plans and what starts measured, saved on this machine."""

    def add(self, rows: tuple[PredictionError, ...]) -> str:
        """Keeps them; returns why it could not, '' if it did."""

    def all(self) -> tuple[PredictionError, ...]:
        """The oldest first; what cannot be read counts as not kept."""


class Sink(Protocol):
    """The receiver of use cases' events. Never blocks, never fails."""

    def report(self, happening: Happening) -> None: ...


class Tokenizer(Protocol):
    """Counts the tokens of a text. name: `file tokenizer.json 1a2b`, `estimate, 3.9 characters a token`."""

    @property
    def name(self) -> str: ...

    @property
    def exact(self) -> bool: ...

    async def counts(self, texts: Sequence[str]) -> tuple[int, ...]:
        """Tokens of each text as a part of a longer one, after a line break; no special tokens. Raises NotReady."""

    async def asked(self, body: str) -> int | None:
        """Prompt tokens of a whole request (JSON, without its output's options); None when it is unknown."""

    async def used(self, body: str) -> int | None:
        """The tokens like `asked`, by the usage of a real request for one token."""


class LoadClient(Protocol):
    """Sends a level's requests and takes the times of what comes back."""

    def run(self, job: LoadJob, key: Secret | None) -> AsyncIterator[Row | Lag]:
        """Rows as requests end, failed ones too, and one Lag at the end. Closing the iterator ends all at once."""


class RunStore(Protocol):
    """Benchmark runs on this machine, stored request by request; durable when the call returns.

    A run is locked by the process that measures it, from `begin` (without levels) or `take_up` to `end`, or until the
    process ends. `add` stores a whole run, `list` has the newest first, `tag` replaces all tags. Methods raise
    StoreError: the disk is full, the file is damaged or of a later version.
    """

    async def begin(self, run: Run) -> None: ...

    async def take_up(self, run_id: str) -> Run:
        """Takes the run up to continue it, in its present state. Raises Busy while another process measures it,
        UsageError without it."""

    async def add_level(self, run_id: str, level: Level) -> int:
        """A key for its rows; it counts as cut short until `end_level`. An earlier try that was cut short goes."""

    async def add_rows(self, key: int, rows: Sequence[Row]) -> None: ...

    async def end_level(self, key: int, level: Level) -> None:
        """All of it but its rows, which are there already; `complete` as in `level`."""

    async def end(self, run_id: str, state: str, at: float) -> None: ...

    async def add(self, run: Run) -> None: ...

    async def set_evaluation(self, run_id: str, evaluation: Evaluation) -> None:
        """Stores the findings of a soak so far."""

    async def load(self, run_id: str) -> Run:
        """The run with all its rows. Raises UsageError without it."""

    async def list(self) -> tuple[RunListing, ...]: ...

    async def tag(self, run_id: str, tags: Sequence[str]) -> None: ...

    async def delete(self, run_id: str) -> None:
        """Raises Busy while another process measures it."""

    async def unfinished(self, workload: Workload, endpoint: str) -> str | None:
        """The newest run of this very workload at this endpoint that has not come to its end and nobody measures."""
