"""Who holds a start-up up. Pure: the caller keeps the clock.

How to use it: the silence that counts is that of all ranks together, since the last event of any rank that was neither
an error nor a mere sign of life. Ranks other than the head print nothing while weights load, and nothing more at all
once they are warm, so one quiet rank means nothing. When that silence is longer than `stuck_after` of the phase of the
rank furthest behind, that rank is stuck, and `why_stuck` says so in one sentence.
"""

from collections.abc import Mapping

from sparkwright.domain.deployment import PHASE_ORDER, Phase

_HINTS: Mapping[Phase, str] = {
    Phase.START: "the engine started no log of its own: image, venv or Python imports",
    Phase.DOWNLOAD: "the download stands still: network, or Xet (set HF_HUB_DISABLE_XET=1)",
    Phase.LOAD: "reading weights stands still: page cache full (MemFree near 0), or a slow disk",
    Phase.COMPILE: "a compiler works on or waits for a lock in the cache folder",
    Phase.WARMUP: "profiling or kernel warm-up hangs: often the ranks went out of step; start again",
    Phase.GRAPHS: "graph capture across nodes is deadlocked: start eager "
    "(vLLM: --enforce-eager, SGLang: --disable-cuda-graph)",
    Phase.SERVER: "the engine is up but its server is not",
    Phase.ANSWER: "the server is up but gives no token",
}


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
