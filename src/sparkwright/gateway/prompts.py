"""Prompts that are worth computing again after a start: what is counted of them, and which go first.

A prompt's text is cut into blocks, each named by a hash of all text up to its end. Two prompts with the same block have
the same beginning, so an engine that has computed one needs only the rest of the other.
"""

import heapq
import json
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.units import MIB
from sparkwright.domain.values import dataclass, replace
from sparkwright.gateway.prompt_text import BEFORE, ITEMS, pieces_of

BLOCK = 2048
"""Bytes of a prompt's text that count as one."""
LEAST_BLOCKS = 2
"""A shorter prompt is computed in less time than anybody notices."""
MOST_BODY = 4 * MIB
MOST_PROMPTS = 256
_ONE_TOKEN: Mapping[str, Mapping[str, Any]] = {
    "/v1/chat/completions": {"max_tokens": 1, "temperature": 0, "stream": False},
    "/v1/completions": {"max_tokens": 1, "temperature": 0, "stream": False},
    "/v1/messages": {"max_tokens": 1, "temperature": 0, "stream": False},
    "/v1/responses": {"max_output_tokens": 1, "temperature": 0, "stream": False, "store": False},
}
PATHS = tuple(_ONE_TOKEN)
# What decides the tokens of a prompt. Everything else of a request is about its answer.
_SHAPING = (
    *("model", *BEFORE, *ITEMS, "tool_choice", "response_format", "reasoning_effort", "reasoning", "suffix"),
    *("chat_template", "chat_template_kwargs", "add_generation_prompt", "continue_final_message", "cache_salt"),
    *("add_special_tokens", "mm_processor_kwargs"),
)


@dataclass(frozen=True, slots=True)
class ClientPrompt:
    """blocks: hashes, the first block's first. body: a request with the same prompt for one token of answer (JSON)."""

    path: str
    blocks: tuple[int, ...]
    body: str = ""


@dataclass(frozen=True, slots=True)
class KeptPrompt:
    """A prompt that is kept. at: seconds since the epoch of its last use. tokens: of the prompt as the engine counted,

    0 if it did not. uses: requests that had each block. size: bytes of the body. name: of its file, '' before it has
    one.
    """

    prompt: ClientPrompt
    at: float
    tokens: int = 0
    uses: tuple[int, ...] = ()
    size: int = 0
    name: str = ""


def prompt_to_keep(path: str, body: bytes) -> ClientPrompt | None:
    """The prompt of a request; None for one that is not worth keeping or continues what the engine has stored."""
    if path not in _ONE_TOKEN or len(body) > MOST_BODY:
        return None
    try:
        tree = read_json(body)
    except ValueError:
        return None
    if not isinstance(tree, dict) or tree.get("previous_response_id"):
        return None
    kept = {name: tree[name] for name in _SHAPING if tree.get(name) not in (None, "", [], {})}
    before, messages = pieces_of(kept)
    text = b"\n".join([*before, *messages])
    blocks = _blocks(f"{path} {kept.get('model')} {kept.get('cache_salt')}".encode(), text)
    if len(blocks) < LEAST_BLOCKS:
        return None
    return ClientPrompt(path, blocks, json.dumps({**kept, **_ONE_TOKEN[path]}))


def _blocks(seed: bytes, text: bytes) -> tuple[int, ...]:
    found, before = [], blake2b(seed, digest_size=8).digest()
    for at in range(0, len(text) - BLOCK + 1, BLOCK):
        before = blake2b(before + text[at : at + BLOCK], digest_size=8).digest()
        found.append(int.from_bytes(before, "big"))
    return tuple(found)


class PromptShelf:
    """The prompts of one deployment. most: bytes of their bodies together. lifetime: seconds since the last use."""

    def __init__(self, most: int, lifetime: float) -> None:
        self.most, self.lifetime = most, lifetime
        self._kept: list[KeptPrompt] = []
        self._uses: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def load(self, found: Iterable[KeptPrompt]) -> None:
        """Add what was kept before."""
        for one in found:
            for block, uses in zip(one.prompt.blocks, one.uses, strict=False):
                self._uses[block] = max(uses, self._uses.get(block, 0))
            self._kept.append(one)

    def add(self, prompt: ClientPrompt, tokens: int, at: float) -> None:
        """Count a request that was answered. Its prompt takes the place of those that are its beginning."""
        for block in prompt.blocks:
            self._uses[block] = self._uses.get(block, 0) + 1
        for place, one in enumerate(self._kept):
            if len(one.prompt.blocks) > len(prompt.blocks) and _begins(one.prompt, prompt):
                self._kept[place] = replace(one, at=at)
                return
        self._kept = [one for one in self._kept if not _begins(prompt, one.prompt)]
        self._kept.append(KeptPrompt(prompt, at, tokens, (), len(prompt.body)))

    def sort(self, now: float) -> tuple[KeptPrompt, ...]:
        """All that is kept, the best first; what is too old or has no room is forgotten.

        A use in the future was noted by a clock that has been set back since: it counts from now.
        """
        alive = [replace(one, at=min(one.at, now)) for one in self._kept if now - one.at <= self.lifetime]
        counted = [replace(one, uses=tuple(self._uses.get(block, 1) for block in one.prompt.blocks)) for one in alive]
        found, left = list[KeptPrompt](), self.most
        for one in best_first(counted):
            if one.size <= left and len(found) < MOST_PROMPTS:
                found.append(one)
                left -= one.size
        self._kept = found
        there = {block for one in found for block in one.prompt.blocks}
        self._uses = {block: uses for block, uses in self._uses.items() if block in there}
        return tuple(found)

    def settle(self, kept: Iterable[KeptPrompt]) -> None:
        """Take over what `sort` gave as it is stored now."""
        self._kept = list(kept)


def _begins(whole: ClientPrompt, other: ClientPrompt) -> bool:
    """True if `other` is the beginning of `whole`."""
    length = len(other.blocks)
    return length <= len(whole.blocks) and whole.blocks[length - 1] == other.blocks[-1]


def best_first(kept: Iterable[KeptPrompt]) -> list[KeptPrompt]:
    """Order by the uses of a prompt's blocks, in the mean of those that no better prompt has; the larger first of
    equals.

    What many requests share costs little and saves the most. A beginning has at least the uses of what follows it, so
    a prompt's mean only falls while others take their blocks, and a heap needs few looks.
    """
    rows = list(kept)
    heap = [(*_worth(one, frozenset()), -one.at, place) for place, one in enumerate(rows)]
    heapq.heapify(heap)
    covered, found = set[int](), list[KeptPrompt]()
    while heap:
        *before, _, place = heap[0]
        now = _worth(rows[place], covered)
        if now != tuple(before):
            heapq.heapreplace(heap, (*now, -rows[place].at, place))
            continue
        heapq.heappop(heap)
        covered.update(rows[place].prompt.blocks)
        found.append(rows[place])
    return found


def _worth(one: KeptPrompt, covered: set[int] | frozenset[int]) -> tuple[float, int]:
    uses = [uses for block, uses in zip(one.prompt.blocks, one.uses, strict=False) if block not in covered]
    return (-sum(uses) / len(uses), -len(uses)) if uses else (0.0, 0)
