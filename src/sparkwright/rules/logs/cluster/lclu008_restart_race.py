"""The head was restarted under a worker that had already joined.

Detects: a worker that loses the head's store while the group is being set up.
Why: the store lives in the head's process; when the head is started again (by a script, a restart policy, a hotfix)
  ranks that joined the first one exit, and the new head waits for them. The same lines follow from any death of the
  head: what else its log says goes first.
Evidence: `recvValue failed` with the head's address.
Remedy: restart all ranks together.
References: field guide C0, E102, E112; https://github.com/MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark/issues/38
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LCLU008"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the head was restarted while a worker was connected to it"
CAUSE = "rank-restart-race-tcpstore"
_REMOTE = r"remote=\[(?!localhost|127\.|::1|::ffff:127\.|::ffff:0\.0\.0\.0)[^\]]{1,80}\]"
SIGNS = (
    line(r"recvValue(?:WithTimeout)? failed on SocketImpl.{0,200}" + _REMOTE, POSSIBLE),
    near(
        r"restart(?:s|ed|ing)?\b.{0,60}(?:head|rank 0|container|master)|(?:head|rank 0)\b.{0,40}restart",
        r"TCPStore|recvValue|rendezvous|already joined|rank 1|joins? the|generation",
        sure=LIKELY,
        within=3,
        unless=r"restart policy: no",
    ),
)
FIX = (
    "stop all ranks, then start the workers first and the head last",
    "docker run ... --restart no   # on all ranks: one place that restarts them all",
)
EXPLAINS = ()
