"""A server of this machine that hangs: whether it still answers, and the process that listens."""

import os
import signal
import socket
import ssl
import struct
from contextlib import suppress

import httpcore

_CREDENTIALS = "3i"  # pid, uid, gid


async def is_answering(url: str, seconds: float, socket_path: str = "") -> bool:
    """True if any answer comes within `seconds`, whatever it says, or if nobody listens: that is no silence.

    url: http or https; a certificate is not verified. socket_path: of a unix socket, '' for TCP.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    timeout = dict.fromkeys(("connect", "read", "write", "pool"), seconds)
    try:
        async with (
            httpcore.AsyncConnectionPool(ssl_context=made, uds=socket_path or None) as pool,
            pool.stream("GET", url, extensions={"timeout": timeout}),
        ):
            return True
    except httpcore.TimeoutException:
        return False
    except (httpcore.NetworkError, httpcore.ProtocolError, OSError):
        return True


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
