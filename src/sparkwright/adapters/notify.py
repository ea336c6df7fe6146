"""Messages to the owner by ntfy, chat webhooks and the local mailer. Supervision never waits for any of them."""

import asyncio
import os
import socket
import stat
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

from sparkwright.adapters.hooks import post_json, run_bounded
from sparkwright.domain.codec import Unreadable, from_json
from sparkwright.domain.incident import News
from sparkwright.domain.notify import FILE, FOLDER, MAX_CHANNELS, Delivery, Form, Receiver, Receivers, is_safe_address
from sparkwright.emit.notification import body_of, is_urgent, mail_of, sentence

MAILERS = ("/usr/sbin/sendmail", "/usr/lib/sendmail", "/usr/bin/sendmail")
_LIMIT = 10.0  # seconds for each try
_RETRIES = (5.0, 30.0, 120.0)  # seconds before each further try: the network may be what has failed
_LONGEST_WAIT = 300.0  # seconds, of a receiver's own `Retry-After`
_MOST_BYTES = 64 << 10
_WAITING = 32
_TEMPORARY_EXIT = 75  # EX_TEMPFAIL of sysexits.h
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
Notice = Callable[[str], None]


class Notifier:
    """Send news to the receivers in `state`/notify/notify.json, which is read again for each piece of news.

    notice: called with what went wrong, without addresses. retries: seconds before each further try.
    """

    def __init__(self, state: Path, notice: Notice, limit: float = _LIMIT, retries: Sequence[float] = _RETRIES) -> None:
        self._path, self._notice = state / FOLDER / FILE, notice
        self._limit, self._retries = limit, tuple(retries)
        self._lines: dict[Receiver, _Line] = {}
        self._held: dict[str, asyncio.TimerHandle] = {}

    def announce(self, news: News) -> None:
        """Return at once. A beginning is told only when the outage lasts; its end, with how long it was, always."""
        receivers = self._receivers()
        if held := self._held.pop(news.deployment, None):
            held.cancel()
        if news.what == "opened" and receivers.receivers:
            late = replace(news, away=receivers.after)
            loop = asyncio.get_running_loop()
            self._held[news.deployment] = loop.call_later(receivers.after, self._begun, late)
            return
        self._pass(receivers, news)

    async def aclose(self) -> None:
        """End all sending, after the time limit at the latest."""
        for held in self._held.values():
            held.cancel()
        await asyncio.gather(*(line.aclose(self._limit) for line in self._lines.values()))

    def _begun(self, news: News) -> None:
        self._held.pop(news.deployment, None)
        self._pass(self._receivers(), news)

    def _pass(self, receivers: Receivers, news: News) -> None:
        """Lines of receivers that are no longer wanted end with what they still have to send."""
        for gone in [known for known in self._lines if known not in receivers.receivers]:
            del self._lines[gone]
        for receiver in receivers.receivers:
            line = self._lines.setdefault(receiver, _Line(receiver, self._notice, self._limit, self._retries))
            line.add(news, receivers.per_hour)

    def _receivers(self) -> Receivers:
        try:
            return read_receivers(self._path)
        except FileNotFoundError:
            return Receivers()
        except (OSError, Unreadable) as error:
            self._notice(f"notifications are not sent: {self._path}: {error}")
            return Receivers()


class _Line:
    """The messages to one receiver, in their order. What the rate limit keeps back, a later message counts."""

    def __init__(self, receiver: Receiver, notice: Notice, limit: float, retries: tuple[float, ...]) -> None:
        self._receiver, self._notice, self._limit, self._retries = receiver, notice, limit, retries
        self._waiting: deque[News] = deque()
        self._urgent = asyncio.Event()
        self._skipped = 0
        self._per_hour, self._tokens, self._filled = 0, 0.0, time.monotonic()
        self._task: asyncio.Task[None] | None = None

    def add(self, news: News, per_hour: int) -> None:
        if self._per_hour != per_hour:
            self._per_hour, self._tokens = per_hour, float(per_hour)
        if len(self._waiting) >= _WAITING:
            self._waiting.popleft()
            self._skipped += 1
        self._waiting.append(news)
        if is_urgent(news):
            self._urgent.set()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._send_all())

    async def aclose(self, limit: float) -> None:
        if self._task is not None:
            await asyncio.wait([self._task], timeout=limit)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _send_all(self) -> None:
        while self._waiting:
            if not await self._allowed():
                # The last one has how things are now: it is sent in place of all
                self._skipped += len(self._waiting) - 1
                self._waiting = deque([self._waiting[-1]])
            news = self._waiting.popleft()
            if not any(is_urgent(one) for one in self._waiting):
                self._urgent.clear()
            skipped, self._skipped = self._skipped, 0
            if trouble := await self._tried(news, skipped):
                self._notice(f"notification by {name_of(self._receiver)}: {trouble}")

    async def _allowed(self) -> bool:
        """Take a token of the rate limit; False if there was none, after a wait unless something urgent is there."""
        now, rate = time.monotonic(), self._per_hour / 3600
        self._tokens = min(float(self._per_hour), self._tokens + (now - self._filled) * rate)
        self._filled, wait = now, (1 - self._tokens) / rate
        self._tokens = max(0.0, self._tokens - 1)
        if wait <= 0:
            return True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._urgent.wait(), wait)
        self._filled = time.monotonic()
        return False

    async def _tried(self, news: News, skipped: int) -> str:
        """Try again what may succeed later; '' or why it was given up."""
        for number in count():
            delivery, later = await deliver(self._receiver, news, skipped, self._limit)
            if not delivery.trouble or later is None or number >= len(self._retries):
                return delivery.trouble
            await asyncio.sleep(max(self._retries[number], later))
        raise AssertionError("endless")


def read_receivers(path: Path) -> Receivers:
    """Raises OSError and Unreadable, also when others may read the file: its addresses hold tokens."""
    found = path.stat()
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise Unreadable("others may read it; chmod 600 it, and think about new addresses")
    if found.st_size > _MOST_BYTES:
        raise Unreadable(f"it has {found.st_size} bytes")
    return understood(path.read_bytes())


def understood(text: bytes) -> Receivers:
    """Raises Unreadable, without any part of the text that could be a secret."""
    try:
        read = from_json(Receivers, text)
    except Unreadable as error:
        raise Unreadable(f"it cannot be read ({str(error).partition(':')[0]})") from None
    if len(read.receivers) > MAX_CHANNELS:
        raise Unreadable(f"more than {MAX_CHANNELS} receivers")
    if read.per_hour < 1 or read.after < 0:
        raise Unreadable("per_hour is at least 1, after at least 0")
    return read


def name_of(receiver: Receiver) -> str:
    """Form, and host or mailboxes: no part of it is a secret."""
    if receiver.form is Form.MAIL:
        return f"mail ({', '.join(receiver.to)})"
    with suppress(ValueError):
        return f"{receiver.form} ({urlsplit(receiver.url).hostname or 'no host'})"
    return f"{receiver.form} (no address)"


async def deliver(
    receiver: Receiver, news: News, skipped: int = 0, limit: float = _LIMIT
) -> tuple[Delivery, float | None]:
    """One try. Also the seconds after which another one makes sense, None when none does."""
    began, later = time.monotonic(), 0.0
    try:
        async with asyncio.timeout(limit):
            send = _mailed if receiver.form is Form.MAIL else _posted
            trouble, wait = await send(receiver, news, sentence(news, skipped))
    except TimeoutError:
        trouble, wait = f"no answer within {limit:g} s", later
    except Exception as error:  # whatever a receiver does, supervision goes on
        trouble, wait = _masked(f"{type(error).__name__}: {error}", receiver), later
    return Delivery(name_of(receiver), trouble, time.monotonic() - began), wait if trouble else None


async def _posted(receiver: Receiver, news: News, text: str) -> tuple[str, float | None]:
    try:
        parts = urlsplit(receiver.url)
        safe = is_safe_address(parts.scheme, parts.hostname or "")
    except ValueError:
        safe = False
    if not safe:
        return "its address must begin with https:// (http only within this machine)", None
    address = receiver.url
    if receiver.form is Form.NTFY:
        address = receiver.url.rstrip("/").rpartition("/")[0]
    status, after = await post_json(address, body_of(receiver, news, text), receiver.token)
    if 200 <= status < 300:
        return "", None
    again = status in (408, 429) or status >= 500
    asked = float(after) if after.isascii() and after.isdigit() and len(after) < 6 else 0.0
    return f"HTTP {status}", min(asked, _LONGEST_WAIT) if again else None


async def _mailed(receiver: Receiver, news: News, text: str) -> tuple[str, float | None]:
    program = receiver.program or next((path for path in MAILERS if os.access(path, os.X_OK)), "")
    if not program or not os.access(program, os.X_OK):
        return f"no mailer: {program or ', '.join(MAILERS)} cannot be run on this node", None
    mail = mail_of(receiver, news, text, socket.gethostname(), time.time())
    environment = {"PATH": _PATH, "HOME": str(Path.home()), "LANG": "C.UTF-8"}
    code = await run_bounded((program, "-i", *receiver.to), mail, environment, Path("/"))
    return (f"{program}: exit code {code}", 0.0 if code == _TEMPORARY_EXIT else None) if code else ("", None)


def _masked(text: str, receiver: Receiver) -> str:
    for secret in filter(None, (receiver.url, receiver.token, urlsplit(receiver.url).path)):
        text = text.replace(secret, "***") if len(secret) > 1 else text
    return text[:300]
