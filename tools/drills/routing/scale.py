"""`python -m drills.routing.scale [--replicas 2 4 16 64]`: hit rate and balance of the gateway's choice, by simulation.

The bodies, the reading of them and the choice are real; the engines are simulated: a prompt cache that forgets what was
used longest ago, one prefill after the other, and tokens that come slower the more requests share a replica.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

from sparkwright.gateway.replicas import BLOCK, KnownBeginnings, PromptBlocks, Replica, choose, prompt_of

PREFILL = 12_000.0  # bytes of text a second: about 3,000 tokens
TOKEN, CROWDING = 0.04, 0.06  # seconds a token alone, and its growth with each further request
CACHE = 3200  # blocks of a replica: about 400,000 tokens
KINDS, TURNS, THINK = 24, (6, 30), 6.0
WORDS = [f"w{number:03x}" for number in range(4096)]


def make_text(chance: random.Random, size: int) -> str:
    return " ".join(chance.choices(WORDS, k=size // 5))


@dataclass
class Conversation:
    """One run of an agent: it sends its whole history again with every turn. left: turns."""

    chance: random.Random
    messages: list[dict[str, str]]
    left: int

    def body(self) -> bytes:
        return json.dumps({"model": "m", "messages": self.messages, "stream": True}).encode()

    def goes_on(self) -> bool:
        self.left -= 1
        self.messages.append({"role": "assistant", "content": make_text(self.chance, self.chance.randint(200, 1500))})
        self.messages.append({"role": "user", "content": make_text(self.chance, self.chance.randint(300, 6000))})
        return self.left > 0


def conversations(seed: int) -> Iterator[Conversation]:
    """Agents of some kinds, the first ones far more often than the last, each kind with its own instructions; every
    fifth conversation is a single question without any."""
    chance = random.Random(seed)
    systems = [make_text(random.Random(f"kind {kind}"), 6000 + 1000 * kind) for kind in range(KINDS)]
    weights = [1 / (1 + kind) for kind in range(KINDS)]
    for number in count():
        own = random.Random(f"{seed} {number}")
        task = {"role": "user", "content": make_text(own, own.randint(200, 4000))}
        if number % 5 == 4:
            yield Conversation(own, [task], 1)
        else:
            system = {"role": "system", "content": chance.choices(systems, weights)[0]}
            yield Conversation(own, [system, task], own.randint(*TURNS))


@dataclass
class ModelledReplica:
    """A replica. cache: blocks that it holds at most; speed: times that of one. busy: when it can begin with a prompt.
    unread: bytes that it has yet to compute, of prompts without a token."""

    name: str
    cache: int = CACHE
    speed: float = 1.0
    under_way: int = 0
    unread: int = 0
    busy: float = 0.0
    _held: OrderedDict[int, None] = field(default_factory=OrderedDict)

    def takes(self, prompt: PromptBlocks, size: int, now: float) -> tuple[int, float]:
        """Bytes that it need not compute, and when its first token comes."""
        hit = next((n for n, block in enumerate(prompt.blocks) if block not in self._held), len(prompt.blocks)) * BLOCK
        for block in reversed(prompt.blocks):
            self._held[block] = None
            self._held.move_to_end(block)
        while len(self._held) > self.cache:
            self._held.popitem(last=False)
        self.busy = max(self.busy, now) + (size - hit) / PREFILL / self.speed
        self.under_way += 1
        self.unread += size - hit
        return hit, self.busy

    def token(self) -> float:
        return TOKEN * (1 + CROWDING * (self.under_way - 1) / self.speed)


@dataclass
class ReplicaChange:
    """Something that an engine is done with."""

    engine: ModelledReplica
    under_way: int = 0
    unread: int = 0

    def happens(self) -> None:
        self.engine.under_way -= self.under_way
        self.engine.unread -= self.unread


Choice = Callable[[Sequence[ModelledReplica], PromptBlocks], ModelledReplica]


def by_gateway(engines: Sequence[ModelledReplica]) -> Choice:
    """The choice of the gateway, as it runs there."""
    known, named = KnownBeginnings(), {one.name: one for one in engines}

    def chosen(found: Sequence[ModelledReplica], prompt: PromptBlocks) -> ModelledReplica:
        replicas = [Replica(one.name, one.under_way, one.unread) for one in found]
        known.keep(replicas)
        name = choose(replicas, prompt, known).name
        known.learn(name, prompt.blocks)
        return named[name]

    return chosen


def in_turn(engines: Sequence[ModelledReplica]) -> Choice:
    turns = count()
    return lambda found, prompt: found[next(turns) % len(found)]


def least_loaded(engines: Sequence[ModelledReplica]) -> Choice:
    return lambda found, prompt: min(found, key=lambda one: one.under_way)


CHOICES: dict[str, Callable[[Sequence[ModelledReplica]], Choice]] = {
    "gateway": by_gateway,
    "least loaded": least_loaded,
    "in turn": in_turn,
}


@dataclass
class ScaleResult:
    """seconds: until the last request ended. firsts: of each request, to its first token. excess: requests of the
    fullest replica by the average, over time. tokens: answered."""

    seconds: float
    hit: float
    firsts: list[float]
    excess: float
    tokens: int


def simulate(
    engines: Sequence[ModelledReplica], choice: Choice, at_once: int, requests: int, seed: int = 1
) -> ScaleResult:
    """Conversations at once, each with a pause between its turns, until so many requests were begun."""
    chance, more, order = random.Random(seed), conversations(seed), count()
    events: list[tuple[float, int, Conversation | ReplicaChange]] = []
    for _ in range(at_once):
        heapq.heappush(events, (chance.uniform(0, THINK), next(order), next(more)))
    hits = texts = tokens = begun = 0
    firsts: list[float] = []
    now = area = fullest = 0.0
    while events:
        then, _, conversation = heapq.heappop(events)
        loads = [one.under_way for one in engines]
        area, fullest, now = area + (then - now) * sum(loads) / len(loads), fullest + (then - now) * max(loads), then
        if isinstance(conversation, ReplicaChange):
            conversation.happens()
            continue
        if begun >= requests:
            continue
        begun += 1
        body = conversation.body()
        prompt = prompt_of(body)
        engine = choice(engines, prompt)
        hit, first = engine.takes(prompt, len(body), now)
        answer = conversation.chance.randint(40, 400)
        end = first + answer * engine.token()
        hits, texts, tokens = hits + hit, texts + len(body), tokens + answer
        firsts.append(first - now)
        heapq.heappush(events, (first, next(order), ReplicaChange(engine, unread=len(body) - hit)))
        heapq.heappush(events, (end, next(order), ReplicaChange(engine, under_way=1)))
        follows = conversation if conversation.goes_on() else next(more)
        heapq.heappush(events, (end + chance.expovariate(1 / THINK), next(order), follows))
    return ScaleResult(now, hits / texts, sorted(firsts), fullest / area if area else 1.0, tokens)


def scale_table(numbers: Sequence[int], each: int, requests: int) -> Iterator[str]:
    """each: conversations for every replica; requests: likewise. One's: a single engine with all cache and speed."""
    yield "| replicas | choice | hit rate | of one's | fullest by average | TTFT p50, s | p99, s | tokens/s |"
    yield "| -- | -- | -- | -- | -- | -- | -- | -- |"
    for number in numbers:
        whole = [ModelledReplica("whole", CACHE * number, float(number))]
        base = simulate(whole, least_loaded(whole), each * number, requests * number)
        for name, make in CHOICES.items():
            engines = [ModelledReplica(f"r{n}") for n in range(number)]
            one = simulate(engines, make(engines), each * number, requests * number)
            p50, p99 = (one.firsts[int(len(one.firsts) * share)] for share in (0.5, 0.99))
            yield (
                f"| {number} | {name} | {one.hit:.1%} | {one.hit / base.hit:.1%} | {one.excess:.2f} "
                f"| {p50:.1f} | {p99:.1f} | {one.tokens / one.seconds:,.0f} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--replicas", type=int, nargs="*", default=[2, 4, 16, 64])
    parser.add_argument("--each", type=int, default=6, help="conversations at once for every replica [6]")
    parser.add_argument("--requests", type=int, default=300, help="for every replica [300]")
    given = parser.parse_args()
    for line in scale_table(given.replicas, given.each, given.requests):
        print(line, flush=True)


if __name__ == "__main__":
    main()
