"""What a user names by its URL, with whatever key opens it."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from sparkwright.app.bench.benchmark import Ready, Wish, ready
from sparkwright.app.bench.target import KeyWanted, Target
from sparkwright.app.bench.tools import Bench, Ours
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import UsageError

_URL = re.compile(r"https?://\S+|[\w.-]+:\d+(/\S*)?|\[[0-9a-fA-F:]+\]:\d+(/\S*)?|\d+(\.\d+){3}", re.ASCII)


def is_url(named: str) -> bool:
    return bool(_URL.fullmatch(named))


@asynccontextmanager
async def url(
    bench: Bench, target: Target, keys: Sequence[Secret | None], wish: Wish, ours: Ours | None = None
) -> AsyncIterator[Ready]:
    """keys: tried in this order for as long as the server refuses them. Raises KeyWanted when all are refused."""
    refused: KeyWanted | None = None
    for key in keys:
        try:
            found = await ready(bench, replace(target, key=key), ours, wish)
        except KeyWanted as error:
            refused = error
            continue
        yield found
        return
    raise refused or UsageError(f"{target.name}: no key to try")
