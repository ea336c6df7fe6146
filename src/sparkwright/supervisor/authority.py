"""The right of a supervisor to act, where a standby may take its place: it has the votes, and the node its seal.

The term is looked at before each command that changes a node, and the node compares the seal before that command
begins. So a supervisor that was cut off, or stopped for a while, changes nothing any more once another one has begun.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from sparkwright.adapters.machine import boot_id, seconds_since_boot
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.codec import Unreadable, from_json
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.errors import Unreachable
from sparkwright.domain.standby import FOLDER, TERM_FILE, Seal, Term
from sparkwright.domain.values import dataclass
from sparkwright.ports import Host, Hosts
from sparkwright.remote.seal import REFUSED, parse_seal, raise_seal, refusal, under_seal

_NO_VOTES = "it has not the votes of most nodes"
_HINT = "`sparkwright status` shows who supervises"
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Right:
    """Permission to act. why: the reason why nothing may be done, '' if it may. seal: None without a standby."""

    why: str = ""
    seal: Seal | None = None


class RightReader:
    """The right to act of the supervisor in this folder, from the term that the node's keeper of votes writes."""

    def __init__(self, home: Path, boot: str = "", clock: Callable[[], float] = seconds_since_boot) -> None:
        self.is_copy = is_copy(home)
        self._path = home.parent / FOLDER / TERM_FILE
        self._boot, self._clock = boot or boot_id(), clock

    def read(self) -> Right:
        """A head that never had the votes has no standby (yet); a standby without a term may do nothing."""
        try:
            term = from_json(Term, self._path.read_bytes())
        except FileNotFoundError:
            return Right(_NO_VOTES) if self.is_copy else Right()
        except (OSError, Unreadable) as error:
            return Right(f"its term cannot be read ({error})")
        if not term.is_held(self._boot, self._clock()):
            return Right(term.why or _NO_VOTES)
        return Right(seal=Seal(term.seal, term.node)) if term.seal else Right("the nodes have not got its seal yet")


def is_copy(home: Path) -> bool:
    """True for a deployment's folder on the standby, which is in the folder of the role."""
    return len(home.parents) > 2 and home.parents[2].name == FOLDER


def records_folder(home: Path) -> Path:
    """The state folder of the node, with its incidents and its addresses for messages."""
    return home.parents[4] if is_copy(home) else home.parents[1]


class SealedHosts:
    """Implements ports.Hosts: what changes a node runs there under the present seal, or not at all."""

    def __init__(self, inner: Hosts, cluster: Cluster, rights: RightReader) -> None:
        self._inner, self._cluster, self._rights = inner, cluster, rights
        self.refused = asyncio.Event()

    def __getitem__(self, node: str) -> "SealedHost":
        return SealedHost(self, self._inner[node], self._cluster)

    async def close(self, persist: bool = True) -> None:
        await self._inner.close(persist)

    def seal(self, node: str) -> Seal | None:
        """Raises Unreachable without the right to change anything."""
        right = self._rights.read()
        if right.why:
            raise Unreachable(node, f"nothing is changed there from here: {right.why}", _HINT)
        return right.seal


class SealedHost:
    """Implements ports.Host for one node."""

    def __init__(self, hosts: SealedHosts, inner: Host, cluster: Cluster) -> None:
        self._hosts, self._inner, self._cluster = hosts, inner, cluster

    @property
    def name(self) -> str:
        return self._inner.name

    async def run(self, command: Command) -> Completed:
        """Raises Unreachable also if the node takes commands from another supervisor."""
        if not command.changes:
            return await self._inner.run(command)
        said = ""
        for _ in range(_TRIES):
            seal = self._hosts.seal(self.name)
            if seal is None:
                return await self._inner.run(command)
            done = await self._inner.run(under_seal(command, *self._place, seal))
            said = refusal(done.stderr) if done.exit_code == REFUSED else ""
            if not said:
                return done
            if said.startswith("held"):
                self._hosts.refused.set()
                break
            if said == "behind":  # a node that was away when the term began
                said = (await self._inner.run(raise_seal(*self._place, seal))).stdout.strip() or "no answer"
        raise Unreachable(self.name, _refusal_text(said), _HINT)

    async def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        if any(one.changes for one in commands):
            return tuple(await asyncio.gather(*map(self.run, commands)))
        return await self._inner.run_all(commands)

    def stream(self, command: Command) -> AsyncIterator[str]:
        return self._inner.stream(command)

    async def put(self, content: bytes, path: str, mode: int = 0o644) -> None:
        """A file that is written changes nothing that runs, so that the term alone is looked at."""
        self._hosts.seal(self.name)
        await self._inner.put(content, path, mode)

    async def address(self) -> str:
        return await self._inner.address()

    def tunnel(self, address: str, port: int) -> AbstractAsyncContextManager[str]:
        return self._inner.tunnel(address, port)

    @property
    def _place(self) -> tuple[str, str]:
        return self._cluster.node(self.name).paths.state, self._cluster.name


def _refusal_text(said: str) -> str:
    if seal := parse_seal(said):
        return f"it takes commands of {seal.node} since seal {seal.number}, which supervises now"
    return "commands of the supervisor before are still under way there" if said == "busy" else f"no seal: {said}"
