"""The choice among the replicas of one model: by what each has cached of a prompt's beginning, and by its load.

No engine is asked. The gateway remembers which beginnings it has sent where, and forgets those of a replica that was
started again.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from math import ceil
from typing import Any

from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.units import KIB, MIB
from sparkwright.domain.values import dataclass
from sparkwright.gateway.prompt_text import encoded, items_of, pieces_of

BLOCK = 512
"""Bytes of a prompt's text that count as one."""
MOST_BLOCKS = 512
MOST_BODY = MIB
"""Bytes of a body that is parsed. Of a longer one the first bytes count as they are: parsing would hold up others."""
REMEMBERED = 256 * 1024
"""Blocks that are remembered of all replicas of one model together: about 40 MB."""
SLACK, SPARE = 1.25, 1
"""Requests of a replica, at most so many times the average, and so many more: with few requests a strict bound would
send conversations to and fro (`python -m drills.routing.scale`)."""
LOAD = 4 * KIB
"""Bytes of cached text that outweigh one request under way: about a thousand tokens."""
_OPENING = 4 * KIB


@dataclass(frozen=True, slots=True)
class PromptBlocks:
    """blocks: a hash of the text up to the end of each block. opening: of what names its conversation, through the
    first message of a user; the same whenever the gateway is started. Both are empty without a readable prompt."""

    blocks: tuple[int, ...] = ()
    opening: bytes = b""


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica as it is now. under_way: requests that it has. unread: bytes that are new to it in prompts without an
    answer yet. generation: when it began to serve, 0 if that is not known."""

    name: str
    under_way: int = 0
    unread: int = 0
    generation: float = 0.0


def prompt_of(body: bytes) -> PromptBlocks:
    """The prompt of a request in OpenAI's or Anthropic's form; an empty one for anything else.

    body: its first MOST_BODY bytes and one more, if it has them.
    """
    if len(body) > MOST_BODY:
        return PromptBlocks(
            _blocks(b"", body[: BLOCK * MOST_BLOCKS]), blake2b(body[:_OPENING], digest_size=16).digest()
        )
    try:
        tree = read_json(body)
        return _prompt(tree) if isinstance(tree, dict) else PromptBlocks()
    except (ValueError, TypeError, RecursionError):
        return PromptBlocks()


def _prompt(tree: Mapping[str, Any]) -> PromptBlocks:
    begin, pieces = pieces_of(tree)
    items, text = items_of(tree), b"\n".join([*begin, *pieces])
    if isinstance(items, str):
        opening = text[: _OPENING + sum(map(len, begin))]
    else:
        opening = b"\n".join([*begin, *pieces[: _through_first_user(items)]])
    seed = encoded([tree.get("model"), tree.get("cache_salt")])
    named = blake2b(seed + opening, digest_size=16).digest() if opening else b""
    return PromptBlocks(_blocks(seed, text[: BLOCK * MOST_BLOCKS]), named)


def _through_first_user(items: Sequence[Any]) -> int:
    users = (place for place, one in enumerate(items) if isinstance(one, dict) and one.get("role") == "user")
    return next(users, 0) + 1


def _blocks(seed: bytes, text: bytes) -> tuple[int, ...]:
    found, before = [], hash(seed)
    for at in range(0, len(text) - BLOCK + 1, BLOCK):
        before = hash((before, text[at : at + BLOCK]))
        found.append(before)
    return tuple(found)


class KnownBeginnings:
    """The beginnings that each replica of one model was sent last. most: blocks of all together."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most = most
        self._sent: dict[str, OrderedDict[int, None]] = {}
        self._generations: dict[str, float] = {}

    def keep(self, replicas: Iterable[Replica]) -> None:
        """Forget replicas that are not among these or were started again: their caches are empty."""
        there = {one.name: one.generation for one in replicas}
        for name in [name for name, was in self._generations.items() if there.get(name) != was]:
            self._sent.pop(name, None)
        self._generations = there

    def matched(self, name: str, blocks: Sequence[int]) -> int:
        """Blocks of the longest known beginning. Earlier blocks are forgotten last, so halving finds it."""
        sent = self._sent.get(name)
        if not sent or not blocks or blocks[0] not in sent:
            return 0
        known, unknown = 1, len(blocks) + 1
        while unknown - known > 1:
            middle = (known + unknown) // 2
            known, unknown = (middle, unknown) if blocks[middle - 1] in sent else (known, middle)
        return known

    def learn(self, name: str, blocks: Sequence[int]) -> None:
        sent = self._sent.setdefault(name, OrderedDict())
        for block in reversed(blocks):
            sent[block] = None
            sent.move_to_end(block)
        most = self._most // max(len(self._generations), 1)
        while len(sent) > most:
            sent.popitem(last=False)


def most_under_way(total: int, replicas: int) -> int:
    """Requests that a replica may have, with one more to be sent: consistent hashing with bounded loads."""
    return ceil(SLACK * (total + 1) / replicas) + SPARE


def choose(replicas: Sequence[Replica], prompt: PromptBlocks, known: KnownBeginnings) -> Replica:
    """The replica for one request. replicas: those that may be asked now, at least one.

    Cached text speaks for a replica; prompts that it has yet to read and requests under way speak against it. Of
    equals the prompt's opening decides, by rendezvous hashing: a conversation finds its replica again after the gateway
    was started again.
    """
    most = most_under_way(sum(one.under_way for one in replicas), len(replicas))
    within = [one for one in replicas if one.under_way < most]

    def worth(one: Replica) -> tuple[int, bytes]:
        saved = known.matched(one.name, prompt.blocks) * BLOCK
        return saved - one.unread - LOAD * one.under_way, blake2b(
            prompt.opening + one.name.encode(), digest_size=8
        ).digest()

    return max(within, key=worth)
