"""A server of which a test says what it answers."""

from sparkwright.domain.command import Secret
from sparkwright.domain.deployment import Answer

ANSWER = Answer("Hello!", prompt_tokens=11, completion_tokens=3, ttft=0.05, total=0.12)


class FakeEndpoint:
    """Implements ports.Endpoint. given: answers or exceptions in order, the last one for ever.

    asked: (base_url, model, prompt, max_tokens, key) of every `ask`. shown: path -> the page there.
    said: to who probes without a key.
    """

    def __init__(self, *given: Answer | Exception, models: tuple[str, ...] = ()) -> None:
        self.given = list(given or (ANSWER,))
        self.served = models
        self.shown: dict[str, str] = {}
        self.probed: list[str] = []
        self.said = 401
        self.asked: list[tuple[str, str, str, int, Secret | None]] = []

    async def ask(self, base_url: str, model: str, prompt: str, max_tokens: int, key: Secret | None) -> Answer:
        self.asked.append((base_url, model, prompt, max_tokens, key))
        given = self.given.pop(0) if len(self.given) > 1 else self.given[0]
        if isinstance(given, Exception):
            raise given
        return given

    async def models(self, base_url: str, key: Secret | None) -> tuple[str, ...]:
        return self.served

    async def greedy(self, base_url: str, model: str, prompt: str, max_tokens: int, key: Secret | None) -> Answer:
        return await self.ask(base_url, model, prompt, max_tokens, key)

    async def page(self, base_url: str, path: str, key: Secret | None) -> str | None:
        return self.shown.get(path)

    async def in_flight(self, socket: str) -> int:
        return 0

    async def probe(self, url: str) -> int:
        self.probed.append(url)
        return self.said
