"""`/metrics`, beside the gateway and not through it."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from sparkwright.adapters.exporter import CONTENT_TYPE, Exporter


def exporter(home: Path) -> Callable[[Request], Awaitable[Response]]:
    """Answers scrapes from what the supervisor in `home` wrote last."""
    made = Exporter(home)

    async def metrics(_: Request) -> Response:
        return Response(made.page(), headers={"content-type": CONTENT_TYPE})

    return metrics
