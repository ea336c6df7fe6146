"""Servers of which a test states what they answer."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sparkwright.domain.command import Secret
from sparkwright.domain.deployment import Answer
from sparkwright.domain.errors import NotReady
from sparkwright.domain.live import GatewayUse
from sparkwright.domain.probed import Reply
from sparkwright.domain.recipe import ModelKind

Shown = Reply | Callable[[str], Reply]


def make_reply(body: Any, status: int = 200, **headers: str) -> Reply:
    text = body if isinstance(body, str) else json.dumps(body)
    return Reply(status, {name.replace("_", "-"): value for name, value in headers.items()}, text, 0.02, 0.01)


@dataclass
class TableAsker:
    """path -> answer, or a function of the body; other paths are 404. None: nothing listens."""

    answers: dict[str, Shown] | None
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
        found = self.answers.get(path, make_reply({"error": "not found"}, 404))
        return found(body) if callable(found) else found


ANSWER = Answer("Hello!", prompt_tokens=11, completion_tokens=3, ttft=0.05, total=0.12)


class FakeEndpoint(TableAsker):
    """Implements ports.Endpoint. given: answers or exceptions in order, the last one for ever.

    asked: (base_url, model, prompt, max_tokens, key) of every `ask`. shown: path -> the page there. uses: what the
    gateway counts, in order, then nothing.
    """

    def __init__(self, *given: Answer | Exception, models: tuple[str, ...] = ()) -> None:
        super().__init__(None)
        self.given = list(given or (ANSWER,))
        self.served = models
        self.shown: dict[str, str] = {}
        self.probed: list[str] = []
        self.roots: list[str] = []
        self.said = 401
        self.uses: list[GatewayUse] = []
        self.asked: list[Any] = []

    async def ask(self, base_url: str, model: str, prompt: str, max_tokens: int, key: Secret | None) -> Answer:
        self.asked.append((base_url, model, prompt, max_tokens, key))
        given = self.given.pop(0) if len(self.given) > 1 else self.given[0]
        if isinstance(given, Exception):
            raise given
        return given

    async def models(self, base_url: str, key: Secret | None) -> tuple[str, ...]:
        return self.served

    async def prove(self, base_url: str, model: str, kind: ModelKind, key: Secret | None) -> Answer:
        return await self.ask(base_url, model, kind, 0, key)

    async def greedy(self, base_url: str, model: str, prompt: str, max_tokens: int, key: Secret | None) -> Answer:
        return await self.ask(base_url, model, prompt, max_tokens, key)

    async def page(self, base_url: str, path: str, key: Secret | None) -> str | None:
        return self.shown.get(path)

    async def gateway_use(self, socket: str, deployment: str) -> GatewayUse | None:
        return self.uses.pop(0) if self.uses else None

    async def probe(self, url: str, root: str = "") -> int:
        self.probed.append(url)
        self.roots.append(root)
        return self.said
