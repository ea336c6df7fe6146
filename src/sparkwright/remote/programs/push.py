"""Sends the files of a model from this node to another one, over several connections at once.

    push.py JSON USER@HOST ssh WORD...      {"source", "target", "streams", "limit", "listen"}

USER@HOST is "" and no word follows where the peer is this very machine. limit: bytes a second, 0: none. listen: the
peer's address for plain TCP with a code a piece, "": over ssh. Content is verified on the other side by SHA-256: the
publisher's where a file is named by it (the blobs of a hub cache), else this node's. Prints progress as rsync does, and
at the end why it failed. Exit code: 0, 255 no way to the peer, 127 no python3 there, 11 no space there, 12 cut off,
24 a file changed while it was copied, 23 anything else. Called again it continues: what the peer has is not sent.
"""

from __future__ import annotations

import json
import os
import queue
import secrets
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sparkwright.remote.programs.push_files import Failed, check, digest, drop, listing, published
from sparkwright.remote.programs.push_link import Pipe, Wire
from sparkwright.remote.programs.wire import CUT_OFF, FAILED, PIECE, UNNAMED, name_of

_RANGE, _SHARES = 64 << 20, 4
_AT_ONCE, _TRIES, _DIGESTS = 4, 3, 4


class Copy:
    """The state that all connections share. left: bytes by file that have not arrived. news: what the loop waits for:
    the number of a file that has arrived, a line of the peer, or what has failed."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.asked, source, target = asked, Path(asked["source"]), Path(asked["target"])
        self.files, self.links = listing(source)
        single = not source.is_dir()
        asked["secret"] = secrets.token_hex(32)
        paths = [target.name if single and len(self.files) == 1 else file.path for file in self.files]
        self.names = [name_of(path) for path in paths]
        plan = {"role": "plan", "root": str(target.parent if single else target), "single": single, "links": self.links}
        plan["files"] = [[path, *file[1:4]] for path, file in zip(paths, self.files, strict=True)]
        self.control = Pipe(asked, plan | {name: asked[name] for name in ("listen", "secret", "streams")})
        found = json.loads(self.control.line())
        self.folder, self.port = found["folder"], found["port"]
        self.left = {index: sum(to - begin for begin, to in ranges) for index, ranges in found["missing"]}
        self.total, self.sent, self.streams = sum(file.size for file in self.files), 0, 0
        self.before = self.total - sum(self.left.values())
        self._began, self._lock = time.monotonic(), threading.Lock()
        self.work: queue.Queue[tuple[int, int, int]] = queue.Queue()
        self.news: queue.Queue[int | str | Failed] = queue.Queue()
        # Few large ranges would leave connections without work at the end
        least = sum(self.left.values()) // (_SHARES * asked["streams"])
        self._range = max(PIECE, min(_RANGE, least // PIECE * PIECE))
        for index, ranges in found["missing"]:
            self.enqueue(index, ranges)

    def enqueue(self, index: int, ranges: list[list[int]]) -> None:
        for begin, to in ranges:
            for at in range(begin, to, self._range):
                self.work.put((index, at, min(at + self._range, to)))
        if not ranges:
            self.news.put(index)

    def paced(self, length: int) -> None:
        """Waits where the limit asks for it."""
        with self._lock:
            self.sent += length
            ahead = self.sent / self.asked["limit"] - (time.monotonic() - self._began) if self.asked["limit"] else 0
        if ahead > 0:
            time.sleep(ahead)

    def arrived(self, index: int, length: int) -> None:
        with self._lock:
            self.left[index] -= length
            done = not self.left[index]
        if done:
            self.news.put(index)

    def counted(self, change: int) -> int:
        """How many connections there are now."""
        with self._lock:
            self.streams += change
            return self.streams

    def report(self) -> None:
        rate = self.sent / max(time.monotonic() - self._began, 0.001)
        done = min(self.before + self.sent, self.total)
        rest = int((self.total - done) / rate) if rate else 0
        clock = f"{rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02}"
        sys.stdout.write(f"{done:,} {100 * done // max(self.total, 1)}% {rate / 1e6:.2f}MB/s {clock}\n")
        sys.stdout.flush()


def stream(copy: Copy, starting: threading.Semaphore) -> None:
    """Sends ranges for as long as there are any; a connection that is lost is made again. The last one reports why."""
    for trial in range(_TRIES):
        wire = None
        try:
            with starting:
                wire = Wire(copy.asked, copy.folder, copy.port)
            while True:
                pump(copy, wire, copy.work.get())
        except (Failed, OSError, ValueError) as error:
            failed = error if isinstance(error, Failed) else wire.reason(error) if wire else Failed(CUT_OFF, str(error))
            if failed.code not in (CUT_OFF, 255):
                copy.news.put(failed)
                return
            if trial == _TRIES - 1 and not copy.counted(-1):
                copy.news.put(failed)
            time.sleep(0.5 * (trial + 1))
        finally:
            if wire:
                wire.close()


def pump(copy: Copy, wire: Wire, work: tuple[int, int, int]) -> None:
    """One range; what of it was not acknowledged is sent again by another connection."""
    index, begin, to = work
    file, done = copy.files[index], begin
    try:
        fd = os.open(file.real, os.O_RDONLY)
        try:
            for at in range(begin, to, PIECE):
                wire.send(copy.names[index], fd, at, min(PIECE, to - at))
                copy.paced(min(PIECE, to - at))
            check(file, fd)
        finally:
            os.close(fd)
        for at in range(begin, to, PIECE):
            wire.answer()
            done = min(at + PIECE, to)
            copy.arrived(index, done - at)
    finally:
        if done < to:
            copy.work.put((index, done, to))


def listen(copy: Copy) -> None:
    """What the peer reports, until it is gone."""
    try:
        while True:
            copy.news.put(copy.control.line())
    except Failed as failed:
        copy.news.put(failed)


def verify(copy: Copy, index: int) -> None:
    try:
        expected = published(copy.files[index]) or (UNNAMED if copy.port else digest(copy.files[index]))
        copy.control.write(f"{index} {expected}\n".encode())
    except OSError as error:
        copy.news.put(Failed(FAILED, str(error)))


def finish(copy: Copy) -> None:
    """Has each file verified once it has arrived; one whose content is another is sent once more. Raises Failed."""
    open_files, again = set(copy.left), set[int]()
    with ThreadPoolExecutor(_DIGESTS) as pool:
        while open_files:
            try:
                news = copy.news.get(timeout=0.5)
            except queue.Empty:
                copy.report()
                continue
            if isinstance(news, Failed):
                pool.shutdown(wait=False, cancel_futures=True)
                raise news
            if isinstance(news, int):
                pool.submit(verify, copy, news)
                continue
            word, _, number = news.partition(" ")
            if word == "ok":
                drop(copy.files[int(number)])
                open_files.discard(int(number))
            elif int(number) in again:
                text = f"{copy.files[int(number)].path}: its content is not what its checksum promises"
                raise Failed(FAILED, text)
            else:
                again.add(int(number))
                copy.left[int(number)] = copy.files[int(number)].size
                copy.enqueue(int(number), [[0, copy.files[int(number)].size]])


def main(asked: dict[str, Any]) -> int:
    os.nice(5)
    try:
        copy = Copy(asked)
        starting = threading.Semaphore(_AT_ONCE)
        many = min(asked["streams"], copy.work.qsize())
        copy.counted(many)
        threading.Thread(target=listen, args=(copy,), daemon=True).start()
        for _ in range(many):
            threading.Thread(target=stream, args=(copy, starting), daemon=True).start()
        finish(copy)
        copy.control.close(orderly=True)
        copy.report()
        return 0
    except Failed as failed:
        sys.stdout.write(f"{failed}\n")
        return failed.code
    except OSError as error:
        sys.stdout.write(f"{error}\n")
        return FAILED


code = main({**json.loads(sys.argv[1]), "at": sys.argv[2], "ssh": sys.argv[3:]})
sys.stdout.flush()
os._exit(code)
