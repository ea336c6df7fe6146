"""Host over anything that can run a sh script: the one implementation behind ssh and local nodes."""

import asyncio
import codecs
import re
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Protocol

from sparkwright.adapters import node_script, process
from sparkwright.adapters.node_script import NodeScript, Output, ScriptSettings
from sparkwright.domain.cluster import Node
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.errors import CommandFailed, Unreachable

# A progress bar (tqdm, rsync) ends its states with a carriage return: each is a line for whoever watches.
# One at the very end of what came waits: a newline may follow it.
_BREAK = re.compile(r"\r\n|\n|\r")
LONGEST = 64 * 1024  # characters: what a line has more is given out as a line of its own


class LineSplitter:
    """Cuts the output of a node script into lines and knows its mark. One use.

    begun, ended: the opening and closing mark were seen; before: what came before the opening mark, for messages.
    """

    def __init__(self, mark: str) -> None:
        self.begun = False
        self.ended = False
        self.before = ""
        self._mark = mark
        self._parts: list[str] = []  # of the line that has no end yet
        self._length = 0
        self._held = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> Iterator[str]:
        """The lines that data completes, without the marks."""
        for line in self._cut(self._held + self._decoder.decode(data)):
            yield from self._between_marks(line)
            if self.ended:
                return

    def _cut(self, text: str) -> Iterator[str]:
        """Cuts new text into lines; earlier text is not searched again."""
        self._held = "\r" if text.endswith("\r") else ""
        end, at = len(text) - len(self._held), 0
        for found in _BREAK.finditer(text, 0, end):
            yield from self._add(text[at : found.start()])
            # tqdm begins with a carriage return: nothing stands before it.
            if self._length or found[0] != "\r":
                yield self._take()
            at = found.end()
        yield from self._add(text[at:end])

    def _add(self, part: str) -> Iterator[str]:
        """Joins the line that has no end yet; gives out what of it is too long, and never a part of the mark."""
        self._parts.append(part)
        self._length += len(part)
        while self._length > LONGEST + len(self._mark):
            line = self._take()
            mark = line.find(self._mark, LONGEST - len(self._mark), LONGEST + len(self._mark))
            at = mark if 0 < mark < LONGEST else LONGEST
            yield line[:at]
            self._parts, self._length = [line[at:]], len(line) - at

    def _take(self) -> str:
        line = "".join(self._parts)
        self._parts, self._length = [], 0
        return line

    def _between_marks(self, line: str) -> Iterator[str]:
        if line == self._mark:
            self.begun = True
        elif not self.begun:
            self.before = (self.before + line + "\n")[-LONGEST:]
        elif self._mark not in line:
            yield line
        else:
            self.ended = True
            if last := line.partition(self._mark)[0]:
                yield last


# What a command may take beyond its own timeout: KILL_AFTER on the node, and the way there and back.
_SLACK = node_script.KILL_AFTER + 6.0


@contextmanager
def _nothing_to_start(node: str) -> Iterator[None]:
    """Turns a shortage of this machine (processes, descriptors, memory, room in /tmp) into Unreachable."""
    try:
        yield
    except OSError as error:
        why = f"this machine cannot start a process to reach it: {error.strerror or error}"
        raise Unreachable(node, why, "`ulimit -u -n`, `free -m` and `df /tmp` here show what is short") from error


class Transport(Protocol):
    """The way of a script to a node."""

    async def open(self, script: NodeScript) -> Process:
        """Starts the script on the node. Raises Unreachable."""

    def lost(self, stderr: str, begun: bool) -> Unreachable:
        """The error for a script that ended without its closing mark."""

    async def renew(self, stderr: str) -> bool:
        """Drops a connection that no longer answers; False when there is none to drop. stderr: of who found that."""

    def tunnel(self, address: str, port: int) -> AbstractAsyncContextManager[str]: ...

    async def address(self) -> str: ...

    async def close(self, persist: bool) -> None: ...


class NodeHost:
    """Implements ports.Host. who: `user@host`, for the node's audit log."""

    def __init__(self, node: Node, transport: Transport, who: str) -> None:
        self._node = node
        self._transport = transport
        self._setting = ScriptSettings(node.env, node.paths.state, who)

    @property
    def name(self) -> str:
        return self._node.name

    async def run(self, command: Command) -> Completed:
        script = node_script.run(self._setting, command)
        return node_script.read_run(script, await self._exchange(script))

    async def run_all(self, commands: Sequence[Command]) -> tuple[Completed, ...]:
        if not commands:
            return ()
        script = node_script.run_all(self._setting, commands)
        output = await self._exchange(script)
        if results := node_script.read_all(script, commands, output):
            return results
        complaint = node_script.complaint(script, output)
        raise CommandFailed(self.name, f"no place for temporary files: {complaint}", "free space in /dev/shm or /tmp")

    async def stream(self, command: Command) -> AsyncIterator[str]:
        """Raises Unreachable when the connection is lost before the command ended."""
        script = node_script.stream(self._setting, command)
        with _nothing_to_start(self.name):
            running = await self._transport.open(script)
        feeding = asyncio.create_task(process.feed_stdin(running, script.stdin))
        lines = LineSplitter(script.mark.decode())
        try:
            while not lines.ended and (chunk := await process.read_chunk(running)):
                for line in lines.feed(chunk):
                    yield line
            if not lines.ended:
                raise self._transport.lost(lines.before + await process.complaint(running), lines.begun)
        finally:
            feeding.cancel()
            await process.end_process(running)

    async def put(self, content: bytes, path: str, mode: int = 0o644) -> None:
        """Write a file. Raises CommandFailed when the file could not be written."""
        done = await self.run(node_script.write_command(content, path, mode))
        if not done.ok:
            raise CommandFailed(self.name, f"cannot write {path}: {done.stderr.strip()}")

    def tunnel(self, address: str, port: int) -> AbstractAsyncContextManager[str]:
        return self._transport.tunnel(address, port)

    async def address(self) -> str:
        return await self._transport.address()

    async def close(self, persist: bool = True) -> None:
        """persist: leave the shared ssh connection open for the next call of sparkwright (60 s)."""
        await self._transport.close(persist)

    async def _exchange(self, script: NodeScript) -> Output:
        """The complete output of a script, with one more try when a shared connection had died (node rebooted)."""
        output = await self._attempt(script)
        # It did not begin, as far as we know, and does no harm when it runs twice.
        with _nothing_to_start(self.name):
            said = output.stderr.decode("utf-8", "replace")
            may = script.again and not (script.agent or output.begun(script.mark))
            again = may and await self._transport.renew(said)
        if again:
            output = await self._attempt(script)
        if not output.ended(script.mark):
            raise self._transport.lost(output.stderr.decode("utf-8", "replace"), output.begun(script.mark))
        return output

    async def _attempt(self, script: NodeScript) -> Output:
        with _nothing_to_start(self.name):
            running = await self._transport.open(script)
        grace = process.GRACE
        try:
            async with asyncio.timeout(script.limit + _SLACK):
                output = await process.converse(running, script)
            grace = 0.5
            return output
        except TimeoutError:
            grace = 0.0
            message = f"did not answer within {script.limit + _SLACK:.0f} s"
            hint = "is the node hung or the network gone? try `ping` and the console"
            raise Unreachable(self.name, message, hint) from None
        finally:
            await process.end_process(running, grace)
