"""Sends the files of a model from this node to another one, over several connections at once.

    push.py JSON USER@HOST ssh WORD...      {"source", "target", "streams", "limit", "yields", "patience", ...}

USER@HOST is "" and no word follows where the peer is this very machine. streams: 0 adds connections for as long as they
add to the rate. limit: bytes a second, 0: none. yields: takes what others leave of CPUs and disk. chain: a name, where
nodes send on what they receive; follows: the source is still arriving, and goes on as it comes; leads: the peer sends
it on. peer, from: names of both nodes, for messages. patience: seconds after which a silent peer is given up.

Content is verified on the other side: by the publisher's SHA-256 where a file is named by it (the blobs of a hub
cache), else by the CRC-32 of each piece. Prints progress as rsync does, and at the end why it failed. Exit code: 0, 255
no way to the peer, 127 no python3 there, 11 no space there, 12 cut off, 24 a file changed while it was copied, 23
anything else. Called again it continues: what the peer has is not sent.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from typing import Any

from sparkwright.remote.programs.push_files import Failed, check, drop_cache, is_whole, open_file, published, summed
from sparkwright.remote.programs.push_work import LITTLE, MOST, Copy, CopyRange, Wire
from sparkwright.remote.programs.wire import (
    ALL,
    BEATS,
    CHANGED,
    CUT_OFF,
    FAILED,
    PIECE,
    SMALL,
    SUM,
    checksum_of,
    file_crc,
    give_way,
    head_of,
    put_line,
)

_AT_ONCE, _TRIES, _SUMMING = 4, 3, threading.Semaphore(4)
_FIRST, _WINDOW, _GROWTH = 2, 0.3, 1.2
_PATIENCE = 120.0


def stream(copy: Copy, starting: threading.Semaphore) -> None:
    """Sends ranges for as long as there are any; a connection that is lost is made again. The last one reports why."""
    for trial in range(_TRIES):
        wire = None
        try:
            with starting:
                wire = Wire(copy.pipe(), copy.paced)
            copy.connected += 1
            while True:
                try:
                    work = copy.work.get(timeout=copy.watch.patience / BEATS)
                except queue.Empty:
                    wire.beat()
                    continue
                send_by_wire(copy, wire, work)
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


def connect(copy: Copy) -> None:
    """Makes the connections for large files: as many as asked for, or more for as long as they add to the rate."""
    starting, many, rate = threading.Semaphore(_AT_ONCE), 0, 0.0
    most = MOST if sum(copy.left.values()) > LITTLE else 1
    asked = (copy.asked["streams"] or most) if copy.left else 0
    while many < asked:
        more = min(asked - many, max(_FIRST, many) if not copy.asked["streams"] else asked)
        if not copy.asked["follows"]:
            more = min(more, copy.work.qsize() or not many)  # one for what has arrived and turns out to be damaged
        for _ in range(more):
            copy.counted(1)
            threading.Thread(target=stream, args=(copy, starting), daemon=True).start()
        many += more
        until = time.monotonic() + 10
        while copy.connected < many and time.monotonic() < until:
            time.sleep(0.02)
        sent, began = copy.sent, time.monotonic()
        time.sleep(_WINDOW)
        now = (copy.sent - sent) / (time.monotonic() - began)
        if not more or now < _GROWTH * rate:
            return
        rate = now


def deal_out(copy: Copy) -> None:
    """Deals out what arrives on this node, as it comes."""
    due, since = -1, time.monotonic()
    while (now := copy.deal()) or copy.due:
        if now != due:
            due, since = now, time.monotonic()
        elif time.monotonic() - since > _PATIENCE:
            copy.news.put(Failed(CUT_OFF, "nothing more arrives from the node before"))
        time.sleep(0.1)


def send_by_wire(copy: Copy, wire: Wire, work: CopyRange) -> None:
    """One range; what of it was not acknowledged is sent again by another connection."""
    due = work.begin  # of the first piece that is not acknowledged

    def acknowledge() -> None:
        nonlocal due
        wire.answer(due)
        end = min(due + PIECE, work.to)
        copy.arrived(work.file, end - due)
        due = end

    try:
        for end in send_pieces(copy, wire, work):
            while due < end and wire.ready():
                acknowledge()
        while due < work.to:
            acknowledge()
    finally:
        if due < work.to:
            copy.work.put(work._replace(begin=due))


def carry_small(copy: Copy) -> None:
    """Small files by the connection that is there already: one more login takes longer than they do."""
    try:
        while True:
            numbers = copy.packs.get()
            data = pack_files(copy, numbers)
            copy.control.owe(len(numbers))
            copy.control.write(data, copy.paced)
    except ConnectionError:
        return  # `listen` reports why
    except (Failed, OSError) as error:
        copy.news.put(error if isinstance(error, Failed) else Failed(FAILED, str(error)))


def send_pieces(copy: Copy, wire: Wire, work: CopyRange) -> Iterator[int]:
    """Sends the pieces of a range and yields each one's end; on this side they leave the page cache."""
    index = work.file
    file, kind = copy.files[index], copy.kinds[index]
    fd = open_file(file)
    try:
        for at in range(work.begin, work.to, PIECE):
            length = min(PIECE, work.to - at)
            wire.send(head_of(copy.names[index], at, length, kind), fd, at, length)
            if kind == SUM:
                copy.sums[index][at] = file_crc(fd, at, length)
            yield at + length
        check(file, fd)
        if not file.part:
            os.posix_fadvise(fd, work.begin, work.to - work.begin, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


def pack_files(copy: Copy, numbers: list[int]) -> bytes:
    """Small files one after the other, behind the checksum of each; on this side they leave the page cache."""
    index, contents = [], []
    for number in numbers:
        file = copy.files[number]._replace(part="")  # it is whole, also where it arrives on this node
        fd = open_file(file)
        try:
            content = os.pread(fd, file.size, 0)
            check(file, fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)
        if len(content) != file.size:
            raise Failed(CHANGED, f"{file.path} changed while it was copied")
        index.append((number, published(file) or checksum_of([zlib.crc32(content)])))
        contents.append(content)
    data = b"".join((json.dumps(index).encode(), b"\n", *contents))
    return b"pack %d\n%s" % (len(data), data)


def listen(copy: Copy) -> None:
    """Reads the peer's reports until it is gone."""
    try:
        while True:
            copy.news.put(copy.control.line())
    except Failed as failed:
        copy.news.put(failed)


def verify(copy: Copy, index: int, known: str = "") -> None:
    """Has a file verified of which the peer has acknowledged all. known: the checksum, or ALL; '' to compute it."""
    try:
        copy.ask_to_verify(index, known or expected(copy, index))
    except OSError as error:
        copy.news.put(Failed(FAILED, str(error)))


def expected(copy: Copy, index: int) -> str:
    file = copy.files[index]
    if known := published(file):
        return known
    while file.part and not is_whole(file):
        time.sleep(0.1)  # only what is verified here is a measure for the next node
    with _SUMMING:
        return summed(file, {} if file.part else copy.sums[index])


def finish(copy: Copy) -> None:
    """Has each file verified; one whose content is another is sent once more. Raises Failed."""
    ending = Ending(copy)
    threading.Thread(target=send_beats, args=(copy,), daemon=True).start()
    while ending.open_files:
        try:
            news = copy.news.get(timeout=0.5)
        except queue.Empty:
            copy.report()
            continue
        if isinstance(news, Failed):
            raise news
        if isinstance(news, int):
            ending.ask(news)
            continue
        word, *numbers = news.split()
        for index in map(int, numbers):
            ending.answered(index, word == "ok")


def send_beats(copy: Copy) -> None:
    """Gives the peer a sign of life: large files go by other connections, and no line would come for hours."""
    while True:
        time.sleep(copy.watch.patience / BEATS)
        copy.tell("")


class Ending:
    """The files that the peer has not named yet. early: it knows their checksum before they are sent. owed: it owes an
    answer about them. again: they were sent a second time."""

    def __init__(self, copy: Copy) -> None:
        self._copy, self.open_files = copy, set(copy.kinds)
        self._early = {index for index in copy.left if copy.announce(index)}
        self._small = {index for index in copy.kinds if copy.files[index].size <= SMALL}
        self._owed, self._again = set[int](), set[int]()

    def ask(self, index: int) -> None:
        """Has a large file verified of which the last piece was acknowledged."""
        if index in self.open_files:
            self._owed.add(index)
            known = ALL if index in self._early else ""
            threading.Thread(target=verify, args=(self._copy, index, known), daemon=True).start()

    def answered(self, index: int, good: bool) -> None:
        """Raises Failed for a file that is another one at the second time, too."""
        if index in self._small or index in self._owed:
            self._copy.control.owe(-1)
        self._owed.discard(index)
        file = self._copy.files[index]
        if good:
            drop_cache(file)
            self.open_files.discard(index)
        elif index in self._again:
            raise Failed(FAILED, f"{file.path}: its content is not what its checksum promises")
        else:
            self._again.add(index)
            self._copy.again(index)


def main(asked: dict[str, Any]) -> int:
    give_way(asked["yields"])
    try:
        copy = Copy(asked)
        copy.deal()
        for work in (listen, carry_small, connect, *([deal_out] if asked["follows"] else [])):
            threading.Thread(target=work, args=(copy,), daemon=True).start()
        finish(copy)
        copy.control.close(orderly=True)
        copy.leave()
        many = max(copy.connected, 1)
        copy.report(f" over {many} connection{'s' * (many > 1)}")
        return 0
    except Failed as failed:
        put_line(sys.stdout.buffer, str(failed))
        return failed.code
    except OSError as error:
        put_line(sys.stdout.buffer, str(error))
        return FAILED


code = main({**json.loads(sys.argv[1]), "at": sys.argv[2], "ssh": sys.argv[3:]})
sys.stdout.flush()
os._exit(code)
