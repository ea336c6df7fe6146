"""A server of this machine that hangs: whether it still answers, and the process that listens."""

import asyncio
import os
import signal
import socket
import ssl
import struct
from contextlib import suppress
from functools import cache
from urllib.parse import urlsplit

_CREDENTIALS = "3i"  # pid, uid, gid


async def is_answering(url: str, seconds: float, socket_path: str = "") -> bool:
    """True if anything comes within `seconds`, whatever it says, or if nobody listens: that is no silence.

    url: http or https; a certificate is not verified. socket_path: of a unix socket, '' for TCP.

    On asyncio's own streams: through httpcore a look took ten times as long, and the first one 0.2 s for its imports.
    """
    asked = urlsplit(url)
    host, tls = asked.hostname or "", _unverified() if asked.scheme == "https" else None
    try:
        async with asyncio.timeout(seconds):
            if socket_path:
                reader, writer = await asyncio.open_unix_connection(socket_path)
            else:
                reader, writer = await asyncio.open_connection(host, asked.port, ssl=tls)
            try:
                writer.write(f"GET {asked.path or '/'} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
                await reader.read(1)
            finally:
                writer.transport.abort()
            return True
    except TimeoutError:
        return False
    except OSError:
        return True


@cache
def _unverified() -> ssl.SSLContext:
    """Made once: that takes half a millisecond."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made


def listener_of(socket_path: str) -> int:
    """Pid of the process that listens on a unix socket; 0 where none does, or where it is not to be seen from here."""
    with suppress(OSError), socket.socket(socket.AF_UNIX) as link:
        link.settimeout(0.0)
        link.connect(socket_path)
        told = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(_CREDENTIALS))
        return int(struct.unpack(_CREDENTIALS, told)[0])
    return 0


def kill_listener(socket_path: str) -> int:
    """Kill the process that listens on a unix socket. Returns its pid, 0 if none was killed."""
    pid = listener_of(socket_path)
    if pid in (0, os.getpid()):
        return 0
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:  # it has ended meanwhile, or is another user's
        return 0
    return pid
