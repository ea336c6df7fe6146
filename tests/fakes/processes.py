"""The processes still running on this machine, which is also the node behind the sshd of the tests."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path


def command_lines() -> Iterator[str]:
    """The command lines of all processes but this one."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                yield (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue


def running(token: str) -> bool:
    """True if a process has the token in its command line."""
    return any(token in line for line in command_lines())


async def wait_until_gone(token: str, seconds: float = 60.0) -> bool:
    deadline = asyncio.get_running_loop().time() + seconds
    while running(token):
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


async def started(token: str, seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not running(token):
            await asyncio.sleep(0.02)
