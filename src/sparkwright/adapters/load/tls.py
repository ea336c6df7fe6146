"""A connection over TLS: the handshake is done when it counts as open, before the clock starts."""

import select
import ssl

from sparkwright.adapters.load.connection import Address, Connection, Owner
from sparkwright.adapters.load.loop import Loop


def context(authority: str = "") -> ssl.SSLContext:
    """The system's authorities (SSL_CERT_FILE counts), and that of a file."""
    made = ssl.create_default_context()
    if authority:
        made.load_verify_locations(authority)
    made.set_alpn_protocols(["http/1.1"])
    return made


class TlsConnection(Connection):
    def __init__(self, loop: Loop, owner: Owner, address: Address, secure: ssl.SSLContext, host: str) -> None:
        self._secure, self._host = secure, host
        super().__init__(loop, owner, address)

    def ready(self, mask: int) -> None:
        """One record may hold more than was asked for, and epoll does not know of it."""
        super().ready(mask)
        while self.exchange and self.open and self._tls.pending():
            super().ready(select.EPOLLIN)

    def _is_open(self) -> None:
        self._loop.forget(self.fd)
        self._tls = self._secure.wrap_socket(self.sock, server_hostname=self._host, do_handshake_on_connect=False)
        self.sock, self._recv = self._tls, self._read
        self._loop.watch(self.fd, select.EPOLLIN | select.EPOLLOUT, self._shake)
        self._shake(0)

    def _shake(self, _mask: int) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._loop.change(self.fd, select.EPOLLIN)
        except ssl.SSLWantWriteError:
            self._loop.change(self.fd, select.EPOLLOUT)
        except OSError as error:
            self.close("tls", str(error))
        else:
            super()._is_open()

    def _read(self, size: int) -> bytes:
        try:
            return self._tls.recv(size)
        except ssl.SSLWantReadError as error:
            raise BlockingIOError from error

    def _send(self, data: memoryview) -> int:
        try:
            return self._tls.send(data)
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError) as error:
            raise BlockingIOError from error
