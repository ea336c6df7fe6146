"""A tokenizer that counts at once: the simulator's, with a chat template around it."""

import json
from collections.abc import Sequence

from sparkwright.simulator.text import SimulatedTokenizer


class CountingTokenizer:
    """ports.Tokenizer. more: tokens that a real request has beyond what is counted.

    blind: tools are not shown to the model, as by SGLang where none may be called; plain: the template knows no tools.
    """

    name = "fake"

    def __init__(
        self, more: int = 0, blind: bool = False, exact: bool = True, dumb: bool = False, plain: bool = False
    ) -> None:
        self._known = SimulatedTokenizer(50_000)
        self.more, self.blind, self.exact, self.dumb, self.plain = more, blind, exact, dumb, plain
        self.questions = 0

    def tokens(self, text: str) -> int:
        return len(self._known.pieces(text))

    async def counts(self, texts: Sequence[str]) -> tuple[int, ...]:
        self.questions += 1
        return tuple(self.tokens(f"Note.\n{text}") - self.tokens("Note.\n") for text in texts)

    async def asked(self, body: str) -> int | None:
        self.questions += 1
        return None if self.dumb else self.whole(body)

    async def used(self, body: str) -> int | None:
        self.questions += 1
        return None if self.dumb else self.whole(body, shown=not self.blind) + self.more

    def whole(self, body: str, shown: bool = True) -> int:
        """Tokens of a request as a template of the usual shape writes it."""
        asked = json.loads(body)
        if "prompt" in asked:
            return self.tokens(asked["prompt"]) + 1
        shown = shown and not self.plain and bool(asked.get("tools"))
        head = f"<|im_start|>system\n{json.dumps(asked['tools'])}<|im_end|>\n" if shown else ""
        said = (f"<|im_start|>{one['role']}\n{one['content']}<|im_end|>\n" for one in asked["messages"])
        return self.tokens(head + "".join(said) + "<|im_start|>assistant\n")
