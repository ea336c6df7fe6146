"""Multicast DNS: the question as it is sent, an answer as avahi gives it, and what must not be taken for one."""

import struct

from sparkwright.adapters.mdns import SERVICE, ptr_query, targets
from unit.for_each import for_each


def encode_name(text: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in text.split(".")) + b"\0"


def record(owner: bytes, kind: int, data: bytes) -> bytes:
    return owner + struct.pack("!HHIH", kind, 1, 120, len(data)) + data


def answer(host: str, *, pointer: bool = False) -> bytes:
    """An answer like avahi's to a one-shot question: the question again, PTR, SRV; pointer: names shortened as on the
    wire."""
    instance = b"\x05spark" + (b"\xc0\x0c" if pointer else encode_name(SERVICE))
    target = b"\x07spark-1" + b"\xc0\x16" if pointer else encode_name(host)
    head = struct.pack("!6H", 0, 0x8400, 1, 1, 0, 1) + encode_name(SERVICE) + struct.pack("!2H", 12, 1)
    ptr = record(b"\xc0\x0c", 12, instance)
    return head + ptr + record(instance, 33, struct.pack("!3H", 0, 0, 22) + target)


def test_hosts_of_an_answer() -> None:
    """Guards what is found: the SRV record's host, also where names are shortened by pointers."""
    assert list(targets(answer("spark-1a2b.local"))) == ["spark-1a2b.local"]
    assert list(targets(answer("", pointer=True))) == ["spark-1.local"]


@for_each(
    "packet",
    [
        b"",
        ptr_query(),
        answer("spark-1.local")[:-4],
        answer("-oProxyCommand=x"),
        answer("a b"),
        struct.pack("!6H", 0, 0x8400, 0, 9, 0, 0) + b"\xc0\x0c",
        struct.pack("!6H", 0, 0x8400, 65535, 65535, 65535, 65535) + b"\xff" * 50,
    ],
)
def test_anything_else_is_nothing(packet: bytes) -> None:
    """Guards against cut, looping and hostile packets: anybody on the network may send them."""
    assert list(targets(packet)) == []
