"""Prompts of an exact number of tokens, put together from pieces whose tokens were counted before.

Every text begins with a salt: words of one token each, others for every seed, level, repeat and number, so that no
cache knows it. As many more of these fill what the pieces leave over.
"""

import json
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from sparkwright.domain.probed import Probed
from sparkwright.domain.run import Turn
from sparkwright.domain.values import dataclass, field, replace
from sparkwright.domain.workload import Api, LevelPlan, Text, Workload
from sparkwright.loadgen.recorded import Recorded

SALT = 8
HEAD, END = "Case", ".\n"


@dataclass(frozen=True, slots=True)
class PromptPiece:
    """Text that begins with a letter or bracket and ends with a line break, and its tokens inside a longer text."""

    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Stock:
    """Pieces of one kind of text by falling size, and the question that ends a prompt (no line break at its end)."""

    sizes: tuple[tuple[PromptPiece, ...], ...]
    question: PromptPiece


@dataclass(frozen=True, slots=True)
class Tools:
    """Functions, and single words in the last one's description, that are `tokens` in this server's template.

    tokens: 0 where the server does not show them to the model.
    """

    count: int
    padding: int
    tokens: int


@dataclass(frozen=True, slots=True)
class PromptFrames:
    """Tokens that the server's template adds. user: around a single user's message, or what a completion gets in front.

    system: more with a system message; turn: more with an answer of the assistant and one more user's message.
    tools: by the size that was asked for.
    """

    user: int = 0
    system: int = 0
    turn: int = 0
    tools: Mapping[int, Tools] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PromptTexts:
    """The ingredients of prompts, with this server's tokenizer. bare: tokens of a salt line without its words; least:
    the same without the line break, the shortest prompt.

    units: words that are one token each with a space in front. closing: ends a system prompt. salt: makes the texts of
    this run others than those of any run before, which the server may still have in its cache.
    recorded: a replay's requests, by the path of their file. exact: False where lengths are estimates.
    doubts: what could not be made as asked, one sentence each.
    """

    probed: Probed
    tokenizer: str
    units: tuple[str, ...]
    bare: int
    least: int
    stocks: Mapping[Text, Stock]
    closing: PromptPiece
    frames: PromptFrames = PromptFrames()
    salt: str = ""
    recorded: Mapping[str, tuple[Recorded, ...]] = field(default_factory=dict)
    exact: bool = True
    doubts: tuple[str, ...] = ()


def dice_of(workload: Workload, level: LevelPlan, *more: object) -> Random:
    """The same for the same workload, seed, level and place; others for all else."""
    return Random("/".join(str(part) for part in (workload.name, workload.seed, level.name, *more)))


def salted(texts: PromptTexts, tokens: int, dice: Random) -> str:
    """A salt line of exactly so many tokens, at least `bare`."""
    return HEAD + "".join(dice.choices(texts.units, k=max(tokens - texts.bare, 0))) + END


def written(texts: PromptTexts, tokens: int, dice: Random, kind: Text = Text.PROSE) -> str:
    """A context of exactly so many tokens that more text may follow: a salt and pieces."""
    least = texts.bare + SALT
    chosen = list(_chosen(texts.stocks[kind], max(tokens - least, 0), dice))
    left = tokens - sum(piece.tokens for piece in chosen)
    return salted(texts, left, dice) + "".join(piece.text for piece in chosen)


def asking(texts: PromptTexts, tokens: int, dice: Random, kind: Text = Text.PROSE) -> str:
    """A text like `written`, with the question of its kind at the end; one of a few tokens is the salt alone."""
    return ending(texts, tokens, dice, texts.stocks[kind].question, kind)


def ending(texts: PromptTexts, tokens: int, dice: Random, last: PromptPiece, kind: Text = Text.PROSE) -> str:
    """A text like `written`, with `last` at the end: templates cut line breaks off a message's end, and so change
    counts."""
    room = tokens - last.tokens
    if room < texts.bare + 1:
        return HEAD + "".join(dice.choices(texts.units, k=max(tokens - texts.least, 0))) + END.rstrip()
    return written(texts, room, dice, kind) + last.text


def _chosen(stock: Stock, room: int, dice: Random) -> Iterator[PromptPiece]:
    """Pieces that fit, the larger sizes first, none twice before all of a size were taken."""
    for pieces in stock.sizes:
        least = min((piece.tokens for piece in pieces), default=0)
        while pieces and room >= least:
            fitting = dice.sample(pieces, len(pieces))
            before = room
            for piece in fitting:
                if piece.tokens <= room:
                    room -= piece.tokens
                    yield piece
            if room == before or pieces is stock.sizes[-1]:
                break


def body_ends(workload: Workload, probed: Probed, output: int, more: str = "") -> tuple[str, str]:
    """Head and tail of a request's body, around messages (chat) or the prompt's JSON text (completion).

    more: further members as JSON text, `"tools":[...]`.
    """
    opening = '"messages":[' if workload.api is Api.CHAT else '"prompt":'
    closing = "]" if workload.api is Api.CHAT else ""
    stream = {"include_usage": True} | ({"continuous_usage_stats": True} if probed.continuous else {})
    options: dict[str, Any] = {"max_tokens": output, "temperature": workload.temperature}
    options |= {"stream": True, "stream_options": stream}
    if workload.ignore_eos and probed.ignore_eos:
        options["ignore_eos"] = True
    if workload.thinking is not None and probed.thinking and workload.api is Api.CHAT:
        # The two names that chat templates know it by (Qwen, GLM; DeepSeek).
        options["chat_template_kwargs"] = {"enable_thinking": workload.thinking, "thinking": workload.thinking}
    members = json.dumps(options, separators=(",", ":"))[1:-1]
    return f'{{"model":{json.dumps(probed.model)},{opening}', f"{closing},{members}{',' if more else ''}{more}}}"


def message(role: str, content: str) -> str:
    return f'{{"role":"{role}","content":{json.dumps(content)}}}'


@dataclass(frozen=True, slots=True)
class Making:
    """The common input of every request in one repeat of a level."""

    workload: Workload
    level: LevelPlan
    repeat: int
    texts: PromptTexts

    def lengths(self, number: int) -> Random:
        """The same in every run."""
        return dice_of(self.workload, self.level, self.repeat, number)

    def dice(self, *more: object) -> Random:
        return dice_of(self.workload, self.level, self.repeat, self.texts.salt, *more)

    def turn(self, prompt: int, output: int, cached: int = 0, warmup: bool = False) -> Turn:
        """A turn with the ends of its body; prompt, output, cached: tokens."""
        head, tail = body_ends(self.workload, self.texts.probed, output)
        return Turn(head, "", tail, prompt_tokens=prompt, output_tokens=output, cached_tokens=cached, warmup=warmup)

    def asking(self, turn: Turn, content: str) -> Turn:
        """The turn with what it asks."""
        if self.workload.api is Api.CHAT:
            return replace(turn, new=message("user", content))
        return replace(turn, head=turn.head + json.dumps(content) + turn.tail, tail="")
