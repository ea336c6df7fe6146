"""Heads and bodies as HTTP/1.1 writes them. h11 reads both sides and checks each name and value; what it has checked is
written without a second look at each of them.
"""

from collections.abc import Iterable

import h11

Headers = Iterable[tuple[bytes, bytes]]


def write_head(first: bytes, headers: Headers) -> bytes:
    """Write a head. first: the line of the request or the status.

    Raises h11.LocalProtocolError for a line break or a NUL within: it would begin another header.
    """
    lines = [first, *(b"%b: %b" % one for one in headers)]
    head = b"\r\n".join(lines)
    breaks = len(lines) - 1
    if head.count(b"\n") != breaks or head.count(b"\r") != breaks or b"\0" in head:
        raise h11.LocalProtocolError("a header has a line break or a NUL within")
    return head + b"\r\n\r\n"


class BodyFraming:
    """The body of one message. length: bytes that were announced, None without a length; chunked: in chunks, else up to
    the end of the connection."""

    def __init__(self, length: int | None, chunked: bool = False) -> None:
        self._left, self._chunked = length, chunked

    def piece(self, data: bytes) -> bytes:
        """Frame a piece. Raises h11.LocalProtocolError beyond the length."""
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                raise h11.LocalProtocolError("a body is longer than was announced")
        if self._chunked:
            return b"%x\r\n%b\r\n" % (len(data), data) if data else b""
        return data

    def end(self) -> bytes:
        """Frame the end. Raises h11.LocalProtocolError before the length."""
        if self._left:
            raise h11.LocalProtocolError("a body is shorter than was announced")
        return b"0\r\n\r\n" if self._chunked else b""
