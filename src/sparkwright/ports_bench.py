"""What measuring needs from the world: the ports of bench and of the runs it keeps."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

from sparkwright.domain.command import Secret
from sparkwright.domain.probed import Reply
from sparkwright.domain.run import Level, Listed, Run
from sparkwright.domain.traffic import Job, Lag, Row
from sparkwright.domain.workload import Workload


class Asker(Protocol):
    """Plain questions to a server that somebody names, before it is measured."""

    async def get(self, url: str, key: Secret | None, seconds: float) -> Reply:
        """Whatever it answers within that time. Raises NotReady when nothing answers."""
        ...

    async def post(self, url: str, body: str, key: Secret | None, seconds: float) -> Reply:
        """As `get`; body: JSON."""
        ...


class Tokenizer(Protocol):
    """How many tokens a served model makes of a text."""

    @property
    def name(self) -> str:
        """For the record: `/tokenize of the server`, `file tokenizer.json 1a2b`, `estimate, 3.9 characters a token`."""
        ...

    @property
    def exact(self) -> bool: ...

    async def counts(self, texts: Sequence[str]) -> tuple[int, ...]:
        """Tokens of each text as a part of a longer one, after a line break; no special tokens. Raises NotReady."""
        ...

    async def asked(self, body: str) -> int | None:
        """Prompt tokens of a whole request (JSON, without its output's options); None when it cannot be told."""
        ...

    async def used(self, body: str) -> int | None:
        """As `asked`, by the usage of a real request for one token."""
        ...


class LoadClient(Protocol):
    """Sends a level's requests and takes the times of what comes back."""

    def run(self, job: Job, key: Secret | None) -> AsyncIterator[Row | Lag]:
        """Rows as requests end, failed ones too, and one Lag at the end. Closing the iterator ends all at once."""
        ...


class RunStore(Protocol):
    """Benchmark runs on this machine, kept request by request. What was added is there when the call returns.

    A run is held by the process that measures it, from `begin` or `take_up` to `end`, or until the process is gone.
    Methods raise StoreError: the disk is full, the file is damaged or of a later version.
    """

    async def begin(self, run: Run) -> None:
        """A run without levels."""
        ...

    async def take_up(self, run_id: str) -> Run:
        """To go on with it: as it is now. Raises Busy while another process measures it, UsageError without it."""
        ...

    async def add_level(self, run_id: str, level: Level) -> int:
        """A key for its rows; it counts as cut short until `end_level`. An earlier try that was cut short goes."""
        ...

    async def add_rows(self, key: int, rows: Sequence[Row]) -> None: ...

    async def end_level(self, key: int, level: Level) -> None:
        """All of it but its rows, which are there already; `complete` as the level says."""
        ...

    async def end(self, run_id: str, state: str, at: float) -> None: ...

    async def add(self, run: Run) -> None:
        """A whole run, as imported."""
        ...

    async def load(self, run_id: str) -> Run:
        """With everything. Raises UsageError without it."""
        ...

    async def list(self) -> tuple[Listed, ...]:
        """Newest first."""
        ...

    async def tag(self, run_id: str, tags: Sequence[str]) -> None:
        """In place of those it had."""
        ...

    async def delete(self, run_id: str) -> None:
        """Raises Busy while another process measures it."""
        ...

    async def unfinished(self, workload: Workload, endpoint: str) -> str | None:
        """The newest run of this very workload at this endpoint that has not come to its end and nobody measures."""
        ...


class RunFiles(Protocol):
    """Runs as files on this machine, of sparkwright and of other tools."""

    @property
    def forms(self) -> Mapping[str, str]:
        """Name of each format that can be written -> the usual end of a file's name, '' without one."""
        ...

    def bytes_of(self, run: Run, form: str) -> bytes:
        """Raises UsageError where the run does not fit into the format, or what it needs is not installed."""
        ...

    def write(self, content: bytes, path: str) -> None:
        """All of it or what was there before. Raises UsageError."""
        ...

    def read(self, path: str) -> Run:
        """Of any known format, found by what stands in it. Raises UsageError."""
        ...
