"""Listening TCP sockets, from `ss`, or from /proc/net/tcp where `ss` is missing."""

import re
from ipaddress import IPv4Address, IPv6Address

from sparkwright.domain.command import Command, Completed
from sparkwright.domain.facts import Listener, Unknown
from sparkwright.facts.fact import Fact, not_understood, sections, whole
from sparkwright.remote.host import SHOW, script

_LISTENERS = r"""
if s=$(LC_ALL=C ss -ltnpH 2>/dev/null); then printf '@@ ss\n%s\n' "$s"; exit 0; fi
[ -r "$(at /proc/net/tcp)" ] || exit 1
show tcp "$(at /proc/net/tcp)"
show tcp6 "$(at /proc/net/tcp6)"
"""
_LISTEN = "0A"
_PROCESS = re.compile(r'users:\(\("([^"]*)"')
_WORDS = (8, 32)


def listeners() -> Command:
    """Section `ss`, or where ss is missing `tcp` and `tcp6` as in /proc/net."""
    return script(SHOW + _LISTENERS)


def parse(done: Completed) -> tuple[Listener, ...] | Unknown:
    """Each socket once. The address that takes connections to all is `0.0.0.0` or `::` (ss: `*` for both families)."""
    parts = sections(done.stdout)
    if not parts:
        return not_understood(done, "ss")
    table = [*parts.get("tcp", "").splitlines(), *parts.get("tcp6", "").splitlines()]
    rows = [_ss(line) for line in parts.get("ss", "").splitlines()]
    rows += [_proc(line.split()) for line in table if _is_listening(line.split())]
    read = tuple(dict.fromkeys(row for row in rows if isinstance(row, Listener)))
    odd = next((row for row in rows if isinstance(row, Unknown)), None)
    # One line less could be the very port that is taken: all or nothing.
    return odd if odd is not None else read


def _ss(line: str) -> Listener | Unknown:
    """`LISTEN 0 4096 127.0.0.53%lo:53 0.0.0.0:* users:(("systemd-resolve",pid=812,fd=15))`"""
    words = line.split()
    address, _, port = words[3].rpartition(":") if len(words) > 3 else ("", "", "")
    number = whole(port)
    if number is None or words[0] != "LISTEN":
        return Unknown(line[:200], "this line of ss is no listening socket")
    bare = address.partition("%")[0].strip("[]")
    process = _PROCESS.search(line)
    return Listener("::" if bare == "*" else bare, number, process[1] if process else "")


def _is_listening(words: list[str]) -> bool:
    return len(words) > 3 and words[3] == _LISTEN


def _proc(words: list[str]) -> Listener | Unknown:
    """`0: 0100007F:1F90 00000000:0000 0A ...`: 32-bit words in the byte order of the machine (little endian here)."""
    address, _, port = words[1].partition(":")
    if len(address) not in _WORDS or not re.fullmatch(r"[0-9A-Fa-f]+", address + port) or len(port) != 4:
        return Unknown(" ".join(words)[:200], "this line of /proc/net/tcp is no socket")
    raw = bytes.fromhex(address)
    packed = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    return Listener(str(IPv4Address(packed) if len(packed) == 4 else IPv6Address(packed)), int(port, 16))


LISTENERS: Fact[tuple[Listener, ...]] = Fact(listeners(), parse)
