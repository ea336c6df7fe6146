"""Tokens of a text: by the server's own /tokenize, by a tokenizer.json on this machine, or by an estimate.

What servers answer (read from vLLM 0.21.0, the server of llama.cpp b10269, SGLang 0.5):
vLLM    POST /tokenize {model, prompt | messages, add_special_tokens, return_token_strs} -> {count, tokens, token_strs}
llama.cpp  POST /tokenize {content, add_special, with_pieces} -> {tokens: [id or {id, piece}]};
           POST /apply-template {messages} -> {prompt}
SGLang  POST /tokenize {prompt, add_special_tokens} -> {count, tokens}
"""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from sparkwright.adapters.extras import install_command
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import NotReady, UsageError
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.values import dataclass
from sparkwright.ports import Endpoint

# Whatever follows a line break begins a token of its own, at the start of a text it may not (sentencepiece).
ANCHOR = "Note.\n"
_BATCH = 60_000  # characters in one question
_AT_ONCE = 16
_PATIENCE = 60.0
Told = list[str] | int  # each token's text, or how many there are
_FIRST_TOKEN = 600.0


@dataclass(frozen=True, slots=True)
class TokenizeServer:
    """The server whose tokens are counted."""

    asker: Endpoint
    url: str
    model: str
    key: Secret | None = None

    async def post(self, path: str, body: Any, seconds: float = _PATIENCE) -> Any:
        """The JSON that comes back; None when it is none or no success. Raises NotReady when nothing answers."""
        text = body if isinstance(body, str) else json.dumps(body)
        reply = await self.asker.post(f"{self.url}{path}", text, self.key, seconds)
        try:
            return read_json(reply.body) if reply.status == 200 else None
        except ValueError:
            return None

    async def usage(self, body: str) -> int | None:
        """Prompt tokens by a real request for one token."""
        asked = read_json(body)
        path = "/v1/chat/completions" if "messages" in asked else "/v1/completions"
        told = await self.post(path, {**asked, "max_tokens": 1, "temperature": 0}, _FIRST_TOKEN)
        found = (told or {}).get("usage") if isinstance(told, dict) else None
        tokens = (found or {}).get("prompt_tokens")
        return tokens if isinstance(tokens, int) else None


Form = Callable[[TokenizeServer, str], Awaitable[Told | None]]


async def tokenizer(
    served: TokenizeServer, file: Path | None = None
) -> "FileTokenizer | ServerTokenizer | EstimatedTokens":
    """The best there is: a file that the user names, else the server's own, else an estimate corrected by its usage."""
    if file is not None:
        return FileTokenizer(served, file)
    for form in (_vllm, _llama_cpp):
        told = await form(served, ANCHOR)
        if told is not None:
            return ServerTokenizer(served, form, _length(told))
    return EstimatedTokens(served, await _ratio(served, _PROSE) or _USUAL)


async def _vllm(served: TokenizeServer, text: str) -> Told | None:
    asked = {"model": served.model, "prompt": text, "add_special_tokens": False, "return_token_strs": True}
    told = await served.post("/tokenize", asked)
    if not isinstance(told, dict) or not isinstance(told.get("count"), int):
        return None
    strings = told.get("token_strs")
    return strings if isinstance(strings, list) else int(told["count"])


async def _llama_cpp(served: TokenizeServer, text: str) -> Told | None:
    told = await served.post("/tokenize", {"content": text, "add_special": False, "with_pieces": True})
    tokens = told.get("tokens") if isinstance(told, dict) else None
    if not isinstance(tokens, list) or not tokens:
        return None
    pieces = [token["piece"] for token in tokens if isinstance(token, dict) and isinstance(token.get("piece"), str)]
    return pieces if len(pieces) == len(tokens) else len(tokens)


async def _vllm_body(served: TokenizeServer, body: str) -> int | None:
    """The tokens of a chat as the template writes it, or of a completion's prompt with the tokenizer's own prefix."""
    told = await served.post("/tokenize", {**read_json(body), "add_special_tokens": "prompt" in read_json(body)})
    return told["count"] if isinstance(told, dict) and isinstance(told.get("count"), int) else None


async def _llama_cpp_body(served: TokenizeServer, body: str) -> int | None:
    asked = read_json(body)
    applied = await served.post("/apply-template", asked) if "messages" in asked else asked
    prompt = applied.get("prompt") if isinstance(applied, dict) else None
    if not isinstance(prompt, str):
        return None
    told = await served.post("/tokenize", {"content": prompt, "add_special": True, "parse_special": True})
    return len(told["tokens"]) if isinstance(told, dict) and isinstance(told.get("tokens"), list) else None


def _length(told: Told) -> int:
    return len(told) if isinstance(told, list) else told


class ServerTokenizer:
    """Implements ports.Tokenizer. One question counts many texts where the server returns each token's text."""

    name = "/tokenize of the server"
    exact = True

    def __init__(self, served: TokenizeServer, form: Form, anchor: int) -> None:
        self._served, self._form, self._anchor, self.used = served, form, anchor, served.usage
        self._gate = asyncio.Semaphore(_AT_ONCE)

    async def counts(self, texts: Sequence[str]) -> tuple[int, ...]:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._batch(batch)) for batch in _batches(texts)]
        except BaseExceptionGroup as error:
            raise error.exceptions[0] from None
        return tuple(count for task in tasks for count in task.result())

    async def _batch(self, texts: Sequence[str]) -> list[int]:
        async with self._gate:
            whole = ANCHOR + "".join(texts)
            told = await self._form(self._served, whole)
            if told is None:
                what = f"{self._served.url}/tokenize: it counted tokens before, and does not any more"
                raise NotReady(what, "is the server up?")
            shares = shared_out(told, [ANCHOR, *texts]) if isinstance(told, list) else None
            if shares is not None:
                return shares[1:]
            if len(texts) == 1:
                return [_length(told) - self._anchor]
        return [count for text in texts for count in await self._batch([text])]

    async def asked(self, body: str) -> int | None:
        found = await (_vllm_body if self._form is _vllm else _llama_cpp_body)(self._served, body)
        return await self.used(body) if found is None else found


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Texts that end with a line break may follow each other; any other ends its batch."""
    batch: list[str] = []
    for text in texts:
        batch.append(text)
        if not text.endswith("\n") or sum(map(len, batch)) > _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def shared_out(pieces: Sequence[str], texts: Sequence[str]) -> list[int] | None:
    """Tokens of each text, of the tokens of all in a row. None where they do not show where each text ends.

    Vocabularies write a space as one other character (`Ġ`, `▁`) and an odd byte as `<0x0A>`: lengths hold for ASCII.
    """
    lengths = [1 if piece.startswith("<0x") and len(piece) == 6 else len(piece) for piece in pieces]
    over = sum(lengths) - sum(map(len, texts))
    if over == 1 and pieces[0][0] in " ▁":  # sentencepiece puts a space in front of all
        lengths[0], over = lengths[0] - 1, 0
    if over:
        return None
    found, at, token = [], 0, 0
    for text in texts:
        end, first = at + len(text), token
        while at < end:
            at += lengths[token]
            token += 1
        if at != end:
            return None
        found.append(token - first)
    return found


class FileTokenizer:
    """Implements ports.Tokenizer with a tokenizer.json, through the `tokenizers` package."""

    exact = True

    def __init__(self, served: TokenizeServer, file: Path) -> None:
        try:
            from tokenizers import Tokenizer
        except ImportError:
            what = f"{file}: reading a tokenizer needs the package `tokenizers`"
            raise UsageError(what, install_command("tokenizers")) from None
        path = file / "tokenizer.json" if file.is_dir() else file
        try:
            content = path.read_text(encoding="utf-8")
            self._known = Tokenizer.from_str(content)
        except Exception as error:  # what the package raises has no better name
            raise UsageError(f"{path}: no tokenizer that can be read: {error}", "name a tokenizer.json") from None
        self.name = f"file {path.name} {hashlib.sha256(content.encode()).hexdigest()[:12]}"
        self.asked = self.used = served.usage
        self._anchor = self._tokens(ANCHOR)

    def _tokens(self, text: str) -> int:
        return len(self._known.encode(text, add_special_tokens=False).ids)

    async def counts(self, texts: Sequence[str]) -> tuple[int, ...]:
        return tuple(await asyncio.to_thread(lambda: [self._tokens(ANCHOR + text) - self._anchor for text in texts]))


class EstimatedTokens:
    """Implements ports.Tokenizer where nothing counts tokens but the usage of answers: by characters a token.

    A larger lot of texts has a ratio of its own, measured by a request for a part of it: tokens of code are shorter.
    """

    exact = False

    def __init__(self, served: TokenizeServer, characters: float) -> None:
        self._served, self._characters = served, characters
        self.asked = self.used = served.usage
        self.name = f"estimate, {characters:.2f} characters a token"

    async def counts(self, texts: Sequence[str]) -> tuple[int, ...]:
        ratio = await _ratio(self._served, "".join(texts)[:_SAMPLE]) or self._characters
        return tuple(max(round(len(text) / ratio), 1) for text in texts)


async def _ratio(served: TokenizeServer, text: str) -> float | None:
    """Characters a token, by two requests that differ by the text, so that the template's share drops out.

    None for a text too short for it, and without usage.
    """
    if len(text) < len(_PROSE):
        return None
    first, second = await served.usage(_chat(served, ANCHOR)), await served.usage(_chat(served, ANCHOR + text))
    return None if first is None or second is None or second <= first else len(text) / (second - first)


_USUAL = 4.0
_SAMPLE = 3000
_PROSE = (
    "In the morning, the old captain found the green letter near the river. Although the market was empty, Clara and "
    "Jonas walked slowly to the station and talked about the plan for seven hours. Every lantern behind the church "
    "had been repaired by the same teacher, who never asked what the reason of the delay was.\n"
)


def _chat(served: TokenizeServer, text: str) -> str:
    return json.dumps({"model": served.model, "messages": [{"role": "user", "content": text.strip()}]})
