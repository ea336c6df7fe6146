"""A node that keeps ranks and a lease: what `up`, `status` and `down` change on it is there afterwards."""

import asyncio
import json
import re
import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field

from fakes.clock import FakeClock
from fakes.host import FakeHost, Given
from sparkwright.domain.command import Command, Completed
from sparkwright.facts import ranks
from sparkwright.remote import lease, process

HOME = "/home/ai"
STATE = f"{HOME}/.local/state/sparkwright"
# What a rank's log does: a line, a pause in seconds of the fake clock, or its end with this exit code.
Script = Sequence["str | float | Exit"]


@dataclass(frozen=True)
class Exit:
    code: int
    oom: bool = False
    # How long ago, by the node's clock, when the one who follows hears of it.
    ago: float = 0.0


@dataclass
class Rank:
    labels: Mapping[str, str]
    words: tuple[str, ...]
    state: str = "running"
    exit: Exit = Exit(0)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def end(self, how: Exit) -> None:
        self.state, self.exit = "exited", how
        self.over.set()


@dataclass
class RankNode(FakeHost):
    """journal: (node, what changed) in the order of all nodes that share it. script: what each rank's log does.

    refuses: the answer to a start instead of starting. holder: content of the lease, None when free; its age in s.
    started: when its ranks were, as `stat` prints it.
    """

    clock: FakeClock = field(default_factory=FakeClock)
    journal: list[tuple[str, str]] = field(default_factory=list)
    script: Script = ()
    ranks: dict[str, Rank] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    refuses: Completed | None = None
    holder: str | None = None
    age: int = 0
    started: str = "1"

    def __post_init__(self) -> None:
        self.default = self.default or Completed(127, "", "not found")

    @property
    def running(self) -> list[int]:
        return sorted(int(rank.labels["rank"]) for rank in self.ranks.values() if rank.state == "running")

    def note(self, what: str) -> None:
        self.journal.append((self.name, what))

    async def put(self, content: bytes, path: str, mode: int = 0o644) -> None:
        await super().put(content, path, mode)
        self.folders.add(path.rpartition("/")[0])

    def _given(self, command: Command) -> Given:
        for rule in reversed(self._rules):
            if rule.fits(command):
                return rule.next()
        return self._lease(command) or self._rank(command) or self.default or Completed(0, "")

    def _lease(self, command: Command) -> Completed | None:
        args = command.argv[4:]
        if "staging lease" in command.changes or command == lease.renew_lease(
            args[-1] if args else "", lease.Of.STAGING
        ):
            return Completed(0, "")  # always free
        if command.changes == "take lease":
            return self._take(*args)
        if command == lease.show_lease():
            return Completed(0, f"{self.age}\n{self.holder}" if self.holder else "")
        if command.changes == "seize lease":
            self.holder, self.age = args[0], 0
            self.note("seize")
        elif command.changes == "release lease":
            if self.holder and args[0] in self.holder:
                self.holder = None
                self.note("release")
        elif len(args) == 1 and command == lease.renew_lease(args[0]):
            return self._mine(args[0])
        else:
            return None
        return Completed(0, "")

    def _take(self, content: str, nonce: str) -> Completed:
        if self.holder is None:
            self.holder = content
            self.note("take")
        return self._mine(nonce)

    def _mine(self, nonce: str) -> Completed:
        mine = self.holder is not None and nonce in self.holder
        return Completed(0, "") if mine else Completed(lease.HELD, f"{self.age}\n{self.holder or ''}")

    def _rank(self, command: Command) -> Completed | None:
        if command == ranks.command(command.argv[-1]):
            return Completed(0, "".join(self._row(handle, rank) for handle, rank in self.ranks.items()))
        if command == process.make_folder(command.argv[-1]):
            return Completed(0, "")
        if command.changes.startswith("start "):
            return self._start(command)
        if command.changes.startswith("stop "):
            return self._stop(command, command.argv[5:])
        if command.changes.startswith("forget "):
            return self._forget(f"{command.argv[4]}/deployments/{command.argv[5]}")
        return None

    def _row(self, handle: str, rank: Rank) -> str:
        state = rank.state if rank.state == "running" else f"exited {rank.exit.code}"
        return f"rank\t{handle}\t{state}\t{self.started}\t{json.dumps(dict(rank.labels))}\n"

    def _start(self, command: Command) -> Completed:
        handle, *program = command.argv[4:]
        labels = given_to(command, "labels")
        if self.refuses:
            return self.refuses
        self.note(f"start {json.loads(labels)['rank']}")
        self.ranks[handle] = Rank(json.loads(labels), tuple(program))
        self.folders.add(handle)
        return Completed(0, "")

    def _stop(self, command: Command, handles: Sequence[str]) -> Completed:
        remove = command == process.remove(handles, int(command.argv[4]))
        for handle in handles:
            rank = self.ranks.get(handle)
            self.note(f"{'remove' if remove else 'stop'} {rank.labels['rank'] if rank else handle}")
            if rank:
                rank.end(Exit(143))
            if remove:
                self.ranks.pop(handle, None)
                self.folders.discard(handle)
        return Completed(0, "")

    def _forget(self, folder: str) -> Completed:
        self.note("forget")
        left = {one for one in self.folders if one.startswith(folder)}
        self.folders -= left
        self.files = {path: text for path, text in self.files.items() if not path.startswith(folder)}
        return Completed(0, "was\n" if left else "")

    async def stream(self, command: Command) -> AsyncIterator[str]:
        """A rank's log; anything else as its rules state."""
        handle = command.argv[4] if len(command.argv) > 4 else ""
        if handle not in self.ranks or command != process.follow(handle, mark=command.argv[-1]):
            async for line in super().stream(command):
                yield line
            return
        self.open_streams += 1
        try:
            async for line in self._play(self.ranks[handle], command.argv[-1]):
                yield line
        finally:
            self.open_streams -= 1

    async def _play(self, rank: Rank, mark: str) -> AsyncIterator[str]:
        for item in self.script:
            if isinstance(item, Exit):
                rank.end(item)
            elif isinstance(item, str):
                yield item
            else:
                await self.clock.sleep(item)
        await rank.over.wait()
        now = self.clock.now()
        oom = "true" if rank.exit.oom else "false"
        yield f"\x1eexit {mark} exited {rank.exit.code} {oom} {now - rank.exit.ago:.3f} {now:.3f}"


def given_to(command: Command, name: str) -> str:
    """The value of a variable that a script begins with (`remote.host.assigned`)."""
    (line,) = re.findall(rf"^{name}=('.*')$", command.argv[2], re.MULTILINE)
    return shlex.split(line)[0]
