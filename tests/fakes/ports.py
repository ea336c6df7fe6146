"""Ports for what a test starts."""

import os
import socket
from collections.abc import Iterator
from itertools import cycle, islice

_FIRST, _END = 26000, 32000


def _from_here() -> Iterator[int]:
    """Round and round, each process from a place of its own. Every second one: a gateway's figures are on the next."""
    ports = range(_FIRST, _END, 2)
    return islice(cycle(ports), os.getpid() * 997 % len(ports), None)


_NEXT = _from_here()


def _after_fork() -> None:
    global _NEXT
    _NEXT = _from_here()


os.register_at_fork(after_in_child=_after_fork)


def free_port(address: str = "127.0.0.1") -> int:
    """One that is free, and stays so until it is used: not of those that the kernel gives to outgoing connections (from
    32768 on), where another client of the same test may have it a moment later; and never the same twice in a row.
    """
    while True:
        port = next(_NEXT)
        with socket.socket() as probe:
            try:
                probe.bind((address, port))
            except OSError:
                continue
            return port
