"""The worker's event loop: uvloop, where what came is read before anything else is done, and the rest waits."""

import asyncio
import select
from array import array
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Any, cast

import uvloop

BEAT = 0.01
_BURST = 8  # requests sent between two polls
_FEW = 4  # pieces of put-off work at a beat, however much there is to read
_COARSE = 0.002
_MUCH = 2048  # pieces of put-off work that may wait before reading has to


class WorkerLoop:
    """`starts` are done a few between two polls, `work` when there is nothing to read. delays: of each beat, seconds.

    reads: counted by the connections. A beat that comes late counts for the beats that it delayed, too, as a waiting
    stream would have seen them.
    """

    def __init__(self) -> None:
        self.aio = uvloop.new_event_loop()
        self.aio.set_exception_handler(self._failed)
        self._poll: int = cast(Any, self.aio)._get_backend_id()
        self.starts: deque[Callable[[], None]] = deque()
        self._work: deque[Callable[[], None]] = deque()
        self._armed, self._seen, self.reads = False, 0, 0
        self._error: BaseException | None = None
        self.delays = array("d")

    def start(self, call: Callable[[], None]) -> None:
        self.starts.append(call)
        self._arm()

    def later(self, call: Callable[[], None]) -> None:
        self._work.append(call)
        self._arm()

    def at(self, when: float, call: Callable[[], None]) -> None:
        """Calls at a time of perf_counter. libuv's timers count whole milliseconds: the rest is waited for in
        select."""
        if (left := when - perf_counter()) > _COARSE:
            self.aio.call_later(left - _COARSE / 2, self.at, when, call)
            return
        if left > 0 and not self._armed:
            select.select((self._poll,), (), (), left)
        if perf_counter() < when:
            self.aio.call_soon(self.at, when, call)
        else:
            call()

    def beat(self) -> None:
        """Begins to measure the loop's delay."""
        self._next_beat = perf_counter() + BEAT
        self.at(self._next_beat, self._beaten)

    def stop(self) -> None:
        self.aio.stop()

    def run(self) -> None:
        self.aio.run_forever()
        if self._error:
            raise self._error

    def _arm(self) -> None:
        if not self._armed:
            self._armed = True
            self.aio.call_soon(self._tick)

    def _tick(self) -> None:
        """Works between two polls."""
        for _ in range(min(_BURST, len(self.starts))):
            self.starts.popleft()()
        if self._work and (self.reads == self._seen or len(self._work) > _MUCH):
            self._work.popleft()()
        self._seen, self._armed = self.reads, False
        if self.starts or self._work:
            self._arm()

    def _beaten(self) -> None:
        late = perf_counter() - self._next_beat
        self._next_beat += BEAT * (1 + late // BEAT)
        while late >= 0:
            self.delays.append(late)
            late -= BEAT
        for _ in range(min(_FEW, len(self._work))):
            self._work.popleft()()
        self.at(self._next_beat, self._beaten)

    def _failed(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._error = context.get("exception") or RuntimeError(context["message"])
        self.stop()
