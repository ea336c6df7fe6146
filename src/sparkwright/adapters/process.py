"""Child processes of this machine: started in a session of their own, ended for certain."""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from tempfile import TemporaryFile
from typing import Any

from sparkwright.adapters import node_script
from sparkwright.adapters.node_script import NodeScript, Output

# How long a process whose stdin was closed may take to end by itself. On the node `timeout` needs KILL_AFTER seconds
# for a command that ignores TERM; ours must not be killed before that, or nobody is left to do it.
GRACE = node_script.KILL_AFTER + 2.0
_KILLED = 10.0  # seconds for a busy kernel to end what was killed
_READ = 1 << 16
_PRINTED = 1 << 20  # bytes


async def start(argv: Sequence[str], first: bytes = b"", env: Mapping[str, str] | None = None) -> Process:
    """Starts with three pipes, away from the terminal (Ctrl-C is ours to handle). first: written to stdin at once."""
    process = await _spawn(argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=env)
    if first and process.stdin:
        process.stdin.write(first)
    return process


async def converse(process: Process, script: NodeScript) -> Output:
    """Sends the script's stdin and collects output up to the closing marks, or the end when there are none.

    Does not wait for the end of the process: a daemon started by the command may hold its pipes open for ever.
    """
    output, clock = Output(), asyncio.get_running_loop()
    begun = clock.time()
    assert process.stdout and process.stderr
    async with asyncio.TaskGroup() as tasks:
        feeding = tasks.create_task(feed_stdin(process, script.stdin))
        out = tasks.create_task(_collect(process.stdout, output.stdout, script.mark))
        err = tasks.create_task(_collect(process.stderr, output.stderr, script.mark))
        await asyncio.wait((out, err))
        feeding.cancel()
    output.seconds = clock.time() - begun
    return output


async def run_program(argv: Sequence[str], limit: float, env: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Exit code and stderr of a program without input; 124 at its limit (seconds).

    stderr goes through a file: a master that ssh leaves behind may keep it open for as long as it lives.
    """
    with TemporaryFile() as errors:
        process = await _spawn(argv, stdin=DEVNULL, stdout=DEVNULL, stderr=errors, env=env)
        try:
            code = await asyncio.wait_for(process.wait(), limit)
        except TimeoutError:
            code = 124
        finally:
            await end_process(process, 0.0)
        errors.seek(0)
        return code, errors.read().decode("utf-8", "replace")


async def printed(argv: Sequence[str], limit: float, env: Mapping[str, str] | None = None) -> str:
    """stdout of a program of this machine without input; '' if it fails, is missing or takes longer than `limit` s."""
    with TemporaryFile() as out:
        try:
            process = await _spawn(argv, stdin=DEVNULL, stdout=out, stderr=DEVNULL, env=env)
        except OSError:
            return ""
        try:
            code = await asyncio.wait_for(process.wait(), limit)
        except TimeoutError:
            code = 124
        finally:
            await end_process(process, 0.0)
        out.seek(0)
        return "" if code else out.read(_PRINTED).decode("utf-8", "replace")


async def _spawn(argv: Sequence[str], **streams: Any) -> Process:
    """A process in a session of its own, or none at all.

    Cancelled half-way, asyncio of Python 3.11 waits for ever for a child that nobody watches (CPython gh-103847).
    """
    started = asyncio.create_subprocess_exec(*argv, start_new_session=True, limit=1 << 20, **streams)
    spawning = asyncio.ensure_future(started)
    try:
        return await asyncio.shield(spawning)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            await end_process(await spawning)
        raise


async def read_chunk(process: Process) -> bytes:
    """The next bytes of stdout; b"" at its end."""
    assert process.stdout
    return await process.stdout.read(_READ)


async def complaint(process: Process) -> str:
    """The rest of stderr of a process that has ended, or is about to."""
    assert process.stderr
    with contextlib.suppress(TimeoutError):
        return (await asyncio.wait_for(process.stderr.read(), 1.0)).decode("utf-8", "replace")
    return ""


async def end_process(process: Process, grace: float = GRACE) -> None:
    """Closes stdin, which ends the command on the node; after `grace` seconds kills what is left here."""
    # A pipe that is closing keeps its file open until the last byte is written, which nobody may ever read.
    if (stdin := process.stdin) and (not stdin.is_closing() or stdin.transport.get_write_buffer_size()):
        stdin.transport.abort()
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                # Waits for the end while emptying the pipes: ssh does not end before it could write everything.
                async with asyncio.TaskGroup() as tasks:
                    pipes = filter(None, (process.stdout, process.stderr))
                    drains = [tasks.create_task(_drain(pipe)) for pipe in pipes]
                    await process.wait()
                    for drain in drains:
                        drain.cancel()
    finally:
        try:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), _KILLED)
        finally:
            # asyncio has no public way to let go of pipes that a stray grandchild still holds.
            process._transport.close()  # type: ignore[attr-defined]


async def feed_stdin(process: Process, data: bytes) -> None:
    """Writes and leaves stdin open: its end would end the command. A program may stop reading early."""
    assert process.stdin
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        for at in range(0, len(data), _READ):
            process.stdin.write(data[at : at + _READ])
            await process.stdin.drain()


async def _collect(source: asyncio.StreamReader, into: bytearray, mark: bytes) -> None:
    while chunk := await source.read(_READ):
        known = len(into)
        into += chunk
        if node_script.closed(into, mark, known):
            return


async def _drain(source: asyncio.StreamReader) -> None:
    while await source.read(_READ):
        pass
