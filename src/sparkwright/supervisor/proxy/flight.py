"""A request on its way to an engine, and to another replica's if the first one gives nothing."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from sparkwright.gateway.decide import GatewayAnswer
from sparkwright.gateway.replicas import PromptBlocks
from sparkwright.gateway.usage import Body
from sparkwright.supervisor.proxy.behind import Deployed
from sparkwright.supervisor.proxy.engine_answer import EngineAnswer
from sparkwright.supervisor.proxy.meter import Metered
from sparkwright.supervisor.proxy.replicas import ReplicaSet

MOST_SENT = 2
"""Replicas that one request reaches: a request that ends engines ends no third one."""
_DECLINES = frozenset({429, 502, 503, 504})


class PromptKeeper(Protocol):
    """Keeps the prompt of one request for the next start of the engine that answers it."""

    def take(self, body: Body) -> None: ...
    def answered(self, by: Deployed, tokens: int) -> None: ...


@dataclass
class Flight:
    """A request on its way, which is counted until it ends. begins: None for what no key counts.

    replicas: those that may answer it; at: the one that has it, after `begin`. reached: of those tried, how many had
    it; unread: bytes of its prompt that are new to its replica, until that answers. keeper: None where none is kept.
    """

    replicas: ReplicaSet
    path: str
    begins: "Callable[[], Metered] | None"
    prompt: PromptBlocks = field(default_factory=PromptBlocks)
    keeper: PromptKeeper | None = None
    metered: Metered | None = None
    _at: Deployed | None = None
    _tried: frozenset[str] = frozenset()
    _reached: int = 0
    _unread: int = 0

    @property
    def at(self) -> Deployed:
        return self._at or self.replicas.members[0]

    @property
    def host(self) -> str:
        return self.at.setting.engine.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        return int(self.at.setting.engine.rpartition(":")[2])

    @property
    def key(self) -> str:
        return self.at.engine_key

    @property
    def limit(self) -> int:
        return self.at.setting.limit

    @property
    def websocket(self) -> bool:
        return self.path in self.at.setting.websockets

    @property
    def replicated(self) -> bool:
        return len(self.replicas.members) > 1

    def begin(self) -> "Flight":
        """Choose and count at once: of many requests that come together, each sees the others."""
        self.metered = self.begins() if self.begins else None
        self._enter(self.replicas.left(self._tried) or self.replicas.members)
        return self

    def _enter(self, among: tuple[Deployed, ...]) -> None:
        self._at, self._unread = self.replicas.take(among, self.prompt)
        self._tried |= {self._at.name}
        self._at.behind.begin()
        self._at.behind.unread += self._unread

    def _settle(self) -> None:
        """The engine has read the prompt, or never will."""
        self.at.behind.unread -= self._unread
        self._unread = 0

    @property
    def lost(self) -> bool:
        return self.at.behind.lost

    def declines(self, status: int) -> bool:
        """True if another replica is to be asked in place of passing on this status."""
        return status in _DECLINES and self._reached + 1 < MOST_SENT and bool(self.replicas.left(self._tried))

    def again(self, reached: bool, why: str) -> bool:
        """Go to another replica, as this one gave nothing; False if there is none. reached: it had the request; why it
        had not."""
        self.at.behind.fail(unreached=not reached, why=why)
        self._reached += reached
        left = self.replicas.left(self._tried) if self._reached < MOST_SENT else ()
        if not left:
            return False
        self._settle()
        self.at.behind.end()
        self._enter(left)
        return True

    def broken(self) -> GatewayAnswer:
        return self.at.behind.broken()

    @property
    def reads(self) -> bool:
        return self.metered is not None and (self.metered.streams or self.keeper is not None)

    def insertion(self, body: Body) -> bytes:
        if self.keeper:
            self.keeper.take(body)
        return self.metered.insertion(body) if self.metered else b""

    def sent(self) -> None:
        if self.metered:
            self.metered.sent()

    def answers(self, answer: EngineAnswer) -> None:
        """The head of an answer; no sign of life: a server sends that of a stream, and its dead engine nothing more."""
        if self.metered:
            self.metered.begins(answer)

    def saw(self, piece: bytes) -> bytes:
        self.at.behind.hear()
        self._settle()
        return self.metered.saw(piece) if self.metered else piece

    @property
    def over(self) -> bool:
        return self.metered is not None and self.metered.over

    def rest(self) -> bytes:
        return self.metered.rest() if self.metered else b""

    def ended(self, whole: bool) -> None:
        if whole:
            self.at.behind.hear()
        self._settle()
        self.at.behind.end()
        if self.metered:
            self.metered.ended(whole)
        if self.keeper and self.metered and (tokens := self.metered.prompt_tokens) is not None:
            self.keeper.answered(self.at, tokens)
