"""The folder of one supervisor on the head node: what it is to keep serving, what it remembers, and its log."""

import fcntl
import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from sparkwright.adapters.artifacts import write
from sparkwright.domain.codec import Unreadable, from_json, to_json
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import Busy, UsageError
from sparkwright.domain.live import SERVING, STALE, VERSION, DeploymentState, Desired, Live, Request
from sparkwright.domain.progress import Happening, Notice, RankPhase, StepDone, StepStarted
from sparkwright.supervisor.core.state import ALIVE, State

MOST = 1 << 20


class Log:
    """Implements ports.Sink. The file before it is `log.1`. Of a rank's lines only the first of a phase."""

    def __init__(self, path: Path, now: Callable[[], float], most: int = MOST) -> None:
        self._path, self._now, self._most = path, now, most
        self._phases: dict[int, RankPhase] = {}

    def write(self, text: str) -> None:
        """Never fails: a full disk is no reason to serve nobody."""
        stamp = datetime.fromtimestamp(self._now(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
        with suppress(OSError):
            if self._path.exists() and self._path.stat().st_size > self._most:
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            with self._path.open("a", encoding="utf-8", errors="replace") as file:
                file.write(f"{stamp}Z {' '.join(text.split())}\n")

    def report(self, happening: Happening) -> None:
        if isinstance(happening, RankPhase):
            before = self._phases.get(happening.rank)
            self._phases[happening.rank] = happening
            if before and before.phase == happening.phase:
                return
        if text := happening_line(happening):
            self.write(text)


def happening_line(happening: Happening) -> str:
    """The log line of a happening; '' for progress, which only a screen wants."""
    if isinstance(happening, Notice):
        return f"{'warning: ' if happening.warning else ''}{happening.text}"
    if isinstance(happening, StepStarted):
        return f"{happening.step} {happening.detail}"
    if isinstance(happening, StepDone):
        return f"{happening.step} done in {happening.seconds:.1f} s {happening.detail}"
    if isinstance(happening, RankPhase):
        return f"rank {happening.rank} on {happening.node}: {happening.phase} {happening.text}"
    return ""


# Bytes that are ours when the disk is full, of each file that is written again and again.
_ROOM = 16384
_OLDER = "; the one before it is kept up, which may be another recipe: `sparkwright up RECIPE` writes it again"


class Home:
    """The journal. notice: called with what cannot be read or written."""

    def __init__(self, path: Path, notice: Callable[[str], None]) -> None:
        self.path = path
        self._notice = notice
        self._wrong: dict[str, str] = {}
        self._mark, self._alive = self._marked(), dict[str, float]()
        with suppress(OSError):
            self._alive = {ALIVE: (path / "live.json").stat().st_mtime}

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the lock by which at most one supervisor of this folder acts; it goes with its process. Raises Busy."""
        handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = os.read(handle, 20).decode("ascii", "replace").strip() or "unknown"
            os.close(handle)
            raise Busy(f"{self.path}: another supervisor (process {other}) is at work there", "end that one") from None
        try:
            os.ftruncate(handle, 0)
            os.write(handle, f"{os.getpid()}\n".encode())
            yield
        finally:
            os.close(handle)

    def desired(self) -> Desired:
        """Raises UsageError when neither desired.json nor the one before it can be read."""
        for name in ("desired.json", "desired.json.bak"):
            try:
                found = from_json(Desired, (self.path / name).read_bytes())
            except (OSError, Unreadable) as error:
                self._notice(f"{name} cannot be read: {error}")
                self._wrong["desired-file"] = f"{self.path / name} cannot be read ({error}){_OLDER}"
                continue
            if found.version > VERSION:
                raise UsageError(
                    f"{self.path / name} is of a newer sparkwright (version {found.version}, known: {VERSION}), so "
                    "nothing is changed",
                    "`sparkwright up RECIPE` with one sparkwright writes it again",
                )
            return found
        hint = f"`sparkwright up RECIPE` writes it again, `sparkwright down {self.path.name}` ends it"
        raise UsageError(f"{self.path}: what is to be served cannot be read, so nothing is changed", hint)

    def secrets(self) -> dict[str, Secret]:
        """The secrets; {} with a warning if they cannot be read. A file that others can read is closed, with a
        warning."""
        path = self.path / "secrets.json"
        try:
            if path.stat().st_mode & 0o077:
                path.chmod(0o600)
                self._found("secrets-file", f"others could read {path}; closed now: think about new keys")
            found = json.loads(path.read_bytes())
            return {str(name): Secret(str(value)) for name, value in found.items()}
        except (OSError, ValueError, AttributeError) as error:
            hint = "an engine that wants a key cannot be asked or started; `sparkwright up RECIPE` writes it again"
            self._found("secrets-file", f"{path} cannot be read ({error}): {hint}")
            return {}

    def wrong(self) -> dict[str, str]:
        """The faults of files that were read; one of a state put aside stays while that file exists."""
        bad = self.path / "state.json.bad"
        aside = f"{bad.with_suffix('')} was corrupt; state was rebuilt from the running ranks and the restart counter "
        aside += f"reset. The old file is {bad.name}."
        return self._wrong | ({"state-file": aside} if bad.exists() else {})

    def _found(self, kind: str, what: str) -> None:
        self._wrong[kind] = what
        self._notice(f"warning: {what}")

    def nonce(self, fresh: str) -> str:
        """The same for every supervisor of this folder: the one after a killed one has its leases at once."""
        path = self.path / "nonce"
        with suppress(OSError):
            if not path.exists():
                write(path, fresh.encode())
            return path.read_text("ascii", "replace").strip() or fresh
        return fresh

    def load(self) -> State | None:
        path = self.path / "state.json"
        try:
            return from_json(State, path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, Unreadable) as error:
            with suppress(OSError):
                path.replace(path.with_suffix(".json.bad"))
            self._notice(f"warning: {path} cannot be read ({error}); kept as state.json.bad, going on from what runs")
            return None

    def save(self, state: State) -> str:
        return self._kept("state.json", to_json(state))

    def show(self, live: Live) -> None:
        with suppress(OSError):
            write(self.path / "live.json", to_json(replace(live, pid=os.getpid())).encode(), sync=False, room=_ROOM)

    def serving_next_to(self) -> frozenset[str]:
        """Other deployments with this head that serve, by what their supervisors have shown just now."""
        found = ((one.parent.name, _shown(one)) for one in self.path.parent.glob("*/live.json"))
        return frozenset(name for name, live in found if name != self.path.name and live and live.phase in SERVING)

    def on_demand_next_to(self, nodes: Collection[str]) -> list[str]:
        """Names of the deployments that serve on demand on any of these nodes."""
        found = []
        for name in sorted(self.serving_next_to()):
            with suppress(OSError, Unreadable):
                other = from_json(Desired, (self.path.parent / name / "desired.json").read_bytes())
                there = {node.name for node in other.cluster.nodes}
                found += [name] if other.recipe.serving.on_demand and there.intersection(nodes) else []
        return found

    def ask(self, name: str, request: Request) -> None:
        """Another supervisor on this head; a person's request to it comes first."""
        path = self.path.parent / name / "request.json"
        part = path.with_name(f"{path.name}.{request.nonce}.{os.getpid()}")
        with suppress(OSError):
            try:
                write(part, to_json(request).encode(), sync=False)
                os.link(part, path)  # fails if there is one: a request is never overwritten
            finally:
                part.unlink(missing_ok=True)

    def phase_of(self, name: str) -> DeploymentState | None:
        """The phase of another deployment with this head; None if its supervisor has not shown it lately."""
        live = _shown(self.path.parent / name / "live.json")
        return live.phase if live else None

    def wanted(self) -> bool:
        return self._mark == self._marked()

    def request(self) -> Request | None:
        """One that cannot be read is removed."""
        path = self.path / "request.json"
        try:
            age = time.time() - path.stat().st_mtime
            return replace(from_json(Request, path.read_bytes()), age=age)
        except FileNotFoundError:
            return None
        except (OSError, Unreadable) as error:
            self._notice(f"warning: {path} cannot be read: {error}")
            self.answered()
            return None

    def answered(self, nonce: str = "") -> None:
        """Removes the request. nonce: only the one of this caller; another one's may have come meanwhile."""
        path = self.path / "request.json"
        taken = path.with_name("request.taken")
        with suppress(OSError):
            path.replace(taken)
            if nonce and f'"{nonce}"' not in taken.read_text("utf-8", "replace"):
                os.link(taken, path)
            taken.unlink()

    def recall(self) -> dict[str, float]:
        try:
            found = json.loads((self.path / "figures.json").read_bytes())
            return {str(name): float(value) for name, value in found.items()} | self._alive
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def remember(self, figures: Mapping[str, float]) -> None:
        self._kept("figures.json", json.dumps(dict(figures)))

    def _kept(self, name: str, text: str) -> str:
        try:
            write(self.path / name, text.encode(), room=_ROOM)
        except OSError as error:
            return f"{self.path / name} cannot be written: {error.strerror or error}"
        return ""

    def _marked(self) -> tuple[int, int] | None:
        """Differs between one desired.json and the next; None without one."""
        try:
            found = (self.path / "desired.json").stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns


def _shown(path: Path) -> Live | None:
    """None where nobody has written it lately."""
    with suppress(OSError, Unreadable):
        live = from_json(Live, path.read_bytes())
        return live if abs(time.time() - live.at) < STALE else None
    return None
