"""An event loop of our own on epoll: what came is read before anything else is done, and the rest waits.

Not asyncio: a reader needs one system call and two list entries for a token here (docs/adr/0011-load-client.md).
"""

import select
from array import array
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from time import perf_counter

BEAT = 0.01
_BURST = 8  # requests sent between two looks at what came
_FEW = 4  # pieces of put-off work at a beat, however much there is to read
_MUCH = 2048  # pieces of put-off work that may wait before reading has to
_COARSE = 0.002  # epoll waits in whole milliseconds; nearer than this, select is asked, which is finer


class Loop:
    """`starts` are done a few between two polls, `work` when there is nothing to read. delays: of each beat, seconds.

    A beat that comes late counts for the beats that it delayed, too, as a waiting stream would have seen them.
    """

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._stopped = False
        self.starts: deque[Callable[[], None]] = deque()
        self.work: deque[Callable[[], None]] = deque()
        self.delays = array("d")

    def watch(self, fd: int, mask: int, handler: Callable[[int], None]) -> None:
        self._handlers[fd] = handler
        self._epoll.register(fd, mask)

    def change(self, fd: int, mask: int) -> None:
        self._epoll.modify(fd, mask)

    def forget(self, fd: int) -> None:
        if self._handlers.pop(fd, None):
            self._epoll.unregister(fd)

    def at(self, when: float, call: Callable[[], None]) -> None:
        """when: of perf_counter. Calls of the same time come in the order in which they were asked for."""
        self._number += 1
        heappush(self._timers, (when, self._number, call))

    def beat(self) -> None:
        """Begins to measure the loop's delay."""
        self.at(perf_counter() + BEAT, lambda: self._beaten(perf_counter(), BEAT))
        self._next_beat = perf_counter() + BEAT

    def stop(self) -> None:
        self._stopped = True

    def run(self) -> None:
        poll, wait, handlers = self._epoll.poll, self._wait, self._handlers
        timers, starts, work = self._timers, self.starts, self.work
        while not self._stopped:
            if timers and timers[0][0] <= perf_counter():
                heappop(timers)[2]()
            for _ in range(min(_BURST, len(starts)) if starts else 0):
                starts.popleft()()
            events = poll(0) if starts or work else wait()
            for fd, mask in events:
                if handler := handlers.get(fd):
                    handler(mask)
            if work and (not events or len(work) > _MUCH):
                work.popleft()()

    def _wait(self) -> list[tuple[int, int]]:
        if not self._timers:
            return self._epoll.poll(-1)
        left = self._timers[0][0] - perf_counter()
        if left > _COARSE:
            return self._epoll.poll(left - _COARSE / 2)
        if left > 0:
            select.select((self._epoll,), (), (), left)
        return self._epoll.poll(0)

    def _beaten(self, now: float, period: float) -> None:
        late = now - self._next_beat
        self._next_beat += period * (1 + late // period)
        while late >= 0:
            self.delays.append(late)
            late -= period
        for _ in range(min(_FEW, len(self.work))):
            self.work.popleft()()
        self.at(self._next_beat, lambda: self._beaten(perf_counter(), period))
