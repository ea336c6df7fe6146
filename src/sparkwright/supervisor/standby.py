"""The head or the standby, as a program on that node: it keeps the votes by which one of the two may serve.

`term.json` has until when, and the seal by which the nodes know the one who supervises. The gateway's own process reads
it before each request, and a supervisor before each command, so a head that is cut off, or whose programs were stopped
for a while, refuses by itself. The head also copies its keys, its CA and its supervisors' memory to the standby. The
standby starts the gateway's programs and supervisors while it has the votes, and ends them before its term is over.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

from sparkwright.adapters.artifacts import write
from sparkwright.adapters.hooks import Hooks
from sparkwright.adapters.machine import SystemClock, boot_id, seconds_since_boot, whoami
from sparkwright.adapters.notify import Notifier
from sparkwright.adapters.sqlite.store import SqliteStore
from sparkwright.adapters.ssh import SshSettings
from sparkwright.adapters.watchdog import watched_by_systemd
from sparkwright.app.services import Services
from sparkwright.domain.cluster import Node
from sparkwright.domain.codec import Unreadable, from_json, to_json
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.errors import NodeError, UsageError
from sparkwright.domain.incident import Incident, News
from sparkwright.domain.live import DeploymentState, Live
from sparkwright.domain.standby import FOLDER, NEEDS_HEAD, RETURN_FILE, ROLE, TERM_FILE, StandbyRole, Term
from sparkwright.domain.units import duration
from sparkwright.domain.values import replace
from sparkwright.gateway.keys import ROUTE, RouteSetting
from sparkwright.remote import votes as commands
from sparkwright.remote.seal import parse_seal, raise_seal, show_seal
from sparkwright.supervisor.children import Children
from sparkwright.supervisor.core.seal import next_seal
from sparkwright.supervisor.core.term import (
    ASK_LIMIT,
    RENEW_EVERY,
    StandbyWait,
    Vote,
    end_of_term,
    held_by,
    is_majority,
)
from sparkwright.supervisor.home import Home, Log
from sparkwright.supervisor.successor import Successors, copied_files
from sparkwright.wiring import head_access, open_services, socket_folder

_CA = "ca/pki/authorities/local"
_COPIED = ("keys.json", *(f"{_CA}/{name}.{end}" for name in ("root", "intermediate") for end in ("crt", "key")))
_COPY_EVERY, _COPY_AGAIN, _SHOW_EVERY, _LOOK_EVERY = 2.0, 60.0, 2.0, 0.25
_RETURNED_FOR = 40.0
"""Seconds in which a standby that gave the role back does not ask for it."""
_ROOM = 4096
_SEAL_EVERY, _SEAL_LIMIT, _SEAL_PATIENCE = 10.0, 4.0, 1.0
_LATER = 3.0
_KIND = "head-away"


def main(path: Path) -> int:
    """Works until SIGTERM. Raises UsageError without a readable role, Busy if another process works there."""
    log = Log(path / "log", time.time)
    try:
        role = from_json(StandbyRole, (path / ROLE).read_bytes())
    except (OSError, Unreadable) as error:
        raise UsageError(f"{path / ROLE} cannot be read: {error}", "`sparkwright up RECIPE` writes it again") from None
    with Home(path, log.write).locked():
        asyncio.run(watched_by_systemd(_until_ended(path, role, log)))
    return 0


async def _until_ended(path: Path, role: StandbyRole, log: Log) -> None:
    work = asyncio.create_task(_work(path, role, log))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, work.cancel)
    with suppress(asyncio.CancelledError):
        await work


async def _work(path: Path, role: StandbyRole, log: Log) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NOTIFY_"))}
    ssh = SshSettings(control=socket_folder(path), connect_timeout=2, persist=10, environ=environ)
    log.write(f"{role.node} is the {'head' if role.node == role.head else 'standby'}; votes: {', '.join(role.voters)}")
    async with open_services(head_access(path, role.cluster, f"{whoami()} (standby)", ssh), log) as services:
        keeper = VoteKeeper(path, role, services, log)
        try:
            async with asyncio.TaskGroup() as group:
                for part in keeper.parts:
                    group.create_task(part())
        finally:
            await keeper.aclose()


class VoteKeeper:
    """The votes of this node, and what follows from them."""

    def __init__(self, home: Path, role: StandbyRole, services: Services, log: Log) -> None:
        self._home, self._role, self._services, self._log = home, role, services, log
        self._boot, self._is_head = boot_id(), role.node == role.head
        self._tree = Path(role.tree)
        folder = home if self._is_head else self._tree / "supervision" / FOLDER
        folder.mkdir(0o700, parents=True, exist_ok=True)
        self._term_path = folder / TERM_FILE
        self._term = self._stored() or Term(self._boot, 0.0)
        self._patience = StandbyWait(seconds_since_boot())
        self._programs = Children(role.programs, log.write)
        self._successors = Successors(self._tree, role.supervisor, log.write)
        self._records = Records(home.parents[1], role, log)
        self._nonces: dict[str, str] = {}
        self._copied: dict[str, tuple[str, float]] = {}
        self._copy_trouble = ""

    @property
    def parts(self) -> tuple[Callable[[], Coroutine[None, None, None]], ...]:
        if self._is_head:
            return self._keep_votes, self._keep_seal, self._copy
        return self._keep_votes, self._keep_seal, self._follow, self._show_lost

    async def aclose(self) -> None:
        """A standby that ends stops to serve; its votes run out by themselves."""
        await self._successors.end()
        await self._programs.stop()
        await self._records.aclose()

    @property
    def holds(self) -> bool:
        return self._term.is_held(self._boot, seconds_since_boot())

    def _stored(self) -> Term | None:
        with suppress(OSError, Unreadable):
            return from_json(Term, self._term_path.read_bytes())
        return None

    async def _keep_votes(self) -> None:
        while True:
            if self._is_head or (not await self._give_back() and (self.holds or await self._may_ask())):
                await self._ask()
            await asyncio.sleep(RENEW_EVERY)

    async def _ask(self) -> None:
        role, before, held = self._role, self._term, self.holds
        asked, nonce = seconds_since_boot(), token_hex(8)
        votes = await self._each(lambda place: commands.ask_vote(place, role.node, role.term, nonce))
        granted = [name for name, vote in votes.items() if vote and vote.granted]
        self._nonces |= dict.fromkeys(granted, nonce)
        if is_majority(granted, role.voters):
            # A head that had none is not in a hurry: its supervisors go on from one moment to the next
            seal = self._term.seal if held else await self._seal() if self._is_head else 0
            until = end_of_term(asked, role.term)
            self._term = Term(self._boot, until, at=time.time(), node=role.node, seal=seal)
            self._save()
            if not held and self.holds:
                await self._began(before)
        elif not self.holds:
            self._note_why(held_by(votes, role.voters), before)
            if not self._is_head:
                # What it has alone would keep the head from a majority: it lets that run out
                self._patience = self._patience.paused(seconds_since_boot() + role.term + _LATER)

    def _note_why(self, holder: str, before: Term) -> None:
        role = self._role
        why = f"{holder} serves in its place" if holder else f"it has not the votes of most of {', '.join(role.voters)}"
        if (before.why, before.holder) != (why, holder):
            self._log.write(f"{role.node} does not serve: {why}")
            self._term = Term(before.boot, before.until, why, holder, before.at)
            if self._term_path.exists() or not self._is_head:  # before its first votes a new head serves as it did
                self._save()

    async def _keep_seal(self) -> None:
        """The nodes' seal: asked for when it has none, and looked at again and again."""
        looked = 0.0
        while True:
            now = seconds_since_boot()
            if self.holds and (not self._term.seal or now - looked >= _SEAL_EVERY):
                seal, looked = await self._seal(), now
                if self.holds and seal and seal != self._term.seal:
                    self._term = replace(self._term, seal=seal)
                    self._save()
            await asyncio.sleep(_LOOK_EVERY if self.holds else RENEW_EVERY)

    async def _seal(self) -> int:
        """The number that most voters, and the other nodes as far as they answer, have now; 0 without a majority."""
        role, name = self._role, self._role.cluster.name
        seen = await self._answers(lambda state: show_seal(state, name))
        wanted = next_seal(
            {node: parse_seal(text) for node, text in seen.items() if node in role.voters}, role.voters, role.node
        )
        if wanted is None:
            return 0
        told = await self._answers(lambda state: raise_seal(state, name, wanted))
        sealed = [node for node, text in told.items() if text.strip().rpartition("\n")[2] == "sealed"]
        if not is_majority(sealed, role.voters):
            return 0
        if wanted.number != self._term.seal:
            self._log.write(f"supervises under seal {wanted.number}: {', '.join(sealed)}")
        return wanted.number

    async def _answers(self, made: Callable[[str], Command]) -> dict[str, str]:
        """Output of each node. A node that is slow when most voters have answered is not waited for."""
        nodes, voters, given = self._role.cluster.nodes, self._role.voters, dict[str, str]()

        async def one(node: Node) -> None:
            with suppress(NodeError):
                done = await self._services.run(node.name, made(node.paths.state))
                if done.ok:
                    given[node.name] = done.stdout

        tasks = [asyncio.create_task(one(node)) for node in nodes]
        began = seconds_since_boot()
        while not all(task.done() for task in tasks) and (passed := seconds_since_boot() - began) < _SEAL_LIMIT:
            if is_majority(given, voters) and passed >= _SEAL_PATIENCE:
                break
            await asyncio.wait(tasks, timeout=0.1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return given

    async def _each(self, made: Callable[[tuple[str, str]], Command]) -> dict[str, Vote | None]:
        """The answer of each voter, None without one in time."""

        async def one(name: str) -> Vote | None:
            try:
                async with asyncio.timeout(ASK_LIMIT):
                    return parse_vote(await self._services.run(name, made((self._role.cluster.name, name))))
            except (NodeError, TimeoutError):
                return None

        voters = self._role.voters
        return dict(zip(voters, await asyncio.gather(*map(one, voters)), strict=True))

    def _save(self) -> None:
        try:
            write(self._term_path, to_json(self._term).encode(), sync=False, room=_ROOM)
        except OSError as error:
            self._log.write(f"warning: {self._term_path} cannot be written: {error.strerror or error}")

    async def _began(self, before: Term) -> None:
        self._log.write(f"{self._role.node} serves from now on")
        gap = time.time() - before.at if before.at else 0.0
        if not self._is_head:
            await self._records.taken_over()
        elif gap > self._role.term:
            await self._records.regained(before.at, before.holder)

    # The standby

    async def _may_ask(self) -> bool:
        """True once most votes have been free for some seconds: the head has not renewed them."""
        role = self._role
        votes = await self._each(lambda place: commands.look_up(place, role.term))
        free = [name for name, vote in votes.items() if vote and not vote.holder]
        self._patience = self._patience.noting(is_majority(free, role.voters), seconds_since_boot())
        return self._patience.is_over(seconds_since_boot())

    async def _give_back(self) -> bool:
        """True after an `up` has asked for the role back: this node stops to serve, then its votes are free."""
        role, returned = self._role, self._home / RETURN_FILE
        if not returned.exists():
            return False
        returned.unlink(missing_ok=True)
        self._log.write(f"the role is given back to {role.head}")
        self._patience = self._patience.paused(seconds_since_boot() + _RETURNED_FOR)
        self._term = Term(self._boot, 0.0, f"{role.head} serves", role.head, self._term.at)
        self._save()
        await self._leave()
        nonces = self._nonces
        await self._each(lambda place: commands.release(place, role.term, nonces.get(place[1], "-")))
        return True

    async def _follow(self) -> None:
        """Programs run while it has the votes, and end with them."""
        while True:
            if self.holds:
                self._programs.start()
                await self._successors.follow()
            else:
                await self._leave()
            await asyncio.sleep(_LOOK_EVERY)

    async def _leave(self) -> None:
        await self._successors.end()
        if self._programs.run:
            await self._programs.stop()
            self._log.write(f"{self._role.node} does not serve any more")
            await self._records.given_back()

    async def _show_lost(self) -> None:
        """Deployments that cannot do without the head are refused with that reason, for as long as this node serves."""
        while True:
            if self.holds:
                self._show_lost_once()
            await asyncio.sleep(_SHOW_EVERY)

    def _show_lost_once(self) -> None:
        for mark in self._tree.glob(f"supervision/*/{NEEDS_HEAD}"):
            now, needed = time.time(), ""
            with suppress(OSError):
                needed = mark.read_text("utf-8", "replace").strip()[:_ROOM]
            why = f"it has a rank on {self._role.head}, which is away"
            why += f"; its plan needs {needed}" if needed else ""
            shown = Live(now, mark.parent.name, DeploymentState.FAILED, self._term.at, why, refusing=True, why=why)
            with suppress(OSError):
                write(mark.parent / "live.json", to_json(shown).encode(), sync=False)

    # The head

    async def _copy(self) -> None:
        """Keys and CA, when they have changed and once a minute: also while this node does not serve, since keys are
        made and revoked on the head only. The supervisors' memory only while it serves."""
        state, tree = self._home.parents[1], self._role.tree
        while True:
            files = [(state / "door" / name, f"{tree}/door/{name}") for name in _COPIED]
            for path, there in (*files, *(copied_files(state, tree) if self.holds else ())):
                if not await self._copy_file(path, there):
                    break  # the next one would be waited for as long
            await asyncio.sleep(_COPY_EVERY)

    async def _copy_file(self, path: Path, there: str) -> bool:
        """False if the standby has not got it."""
        role, now = self._role, seconds_since_boot()
        content = _content(path)
        if content is None:
            return True
        mark = sha256(content).hexdigest()
        before, at = self._copied.get(there, ("", 0.0))
        if mark == before and now - at < _COPY_AGAIN:
            return True
        trouble = ""
        try:
            async with asyncio.timeout(10):
                await self._services.hosts[role.standby].put(content, there, 0o600)
            self._copied[there] = mark, now
        except NodeError as error:
            trouble = error.message
        except TimeoutError:
            trouble = "no answer"
        if trouble != self._copy_trouble:
            self._log.write(f"warning: {path.name} is not on {role.standby}: {trouble}" if trouble else "copied again")
        self._copy_trouble = trouble
        return not trouble


class Records:
    """Incidents of each model, and messages about them."""

    def __init__(self, state: Path, role: StandbyRole, log: Log) -> None:
        self._role, self._log = role, log
        self._routes = Path(role.tree) if role.node == role.standby else state
        self._store, self._open = SqliteStore(state, log.write), dict[str, int]()
        self._told = Hooks(state, log.write), Notifier(state, log.write)

    async def aclose(self) -> None:
        await asyncio.gather(*(one.aclose() for one in self._told))
        await self._store.aclose()

    async def taken_over(self) -> None:
        role, now = self._role, time.time()
        what = f"{role.head} gave no sign of life to most of the nodes; "
        what += f"{role.standby} has taken its gateway and supervision over"
        for name in self._models():
            made = Incident(name, _KIND, what, now, simulated=role.cluster.simulated)
            opened = await self._store.open(made.began(now, SystemClock().uptime()))
            self._open[name] = opened.number
            text = f"{what}. Clients use {role.url}"
            self._announce(News("degraded", text, name, now, incident=opened.number))

    async def given_back(self) -> None:
        now, text = time.time(), f"{self._role.head} has its gateway and supervision back"
        for name, number in self._open.items():
            await self._store.close(number, now, text, now, SystemClock().uptime())
            self._announce(News("recovered", text, name, now, incident=number))
        self._open.clear()

    async def regained(self, lost_at: float, holder: str) -> None:
        """Records on the head an incident that is over."""
        role, now = self._role, time.time()
        by = f"{holder} served in its place" if holder else "nobody is known to have served in its place"
        what = f"the gateway of {role.head} did not serve for {duration(now - lost_at)}, without most votes; {by}"
        for name in self._models():
            opened = await self._store.open(Incident(name, _KIND, what, lost_at, simulated=role.cluster.simulated))
            await self._store.close(opened.number, now, f"{role.head} has most votes again", now)
            self._announce(News("recovered", what, name, now, incident=opened.number))

    def _announce(self, news: News) -> None:
        self._log.write(f"{news.deployment}: {news.text}")
        for one in self._told:
            one.announce(news)

    def _models(self) -> list[str]:
        found: dict[str, None] = {}
        for path in self._routes.glob(f"supervision/*/door/{ROUTE}"):
            with suppress(OSError, Unreadable):
                setting = from_json(RouteSetting, path.read_bytes())
                found[setting.replica_of or setting.deployment] = None
        return sorted(found)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def parse_vote(done: Completed) -> Vote | None:
    """None for an answer that is none. A login that prints something comes before it."""
    match done.stdout.strip().rpartition("\n")[2].split() if done.ok else ():
        case ["granted"]:
            return Vote(granted=True)
        case ["free"]:
            return Vote(granted=False)
        case ["held", holder]:
            return Vote(granted=False, holder=holder)
    return None
