"""Plain HTTP questions to the server that is to be measured: what it serves, and what it understands."""

import asyncio
import os
import ssl
import time
from urllib.parse import urlsplit

import httpcore

from sparkwright.adapters.load import tls
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import NotReady
from sparkwright.domain.probed import Reply

_CONNECT = 10.0
_MOST = 16 << 20
_HINT = "is it started, and is the address right? `curl {url}` shows what answers there"
_TRUST = "name its CA: SSL_CERT_FILE=FILE (of a gateway of ours: the ca.crt that `up` named where it was called)"
# What is wrong with the address, the way there, or the words spoken; ValueError: a URL that is none.
_ERRORS = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.TimeoutException,
    httpcore.UnsupportedProtocol,
    OSError,
    ValueError,
)


class HttpAsker:
    """Implements ports.Asker. Never goes through a proxy of the environment; a connection for each question.

    authority: a file with one more certificate to trust.
    """

    def __init__(self, authority: str = "") -> None:
        self._authority = authority

    async def get(self, url: str, key: Secret | None, seconds: float) -> Reply:
        return await self._asked("GET", url, "", key, seconds)

    async def post(self, url: str, body: str, key: Secret | None, seconds: float) -> Reply:
        return await self._asked("POST", url, body, key, seconds)

    async def _asked(self, method: str, url: str, body: str, key: Secret | None, seconds: float) -> Reply:
        try:
            async with asyncio.timeout(seconds):
                return await _reply(method, url, body, key, self._authority)
        except TimeoutError:
            what = f"no whole answer within {seconds:.0f} s"
        except httpcore.TimeoutException:
            what = f"no connection within {_CONNECT:.0f} s"
        except _ERRORS as error:
            if untrusted := distrust(error):
                raise NotReady(f"{url}: {untrusted}", _TRUST) from None
            what = said(error)
        raise NotReady(f"{url}: {what}", _HINT.format(url=url))


async def signed(url: str, authority: str) -> bool:
    """Whether that https server's certificate is good by the authority of a file, and by no other. Never raises."""
    try:
        parts = urlsplit(url)
        async with asyncio.timeout(_CONNECT):
            secure = ssl.create_default_context(cafile=authority)
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or 443, ssl=secure)
    except (OSError, ValueError):
        return False
    writer.close()
    return True


async def _reply(method: str, url: str, body: str, key: Secret | None, authority: str) -> Reply:
    began = time.monotonic()
    headers: dict[bytes | str, bytes | str] = {"Content-Type": "application/json"} if body else {}
    if key:
        headers["Authorization"] = f"Bearer {key.reveal()}"
    # Reading the system's certificates takes 20 ms, which plain http has no use for.
    context = tls.context(authority) if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    timeout = {"timeout": {"connect": _CONNECT}}
    async with (
        httpcore.AsyncConnectionPool(ssl_context=context) as pool,
        pool.stream(method, url, headers=headers, content=body.encode() or None, extensions=timeout) as response,
    ):
        first, parts, size = 0.0, [], 0
        async for part in response.aiter_stream():
            first = first or time.monotonic() - began
            parts.append(part)
            size += len(part)
            if size > _MOST:
                break
    named = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
    return Reply(response.status, named, b"".join(parts).decode("utf-8", "replace"), time.monotonic() - began, first)


def said(error: Exception) -> str:
    """The innermost cause: httpcore's own words for a refused connection are `All connection attempts failed`."""
    cause = _innermost(error)
    if isinstance(cause, OSError):
        return (os.strerror(cause.errno) if cause.errno and cause.errno > 0 else cause.strerror or str(cause)).lower()
    return f"{type(error).__name__}: {error}"


def distrust(error: Exception) -> str:
    """Why its certificate is not trusted; '' for any other trouble."""
    cause = _innermost(error)
    if not isinstance(cause, ssl.SSLCertVerificationError):
        return ""
    return f"its certificate is not trusted here ({cause.verify_message})"


def _innermost(error: Exception) -> BaseException:
    cause: BaseException = error
    while inner := cause.__cause__ or cause.__context__:
        cause = inner
    return cause
