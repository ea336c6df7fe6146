"""The prompts of a benchmark: texts of an exact number of tokens, with the chat template's overhead."""

import json
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from sparkwright.app.bench.target import PreparedBench
from sparkwright.domain.probed import Probed
from sparkwright.domain.values import dataclass, field, replace
from sparkwright.domain.workload import Agent, Api, Replay, Single, Text, Workload
from sparkwright.loadgen import texts
from sparkwright.loadgen.profiles import shipped_file
from sparkwright.loadgen.prompts import END, HEAD, SALT, PromptFrames, PromptPiece, PromptTexts, Stock, Tools, asking
from sparkwright.loadgen.recorded import Recorded, parse
from sparkwright.loadgen.sessions import tools_text
from sparkwright.loadgen.texts import CLOSING, QUESTIONS, blocks, single_lines
from sparkwright.ports import Tokenizer

_TRIES = 4
_TOOL, _LEAST = 130, 40  # tokens of one function, about, and at least


@dataclass(slots=True)
class Measuring:
    """Asks for the tokens of small conversations. doubts: what could not be found out.

    off: what a real request has more than the server's own count (llama.cpp: one less, with some templates).
    """

    workload: Workload
    texts: PromptTexts
    tokenizer: Tokenizer
    doubts: list[str] = field(default_factory=list)
    off: int = 0

    async def frames(self) -> PromptFrames:
        word = HEAD + "".join(self.texts.units[:SALT]) + "."
        (alone,) = await self.tokenizer.counts([word])
        chat = self.workload.api is Api.CHAT
        simple = _chat(word, "user") if chat else {"prompt": word}
        counted, real = await self._asked(simple, alone), await self.tokenizer.used(self._body(simple))
        self.off = 0 if real is None else real - counted
        user = counted + self.off - alone
        if not chat:
            return PromptFrames(user=user)
        loops = [level.shape for level in self.workload.levels if isinstance(level.shape, Agent)]
        if not loops:
            return PromptFrames(user=user)
        system = await self._asked(_chat(word, "system", "user"), 2 * alone) - 2 * alone - user
        whole = _chat(word, "system", "user", "assistant", "user")
        turn = await self._asked(whole, 4 * alone) - 4 * alone - user - system
        sizes = sorted({loop.tools for loop in loops if loop.tools})
        tools = {size: await self._tools(size, word, 2 * alone + user + system) for size in sizes}
        return PromptFrames(user, system, turn, tools)

    async def _asked(self, body: dict[str, Any], least: int) -> int:
        """`least` where the server does not report it, so that the template counts as 0."""
        told = await self.tokenizer.asked(self._body(body))
        if told is None:
            self.doubts.append("the server does not report the tokens of a prompt: its template is not counted")
        return least if told is None else told + self.off

    def _body(self, body: dict[str, Any]) -> str:
        pinned = self.workload.thinking
        thinking = {"chat_template_kwargs": {"enable_thinking": pinned, "thinking": pinned}}
        wanted = pinned is not None and self.texts.probed.thinking and "messages" in body
        return json.dumps({"model": self.texts.probed.model, **body, **(thinking if wanted else {})})

    async def _tools(self, size: int, word: str, without: int) -> Tools:
        """Tool definitions of `size` tokens: as many functions as fit, then single words. Some templates know no tools
        at all."""
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
        return await self._asked(self._with_tools(count, padding, word), without) - without

    def _with_tools(self, count: int, padding: int, word: str) -> dict[str, Any]:
        units = self.texts.units
        text = tools_text(count, "".join(units[n % len(units)] for n in range(padding)), "".join(units[:SALT]))
        return {**_chat(word, "system", "user"), **json.loads(f"{{{text}}}")}

    async def _shown(self, count: int, padding: int, word: str, without: int) -> bool:
        """True if a real request shows that the tools reach the model: some servers leave out tools that may not be
        called."""
        used = await self.tokenizer.used(self._body(self._with_tools(count, padding, word)))
        return used is not None and used > without


def _chat(word: str, *roles: str) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": word} for role in roles]}


_LINES, _PARAGRAPHS, _PARAGRAPH = 64, 48, 60
_BIG = 600  # blocks of a long prompt at most, each as long as it takes

_CHECKED = 1500  # tokens of a text that is counted whole

Tell = Callable[[str], None]


async def prepare(prepared: PreparedBench, salt: str = "", tell: Tell = lambda text: None) -> PromptTexts:
    """The ingredients of all prompts of the levels that fit.

    salt: different in every run, so that no prompt of an earlier one can come from the cache. Raises NotReady when the
    server stops answering, UsageError for a file that cannot be replayed.
    """
    workload, tokenizer = replace(prepared.workload, levels=prepared.levels), prepared.tokenizer
    files = {path: shipped_file(path) or prepared.request.files[path] for path in _paths(workload)}
    recorded = {path: await _recorded(tokenizer, path, text, workload) for path, text in files.items()}
    tell("counting the tokens of the prompts' pieces")
    made = replace(await _pieces(workload, prepared.probed, tokenizer), salt=salt, recorded=recorded)
    measuring = Measuring(workload, made, tokenizer)
    frames = await measuring.frames()
    fitting = {path: _within(made, all_of) for path, all_of in recorded.items()}
    lost = [
        f"{len(all_of) - len(fitting[path])} of {len(all_of)} requests of {path} are longer than the server's context "
        f"of {made.probed.context} tokens and left out"
        for path, all_of in recorded.items()
        if len(fitting[path]) < len(all_of)
    ]
    doubts = (*measuring.doubts, *await _sums(made, tokenizer), *lost)
    return replace(made, recorded=fitting, frames=frames, doubts=tuple(dict.fromkeys(doubts)))


async def _pieces(workload: Workload, probed: Probed, tokenizer: Tokenizer) -> PromptTexts:
    longest = max((level.most_tokens for level in workload.levels), default=0)
    bare, least = await tokenizer.counts([HEAD + END, HEAD + END.rstrip()])
    units = await _units(tokenizer, bare)
    kinds = {level.shape.text for level in workload.levels if isinstance(level.shape, Single)} | {Text.PROSE}
    stocks = {kind: await _stock(tokenizer, kind, longest) for kind in Text if kind in kinds}
    (closing,) = await _counted(tokenizer, [CLOSING])
    return PromptTexts(probed, tokenizer.name, units, bare, least, stocks, closing, exact=tokenizer.exact)


async def _sums(texts: PromptTexts, tokenizer: Tokenizer) -> tuple[str, ...]:
    """A doubt where a text put together has not the tokens of its pieces. An estimate is named as such."""
    if not texts.exact:
        return ()
    wanted, found = _CHECKED, []
    for kind in texts.stocks:
        (tokens,) = await tokenizer.counts([asking(texts, wanted, Random(str(kind)), kind)])
        found.append(tokens)
    if all(tokens == wanted for tokens in found):
        return ()
    return (f"texts have not the tokens of their pieces with this tokenizer: {wanted} were {max(found)}",)


def _within(texts: PromptTexts, recorded: tuple[Recorded, ...]) -> tuple[Recorded, ...]:
    """The recorded requests that fit into the server's context, as far as their lengths are known."""
    most = texts.probed.context
    return tuple(one for one in recorded if not most or one.input_tokens + one.output_tokens <= most)


def replayed_paths(workload: Workload) -> tuple[str, ...]:
    """The user's files, whose text `prepare` wants."""
    return tuple(path for path in _paths(workload) if shipped_file(path) is None)


def _paths(workload: Workload) -> Iterable[str]:
    return dict.fromkeys(level.shape.path for level in workload.levels if isinstance(level.shape, Replay))


async def _recorded(tokenizer: Tokenizer, path: str, text: str, workload: Workload) -> tuple[Recorded, ...]:
    """Answers that are known as text only are counted: the new answers are made as long."""
    limits = [level.shape.limit for level in workload.levels if isinstance(level.shape, Replay)]
    found = parse(text, path, 0 if 0 in limits else max(limits))
    answers = [one.answer for one in found if one.answer and not one.output_tokens]
    counts = iter(await tokenizer.counts(answers))
    return tuple(replace(one, output_tokens=next(counts)) if one.answer else one for one in found)


async def _units(tokenizer: Tokenizer, bare: int) -> tuple[str, ...]:
    """Words of one token each; letters where the vocabulary has none. An estimate takes every word as one token."""
    if not tokenizer.exact:
        return tuple(f" {word}" for word in texts.COMMON)
    for candidates in (texts.COMMON, texts.LETTERS):
        spaced = [f" {word}" for word in candidates]
        counts = await tokenizer.counts([HEAD + word + END for word in spaced])
        good = tuple(word for word, count in zip(spaced, counts, strict=True) if count == bare + 1)
        if len(good) >= SALT:
            return good
    return tuple(f" {word}" for word in texts.LETTERS)


async def _stock(tokenizer: Tokenizer, kind: Text, longest: int) -> Stock:
    sizes = [single_lines(kind, "0", _LINES), blocks(kind, "0", _PARAGRAPHS, _PARAGRAPH)]
    if longest > 4000:
        # Half a token a word at least: so many blocks of so many words are longer than the longest prompt.
        count = min(_BIG, longest // 400)
        sizes.append(blocks(kind, "big", count, max(longest // count, 200)))
    counted = [await _counted(tokenizer, found) for found in reversed(sizes)]
    (question,) = await _counted(tokenizer, [QUESTIONS[kind]])
    return Stock(tuple(counted), question)


async def _counted(tokenizer: Tokenizer, found: Iterable[str]) -> tuple[PromptPiece, ...]:
    texts = list(found)
    return tuple(PromptPiece(text, count) for text, count in zip(texts, await tokenizer.counts(texts), strict=True))
