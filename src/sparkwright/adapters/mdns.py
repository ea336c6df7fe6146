"""Machines on this network that announce ssh by multicast DNS (RFC 6762), as DGX OS does; no daemon."""

import math
import select
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress

SERVICE = "_ssh._tcp.local"
_GROUP_IPV4 = ("224.0.0.251", 5353)
_GROUP_IPV6 = ("ff02::fb", 5353)
_PTR, _SRV = 12, 33  # types of records: who offers a service, and on which host one of them is
_HEADER = 12  # bytes
_IS_ANSWER = 0x8000
_IS_POINTER = 0xC0  # the rest of the name stands elsewhere in the packet
_LARGEST_PACKET = 9000  # bytes, by the RFC
_MOST = 64  # hosts, records of a packet, labels of a name
_MOST_POINTERS = 16
_ASK_AGAIN = 1.0  # second, by the RFC (5.2)


def find_ssh_hosts(seconds: float = 2.0) -> tuple[str, ...]:
    """Host names (`spark-1a2b.local`), sorted; () where no answer comes or multicast is not possible.

    Asked over every interface by IPv6, so that the neighbour on a direct cable answers, too, and by IPv4. Asked again
    each second: a packet may get lost, and a port that has just come up has no address yet to send from.
    """
    found: set[str] = set()
    with _socket(socket.AF_INET) as four, _socket(socket.AF_INET6) as six:
        asked = -math.inf
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until and len(found) < _MOST:
            if now - asked >= _ASK_AGAIN:
                _ask(four, six)
                asked = now
            for ready in select.select([four, six], [], [], min(until, asked + _ASK_AGAIN) - now)[0]:
                found |= set(targets(ready.recv(_LARGEST_PACKET)))
    return tuple(sorted(found))


def _ask(four: socket.socket, six: socket.socket) -> None:
    _send(four, _GROUP_IPV4)
    for index, _ in socket.if_nameindex():
        _send(six, (*_GROUP_IPV6, 0, index))


def _socket(family: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_DGRAM)
    made.setblocking(False)
    return made


def _send(asking: socket.socket, to: tuple[str | int, ...]) -> None:
    """Sends the question. An interface that is down, or has no address of the family, is passed over."""
    with suppress(OSError):
        asking.sendto(ptr_query(), to)


def ptr_query() -> bytes:
    """The question for the service's PTR records; asked from a port other than 5353, it is answered to us alone."""
    name = b"".join(bytes([len(label)]) + label.encode() for label in SERVICE.split(".")) + b"\0"
    return struct.pack("!6H", 0, 0, 1, 0, 0, 0) + name + struct.pack("!2H", _PTR, 1)


def targets(packet: bytes) -> Iterator[str]:
    """Hosts of SRV records of the service; nothing for what is no such answer."""
    try:
        _, flags, questions, *counts = struct.unpack_from("!6H", packet)
        if not flags & _IS_ANSWER:
            return
        at = _HEADER
        for _ in range(questions):
            at = _name(packet, at)[1] + 4
        for _ in range(min(sum(counts), _MOST)):
            owner, at = _name(packet, at)
            kind, _, _, length = struct.unpack_from("!HHIH", packet, at)
            at += 10
            if kind == _SRV and owner.lower().endswith(SERVICE):
                host = _name(packet, at + 6)[0].rstrip(".")  # behind priority, weight and port
                if host and all(c.isalnum() or c in "-." for c in host) and host.isascii() and not host.startswith("-"):
                    yield host
            at += length
    except (struct.error, IndexError, UnicodeDecodeError):
        return


def _name(packet: bytes, at: int) -> tuple[str, int]:
    """A name, and the place behind it. Raises IndexError for one that points in a circle."""
    labels: list[str] = []
    end, hops = -1, 0
    while (length := packet[at]) and len(labels) < _MOST:
        if length & _IS_POINTER == _IS_POINTER:
            end, hops = (at + 2 if end < 0 else end), hops + 1
            if hops > _MOST_POINTERS:
                raise IndexError
            at = (length & 0x3F) << 8 | packet[at + 1]
        else:
            labels.append(packet[at + 1 : at + 1 + length].decode())
            at += length + 1
    return ".".join(labels), (at + 1 if end < 0 else end)
