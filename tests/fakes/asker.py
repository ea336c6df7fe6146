"""Servers that are asked before they are measured, from a table."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sparkwright.domain.command import Secret
from sparkwright.domain.errors import NotReady
from sparkwright.domain.probed import Reply

Answer = Reply | Callable[[str], Reply]


def said(body: Any, status: int = 200, **headers: str) -> Reply:
    text = body if isinstance(body, str) else json.dumps(body)
    return Reply(status, {name.replace("_", "-"): value for name, value in headers.items()}, text, 0.02, 0.01)


@dataclass
class TableAsker:
    """path -> answer, or a function of the body; other paths are 404. None: nothing listens."""

    answers: dict[str, Answer] | None
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def get(self, url: str, key: Secret | None, seconds: float) -> Reply:
        return self._answer(url, "")

    async def post(self, url: str, body: str, key: Secret | None, seconds: float) -> Reply:
        return self._answer(url, body)

    def _answer(self, url: str, body: str) -> Reply:
        path = "/" + url.split("/", 3)[3]
        self.asked.append((path, body))
        if self.answers is None:
            raise NotReady(f"{url}: connection refused")
        found = self.answers.get(path, said({"error": "not found"}, 404))
        return found(body) if callable(found) else found
