"""Which of several ranks that ended is the cause. Pure.

A rank that crashes closes its connections some milliseconds before its process ends: its peers may be gone first.
But they say that they lost a peer, in the words of the communication libraries, which all engines here share.
"""

import re
from collections.abc import Iterable

_LOST_A_PEER = re.compile(
    r"remote process exited|ncclRemoteError|closed by (?:remote )?peer|Connection reset by peer"
    r"|Connection was likely closed|Did the remote server shutdown or crash"
    r"|Remote RPC server crashed|mpi: agent on \S+ is gone|mpi: agent: the head is gone"
    r"|ray: error: the head's Ray is gone|ActorDiedError|ActorUnavailableError|NodeDiedError"
)
# The end of a long log tells; a peer that came and went while the ranks met does not.
_LAST = 200


def lost_a_peer(lines: Iterable[str]) -> bool:
    """Whether a rank's log ends with the loss of another rank (NCCL, Gloo, c10d: captures m1, m2)."""
    return any(_LOST_A_PEER.search(line) for line in tuple(lines)[-_LAST:])
