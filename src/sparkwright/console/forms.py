"""Checks of a form before any action: an operator's session, and our own page as its origin."""

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs, urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from sparkwright.console import pages
from sparkwright.console.sessions import Visitor
from sparkwright.report.markup import Html

_BODY, _FIELDS = 192 * 1024, 32
_WITHIN = 10.0  # seconds that a form may take
Shown = Callable[[Request, Visitor], Awaitable[Response]]
Operated = Callable[[Request, Visitor, dict[str, str]], Awaitable[Response]]


def for_operators(do: Operated) -> Shown:
    """Restricts a handler to operators, and to forms of their own session."""

    async def done(request: Request, visitor: Visitor) -> Response:
        given = await fields(request) if request.method == "POST" else {}
        if not visitor.operates:
            return html_response(pages.message("Not allowed", visitor, "This needs an operator's key."), 403)
        if request.method == "POST" and not allowed(request, visitor, given):
            return html_response(
                pages.message("Not done", visitor, "This form came from another page or session."), 403
            )
        return await do(request, visitor, given)

    return done


async def failed(visitor_of: Callable[[Request], Visitor | None], request: Request, error: Exception) -> Response:
    """The page for a missing address or a wrong method; with the navigation of the visitor."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    said = {
        404: "There is no such page.",
        405: "This page takes no such request.",
        408: "The form did not come in time.",
    }
    return html_response(pages.message("Not found", visitor_of(request), said.get(status, f"HTTP {status}")), status)


def html_response(text: Html, status: int = 200) -> Response:
    return Response(text, status, pages.HEADERS, "text/html; charset=utf-8")


def same_origin(request: Request) -> bool:
    """Browsers name the page that a form comes from; another one's is refused."""
    origin = request.headers.get("origin", "")
    site = request.headers.get("sec-fetch-site", "same-origin")
    return site in ("same-origin", "none") and (not origin or urlsplit(origin).netloc == request.headers.get("host"))


def allowed(request: Request, visitor: Visitor, given: dict[str, str]) -> bool:
    """True if our own page sent the form in this very session."""
    return same_origin(request) and hmac.compare_digest(given.get("token", "").encode(), visitor.token.encode())


async def fields(request: Request) -> dict[str, str]:
    """Read a form: the first value of each name. What is larger than a form of ours is empty.

    Raises HTTPException (408) for one that does not come within 10 s.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(_WITHIN):
            async for chunk in request.stream():
                body += chunk
                if len(body) > _BODY:
                    return {}
    except TimeoutError:
        raise HTTPException(408) from None
    try:
        found = parse_qs(body.decode("utf-8", "replace"), max_num_fields=_FIELDS)
    except ValueError:
        return {}
    return {name: values[0] for name, values in found.items()}
