"""What a server's chat template adds to the messages, in tokens: asked of the server, not assumed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sparkwright.domain.workload import Agent, Api, Workload
from sparkwright.loadgen.agentic import tools_text
from sparkwright.loadgen.prompts import HEAD, SALT, Frames, Texts, Tools
from sparkwright.ports import Tokenizer

_TRIES = 4
_TOOL, _LEAST = 130, 40  # tokens of one function, about, and at least


@dataclass(slots=True)
class Measuring:
    """Asks for the tokens of small conversations. doubts: what could not be found out.

    off: what a real request has more than the server's own counting says (llama.cpp: one less, with some templates).
    """

    workload: Workload
    texts: Texts
    tokenizer: Tokenizer
    doubts: list[str] = field(default_factory=list)
    off: int = 0

    async def frames(self) -> Frames:
        word = HEAD + "".join(self.texts.units[:SALT]) + "."
        (alone,) = await self.tokenizer.counts([word])
        chat = self.workload.api is Api.CHAT
        simple = {"messages": [{"role": "user", "content": word}]} if chat else {"prompt": word}
        counted, real = await self._asked(simple, alone), await self.tokenizer.used(self._body(simple))
        self.off = 0 if real is None else real - counted
        user = counted + self.off - alone
        if not chat:
            return Frames(user=user)
        loops = [level.shape for level in self.workload.levels if isinstance(level.shape, Agent)]
        if not loops:
            return Frames(user=user)
        system = await self._chat(word, ["system", "user"], 2 * alone) - 2 * alone - user
        turn = await self._chat(word, ["system", "user", "assistant", "user"], 4 * alone) - 4 * alone - user - system
        sizes = sorted({loop.tools for loop in loops if loop.tools})
        tools = {size: await self._tools(size, word, 2 * alone + user + system) for size in sizes}
        return Frames(user, system, turn, tools)

    async def _chat(self, word: str, roles: Sequence[str], least: int, more: str = "") -> int:
        messages = [{"role": role, "content": word} for role in roles]
        return await self._asked({"messages": messages, **(json.loads(f"{{{more}}}") if more else {})}, least)

    async def _asked(self, body: dict[str, Any], least: int) -> int:
        """`least` where the server does not tell, so that the template counts for nothing."""
        told = await self.tokenizer.asked(self._body(body))
        if told is None:
            self.doubts.append("the server does not tell how many tokens a prompt has: its template is not counted in")
        return least if told is None else told + self.off

    def _body(self, body: dict[str, Any]) -> str:
        pinned = self.workload.thinking
        thinking = {"chat_template_kwargs": {"enable_thinking": pinned, "thinking": pinned}}
        wanted = pinned is not None and self.texts.probed.thinking and "messages" in body
        return json.dumps({"model": self.texts.probed.model, **body, **(thinking if wanted else {})})

    async def _tools(self, size: int, word: str, without: int) -> Tools:
        """As many functions as fit, and single words up to the size. Some templates know no tools at all."""
        count = max(size // _TOOL, 1)
        for _ in range(_TRIES):
            cost = await self._cost(count, 0, word, without)
            better = min(max(count * size // max(cost, 1), 1), size // _LEAST + 1)
            if cost <= 0 or better == count or (cost <= size and better == count + 1):
                break
            count = better
        padding = max(size - cost, 0)
        if cost <= 0 or not await self._shown(count, padding, word, without):
            self.doubts.append(f"the server shows no tools to the model: their {size} tokens are in the system prompt")
            return Tools(count, 0, 0)
        return Tools(count, padding, await self._cost(count, padding, word, without))

    async def _cost(self, count: int, padding: int, word: str, without: int) -> int:
        return await self._chat(word, ["system", "user"], without, self._text(count, padding)) - without

    def _text(self, count: int, padding: int) -> str:
        units = self.texts.units
        return tools_text(count, "".join(units[n % len(units)] for n in range(padding)), "".join(units[:SALT]))

    async def _shown(self, count: int, padding: int, word: str, without: int) -> bool:
        """By a real request: some servers leave tools out that may not be called."""
        messages = [{"role": role, "content": word} for role in ("system", "user")]
        more = json.loads(f"{{{self._text(count, padding)}}}")
        used = await self.tokenizer.used(self._body({"messages": messages, **more}))
        return used is not None and used > without
