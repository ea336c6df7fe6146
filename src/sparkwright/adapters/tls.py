"""The trusted certificates."""

import asyncio
import ssl
from urllib.parse import urlsplit

_CONNECT = 10.0


async def signed(url: str, authority: str) -> bool:
    """True if the https server's certificate is signed by the authority in a file; other authorities do not count.
    Never raises."""
    try:
        parts = urlsplit(url)
        async with asyncio.timeout(_CONNECT):
            secure = ssl.create_default_context(cafile=authority)
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or 443, ssl=secure)
    except (OSError, ValueError):
        return False
    writer.close()
    return True


def tls_context(url: str, authority: str = "") -> ssl.SSLContext:
    """The system's authorities (SSL_CERT_FILE counts), and that of a file; reading them takes 20 ms, https only."""
    if not url.startswith("https:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made = ssl.create_default_context()
    if authority:
        made.load_verify_locations(authority)
    return made
