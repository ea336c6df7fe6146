"""A plan made real: states, progress, and the lease that keeps two people from fighting."""

import re
from enum import StrEnum
from typing import TYPE_CHECKING

from sparkwright.domain.values import dataclass, field

if TYPE_CHECKING:  # `diagnose` reads phases, and starts quickly
    from sparkwright.domain.facts import RankStatus
    from sparkwright.domain.live import DeploymentState, Supervised


class Phase(StrEnum):
    """Start-up phases in the order in which engines pass them."""

    START = "start"
    RENDEZVOUS = "rendezvous"
    DOWNLOAD = "download"
    LOAD = "load"
    COMPILE = "compile"
    WARMUP = "warmup"
    GRAPHS = "graphs"
    SERVER = "server"
    ANSWER = "answer"


PHASE_ORDER = tuple(Phase)
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}", re.ASCII)


def is_deployment_name(text: str) -> bool:
    """True if the text may name a deployment, and with it a container and a folder."""
    return bool(_NAME.fullmatch(text))


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One engine log line understood. done/total in `unit` (GiB, shards, graphs, %); fact: a figure worth keeping.

    alive: the line only proves that the rank lives (it must not count as progress of a phase). A fact named `a+b` adds
    to fact `a` (facts.engine_log). who: the process that spoke, where several write the same into one log.
    """

    phase: Phase
    text: str = ""
    done: float | None = None
    total: float | None = None
    unit: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    ready: bool = False
    error: bool = False
    alive: bool = False
    who: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A real completion: text, tokens from the server's usage, seconds to the first token and in all."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    ttft: float
    total: float
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment as its nodes report it. problems: sentences about what is wrong. supervised: None without one.

    program: digest of ours that `up` would put on the head, '' where that is not known. all_asked: every node answered,
    so a supervisor that was not seen is not there.
    """

    name: str
    state: "DeploymentState"
    ranks: "tuple[RankStatus, ...]"
    endpoint: str = ""
    answer: Answer | None = None
    problems: tuple[str, ...] = field(default_factory=tuple)
    simulated: bool = False
    supervised: "Supervised | None" = None
    program: str = ""
    all_asked: bool = True

    @property
    def replica_of(self) -> str:
        """The model of which it is a replica, '' for a deployment that stands alone."""
        known = [self.supervised.replica_of] if self.supervised else []
        return next(filter(None, (*known, *(rank.replica_of for rank in self.ranks))), "")
