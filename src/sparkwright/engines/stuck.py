"""The rank that delays a start, and of several ended ranks the cause. Pure: the caller keeps the clock.

The silence that counts is that of all ranks together, since the last event of any rank that was neither an error nor a
mere sign of life: ranks other than the head print nothing while weights load, and nothing at all once they are warm.
When it is longer than `stuck_after` of the phase of the rank furthest behind, that rank is stuck; `why_stuck` gives the
reason in one sentence.
"""

import re
from collections.abc import Iterable, Mapping

from sparkwright.domain.deployment import PHASE_ORDER, Phase

_HINTS: Mapping[Phase, str] = {
    Phase.START: "the engine started no log of its own: image, venv or Python imports",
    Phase.DOWNLOAD: "the download makes no progress: network, or Xet (set HF_HUB_DISABLE_XET=1)",
    Phase.LOAD: "reading weights makes no progress: page cache full (MemFree near 0), or a slow disk",
    Phase.COMPILE: "a compiler works on or waits for a lock in the cache folder",
    Phase.WARMUP: "profiling or kernel warm-up hangs: often the ranks went out of step; start again",
    Phase.GRAPHS: "graph capture across nodes is deadlocked: start eager "
    "(vLLM: --enforce-eager, SGLang: --disable-cuda-graph)",
    Phase.SERVER: "the engine is up but its server is not",
    Phase.ANSWER: "the server is up but gives no token",
}
_LOST_A_PEER = re.compile(
    r"remote process exited|ncclRemoteError|closed by (?:remote )?peer|Connection reset by peer"
    r"|Connection was likely closed|Did the remote server shutdown or crash"
    r"|Remote RPC server crashed|mpi: agent on \S+ is gone|mpi: agent: the head is gone"
    r"|ray: error: the head's Ray is gone|ActorDiedError|ActorUnavailableError|NodeDiedError"
)
# The end of a long log tells; a peer that came and went while the ranks met does not.
_LAST = 200


def behind(phases: Mapping[int, Phase | None]) -> tuple[int, ...]:
    """Ranks in the earliest phase; None (no line understood yet) is before all."""
    place = {rank: -1 if phase is None else PHASE_ORDER.index(phase) for rank, phase in phases.items()}
    return tuple(sorted(rank for rank, at in place.items() if at == min(place.values())))


def why_stuck(phases: Mapping[int, Phase | None]) -> str:
    """One sentence about ranks and cause: `rank 1 has not joined: ...`. phases: the furthest of each rank."""
    late = behind(phases)
    phase = phases[late[0]] if late else None
    others = [p for rank, p in phases.items() if rank not in late]
    if phase in (None, Phase.START) and others and Phase.RENDEZVOUS in others:
        return f"{_ranks(late)} not joined: the others wait for it at the rendezvous and will wait for ever"
    if phase is Phase.RENDEZVOUS and len(phases) > 1 and not others:
        return (
            "all ranks are at the rendezvous but do not hear each other: wrong interface "
            "(NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME), or a firewall between the nodes"
        )
    if phase is Phase.RENDEZVOUS:
        return f"{_ranks(late)} not joined"
    return f"{_ranks(late, 'stands')} still at {phase.value if phase else 'its start'}: {_HINTS[phase or Phase.START]}"


def _ranks(ranks: tuple[int, ...], verb: str = "has") -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]} {verb}"
    plural = {"has": "have", "stands": "stand"}[verb]
    return f"ranks {', '.join(str(r) for r in ranks)} {plural}"


def lost_a_peer(lines: Iterable[str]) -> bool:
    """True if a rank's log ends with the loss of another rank (NCCL, Gloo, c10d: captures m1, m2)."""
    return any(_LOST_A_PEER.search(line) for line in tuple(lines)[-_LAST:])
