"""The test message, sent from the head: receivers come on standard input, what became of each is printed."""

import asyncio
import json
import socket
import sys
import time
from dataclasses import asdict
from pathlib import Path

from sparkwright.adapters.notify import deliver, understood
from sparkwright.domain.codec import Unreadable
from sparkwright.domain.errors import UsageError
from sparkwright.domain.incident import News
from sparkwright.domain.notify import Delivery, Receivers
from sparkwright.emit.notification import TEST

_MOST_BYTES = 64 << 10


def main(home: Path) -> int:
    """Print a JSON list of deliveries. home: named after what the message is about."""
    try:
        receivers = understood(sys.stdin.buffer.read(_MOST_BYTES))
    except Unreadable as error:
        raise UsageError(f"receivers on standard input: {error}") from None
    text = f"notifications from {socket.gethostname()} reach you"
    found = asyncio.run(_sent(receivers, News(TEST, text, home.name, time.time())))
    print(json.dumps([asdict(one) for one in found]))  # noqa: T201
    return 0


async def _sent(receivers: Receivers, news: News) -> list[Delivery]:
    done = await asyncio.gather(*(deliver(receiver, news) for receiver in receivers.receivers))
    return [delivery for delivery, _ in done]
