"""Programs and addresses that are notified of incidents. Whatever they do, or fail to do, the supervisor continues."""

import asyncio
import json
import os
import signal
import stat
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpcore

from sparkwright.adapters.process import end_process
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.incident import News
from sparkwright.domain.notify import is_safe_address
from sparkwright.emit.notification import document

PROGRAMS = "hooks"
ADDRESSES = "hooks.json"
_LIMIT = 10.0  # seconds for each
_WAITING = 32
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_MAY_READ = stat.S_IRGRP | stat.S_IROTH
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Hooks:
    """Sends news to what is in `state` when news come: executable files in hooks/, URLs in hooks.json.

    News are sent in their order, each to all at once and with a time limit. notice: called with what went wrong.
    """

    def __init__(self, state: Path, notice: Callable[[str], None], limit: float = _LIMIT) -> None:
        self._state = state
        self._notice = notice
        self._limit = limit
        self._waiting: deque[News] = deque(maxlen=_WAITING)
        self._task: asyncio.Task[None] | None = None

    def announce(self, news: News) -> None:
        """Returns at once. Where hooks are so slow that too many wait, the oldest are forgotten."""
        self._waiting.append(news)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._tell_all())

    async def aclose(self) -> None:
        """Ends them after their time limit at the latest."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=self._limit)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _tell_all(self) -> None:
        while self._waiting:
            hooks = self._hooks(self._waiting.popleft())
            await asyncio.gather(*(self._bounded(name, tell) for name, tell in hooks))

    async def _bounded(self, name: str, tell: Awaitable[str]) -> None:
        try:
            async with asyncio.timeout(self._limit):
                trouble = await tell
        except TimeoutError:
            trouble = f"was ended after {self._limit:g} s"
        except Exception as error:  # whatever a hook does, the supervisor goes on
            trouble = f"{type(error).__name__}: {error}"
        if trouble:
            self._notice(f"hook {name}: {trouble}")

    def _hooks(self, news: News) -> Iterator[tuple[str, Awaitable[str]]]:
        for path in self._programs():
            yield path.name, _run(path, news)
        for address in self._addresses():
            yield urlsplit(address).hostname or "?", _post(address, news)

    def _programs(self) -> list[Path]:
        folder = self._state / PROGRAMS
        try:
            why = _lax(folder)
            found = [path for path in sorted(folder.iterdir()) if path.is_file() and os.access(path, os.X_OK)]
            wanted = [] if why else [path for path in found if self._ours(path)]
        except FileNotFoundError:
            return []
        except OSError as error:
            why, wanted = str(error), []
        if why:
            self._notice(f"hooks in {folder} are not run: {why}")
        return wanted

    def _ours(self, path: Path) -> bool:
        """True if only its owner can change the hook: anything else is not run in our name."""
        if why := _lax(path):
            self._notice(f"hook {path.name} is not run: {why}")
        return not why

    def _addresses(self) -> list[str]:
        """The URLs often hold a token: who else can read the file would have it."""
        path = self._state / ADDRESSES
        try:
            if path.stat().st_mode & (_OTHERS_MAY_READ | _OTHERS_MAY_WRITE):
                self._notice(f"{path} is not used: others may read it; chmod 600 {path}")
                return []
            found = read_json(path.read_bytes())["webhooks"]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError):
            self._notice(f'{path} cannot be read; it should be {{"webhooks": ["https://..."]}}')
            return []
        wanted = [str(address) for address in found] if isinstance(found, list) else []
        return [address for address in wanted if self._safe(address)]

    def _safe(self, address: str) -> bool:
        try:
            parts = urlsplit(address)
        except ValueError:
            parts = urlsplit("")
        if is_safe_address(parts.scheme, parts.hostname or ""):
            return True
        self._notice(f"webhook {parts.hostname}: only https, or http on this machine")
        return False


def _lax(path: Path) -> str:
    found = path.stat()
    if found.st_uid not in (0, os.geteuid()):
        return "it belongs to somebody else"
    return f"others may write it; chmod go-w {path}" if found.st_mode & _OTHERS_MAY_WRITE else ""


def _content(news: News) -> bytes:
    """The JSON that a hook gets: on stdin, or as the body."""
    return json.dumps(document(news), ensure_ascii=False).encode("utf-8", "replace")


def _environment(news: News) -> dict[str, str]:
    told = {"EVENT": news.what, "TEXT": news.text, "DEPLOYMENT": news.deployment, "STATE": news.state}
    told |= {"INCIDENT": str(news.incident or ""), "FOLDER": news.folder, "SIMULATED": "1" if news.simulated else ""}
    named = {f"SPARKWRIGHT_{name}": value.replace("\0", "") for name, value in told.items()}
    return {"PATH": _PATH, "HOME": str(Path.home()), "LANG": "C.UTF-8", **named}


async def _run(path: Path, news: News) -> str:
    code = await run_bounded((str(path),), _content(news), _environment(news), path.parent)
    return f"exit code {code}" if code else ""


async def run_bounded(argv: Sequence[str], content: bytes, env: Mapping[str, str], folder: Path) -> int:
    """Run a program and return its exit code. It ends with all that it started, also at a cancellation."""
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=pipe, stdout=null, stderr=null, env=env, cwd=folder, start_new_session=True
    )
    try:
        await process.communicate(content)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await end_process(process, 0.0)
    return process.returncode or 0


async def _post(address: str, news: News) -> str:
    status, _ = await post_json(address, _content(news))
    return "" if 200 <= status < 300 else f"HTTP {status}"


async def post_json(address: str, body: bytes, token: str = "") -> tuple[int, str]:
    """Send JSON; return the status and `Retry-After`. No redirect is followed, and no body is read."""
    headers = [("Content-Type", "application/json"), ("User-Agent", "sparkwright")]
    headers += [("Authorization", f"Bearer {token}")] if token else []
    async with (
        httpcore.AsyncConnectionPool() as pool,
        pool.stream("POST", address, headers=headers, content=body) as answer,
    ):
        later = next((value for name, value in answer.headers if name.lower() == b"retry-after"), b"")
        return answer.status, later.decode("ascii", "replace")
